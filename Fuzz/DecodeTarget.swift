// libFuzzer target: the tolerant decoder. Fuzz/run builds it with HexlistModel and HexlistWire's decoding as one module, so that nothing
// else has to be built with the sanitizers.
//
// Any input is a frame's body. The decoder must never trap or read outside its buffers. Each slice of a decoded hex lies inside its buffer
// and is UTF-8; encoding and decoding the hex again gives the same content.

nonisolated(unsafe) private var decoder = WrapperDecoder(reportsRepairs: true)
nonisolated(unsafe) private var plain = WrapperDecoder()

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzDecode(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let frame = data.map { [UInt8](UnsafeBufferPointer(start: $0, count: count)) } ?? []
    let decoded = plain.decode(frame)
    var reported = decoder.decode(frame)
    check(FrameJSON.json(reported))
    if case .wrapper(var wrapper) = reported {
        wrapper.repairs = []
        reported = .wrapper(wrapper)
    }
    guard FrameJSON.json(decoded) == FrameJSON.json(reported) else { fatalError("the report changes the verdict") }
    switch decoded {
    case .refused:
        if case .success = FrameJSON.frame(fromJSON: frame) { fatalError("a refused frame has a canonical form") }
    case .wrapper(let wrapper):
        check(wrapper)
        canonical(wrapper, frame)
    }
    if case .success(let local) = decoder.decodeHex(frame, acceptsLocalNames: true) { roundTrip(local.content) }
    return 0
}

/// The canonical frame decodes to the frame it was made from, and its own canonical form is the same.
private func canonical(_ wrapper: DecodedWrapper, _ frame: [UInt8]) {
    guard case .success(let framed) = FrameJSON.frame(fromJSON: frame) else { fatalError("no canonical form") }
    guard case .wrapper(let again) = plain.decode(Array(framed.dropFirst(4))) else { fatalError("the canonical form is refused") }
    guard again.operation == wrapper.operation, again.versionID.utf8.elementsEqual(wrapper.versionID.utf8),
        again.messageID == wrapper.messageID, again.sequence == wrapper.sequence, again.extra == wrapper.extra,
        (again.message == nil) == (wrapper.message == nil), (again.message ?? "").utf8.elementsEqual((wrapper.message ?? "").utf8)
    else { fatalError("the canonical form says something else") }
    guard case .success(let twice) = FrameJSON.frame(fromJSON: Array(framed.dropFirst(4))), twice == framed else {
        fatalError("the canonical form has another canonical form")
    }
}

/// Checks that a frame's description is valid JSON.
private func check(_ json: [UInt8]) {
    if case .refused(let refusal) = plain.decode(json), refusal.isUndecodable, !refusal.message.contains("nested deeper") {
        fatalError("what is printed is no JSON: \(refusal.message)")
    }
}

private func check(_ wrapper: DecodedWrapper) {
    guard String(validating: wrapper.extra, as: UTF8.self) != nil else { fatalError("wrapper extra is no UTF-8") }
    switch wrapper.object {
    case .hex(let content): roundTrip(content)
    case .hello(let hello):
        guard ProtocolLimits.windowFramesRange.contains(hello.window) else { fatalError("window \(hello.window)") }
    case .none, .receipt, .pairing: break
    }
}

private func texts(_ content: HexContent) -> [TextSlice] {
    [content.senderUUID, content.senderName, content.hexDescription, content.hexColor, content.extra]
        + content.children.flatMap { [$0.senderUUID, $0.senderName, $0.hexDescription, $0.hexColor, $0.extra] }
        + (content.links + content.childLinks).flatMap { [$0.url, $0.linkDescription, $0.service, $0.extra] }
}

private func bytes(_ slice: TextSlice, of content: HexContent) -> [UInt8] { content.withBytes(of: slice) { Array($0) } }

private func roundTrip(_ content: HexContent) {
    guard content.fitsBounds, content.levels <= ProtocolLimits.levels else {
        fatalError("\(content.allLinkCount) links, \(content.children.count) hexes inside, \(content.levels) levels")
    }
    for slice in texts(content) {
        let limit = slice.isInArena ? content.arena.count : content.frame.count
        guard slice.offset + slice.count <= limit else { fatalError("a slice outside its buffer") }
        guard String(validating: bytes(slice, of: content), as: UTF8.self) != nil else { fatalError("a slice that is no UTF-8") }
    }
    let encoded = HexEncoder.encode(content)
    guard case .success(let again) = plain.decodeHex(encoded, acceptsLocalNames: false) else { fatalError("what is encoded is refused") }
    guard content.children.map(\.parent) == again.content.children.map(\.parent),
        content.children.map(\.links) == again.content.children.map(\.links)
    else { fatalError("another tree after a round trip") }
    let (before, after) = (texts(content), texts(again.content))
    guard before.count == after.count else { fatalError("other links after a round trip") }
    for (left, right) in zip(before, after)
    where left.isEmpty != right.isEmpty || bytes(left, of: content) != bytes(right, of: again.content) {
        // The only permitted difference: a kept member whose name this version knows is not sent.
        let isExtra = bytes(left, of: content).first == UInt8(ascii: "{")
        guard isExtra, bytes(right, of: again.content).count < left.count else { fatalError("another text after a round trip") }
    }
    guard HexEncoder.encode(again.content) == encoded else { fatalError("encoding twice gives two forms") }
}
