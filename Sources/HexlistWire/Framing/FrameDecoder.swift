import HexlistModel
public import NIOCore

/// Why a stream of frames cannot be read further.
public enum FrameFault: Error, Sendable, Equatable {
    /// The length a header announced, in bytes, is 0 or more than the limit.
    case length(UInt32)
}

/// Cuts a stream into frames (Docs/Protocol.md, "Framing"):
///
///     | length N: UInt32 big-endian | N bytes: one DataSendWrapper |
///
/// Reads only what has arrived and asks for no room: the buffer grows as bytes come, never by the announced length.
public struct FrameDecoder: Sendable {
    /// The bytes of a body, at most. Counts from the next frame on; one whose header has been seen is judged again.
    public var limit: Int
    /// A stream cannot be resynchronised, so a fault stays.
    private var fault: FrameFault?

    /// - Parameter limit: bytes; never above 16 MiB - 1, so that the first byte of a frame is always 0.
    public init(limit: Int) { self.limit = limit }

    /// The next whole body, `nil` until it has arrived.
    /// - Throws: `FrameFault.length` from the header alone, no byte of the body is read; the caller closes the connection.
    public mutating func next(from buffer: inout ByteBuffer) throws(FrameFault) -> [UInt8]? {
        if let fault { throw fault }
        guard let announced = buffer.getInteger(at: buffer.readerIndex, as: UInt32.self) else { return nil }
        let most = min(limit, ProtocolLimits.largestFrameBytes)
        guard let length = Int(exactly: announced), length >= 1, length <= most else {
            let fault = FrameFault.length(announced)
            self.fault = fault
            throw fault
        }
        guard buffer.readableBytes >= 4 + length else { return nil }
        buffer.moveReaderIndex(forwardBy: 4)
        return buffer.readBytes(length: length)
    }
}
