// libFuzzer target: the frame codec. Any input is a stream, whose own bytes determine how it is split.
//
// However it is split, the frames, or the fault, are the same. Each frame goes to the decoder, which must not trap.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzFrames(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let stream = data.map { [UInt8](UnsafeBufferPointer(start: $0, count: count)) } ?? []
    let limit = stream.first.map { 1 + Int($0) * 257 } ?? 1
    let whole = read([stream[...]], limit: limit)
    var pieces: [ArraySlice<UInt8>] = []
    var position = 0
    while position < stream.count {
        let end = min(stream.count, position + 1 + Int(stream[position] & 31))
        pieces.append(stream[position..<end])
        position = end
    }
    let cut = read(pieces, limit: limit)
    guard whole.frames == cut.frames, whole.fault == cut.fault else { fatalError("cutting the stream changes its frames") }
    var decoder = WrapperDecoder()
    for frame in whole.frames {
        guard (1...limit).contains(frame.count) else { fatalError("a frame of \(frame.count) bytes past the limit of \(limit)") }
        _ = decoder.decode(frame)
    }
    return 0
}

private func read(_ pieces: [ArraySlice<UInt8>], limit: Int) -> (frames: [[UInt8]], fault: FrameFault?) {
    var decoder = FrameDecoder(limit: limit)
    var buffer = ByteBuffer()
    var frames: [[UInt8]] = []
    for piece in pieces {
        buffer.bytes += piece
        do {
            while let frame = try decoder.next(from: &buffer) { frames.append(frame) }
        } catch {
            return (frames, error)
        }
    }
    return (frames, nil)
}
