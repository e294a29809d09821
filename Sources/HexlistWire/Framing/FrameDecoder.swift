import HexlistModel
public import NIOCore

/// The reason why a stream of frames cannot be read further.
public enum FrameFault: Error, Sendable, Equatable {
    /// The length in bytes that a header announced, which is 0 or exceeds the limit.
    case length(UInt32)
}

/// Cuts a stream into frames (Docs/Protocol.md, "Framing"):
///
///     | length N: UInt32 big-endian | N bytes: one DataSendWrapper |
///
/// Reads only what has arrived: the buffer grows with the bytes received, never by the announced length.
public struct FrameDecoder: Sendable {
    /// The most bytes of a body. Applies from the next frame on, also to one whose header has arrived already.
    public var limit: Int
    /// The first fault. It stays, because a stream cannot be resynchronised.
    private var fault: FrameFault?

    /// - Parameter limit: the most bytes of a body; limited to 16 MiB - 1, so that the first byte of a frame is always 0.
    public init(limit: Int) { self.limit = limit }

    /// Takes the next whole body; `nil` until it has arrived.
    /// - Throws: `FrameFault.length`, from the header alone, before a byte of the body is read. The caller closes the connection.
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
