import HexlistModel
public import NIOCore

/// The reason why no more frames can be read from a stream.
public enum FrameFault: Error, Sendable, Equatable {
    /// The announced length in bytes is 0 or exceeds the limit.
    case length(UInt32)
}

/// Divides a stream into frames (Docs/Protocol.md, "Framing"):
///
///     | length N: UInt32 big-endian | N bytes: one DataSendWrapper |
///
/// Memory is allocated for bytes that were received, not for lengths that were announced.
public struct FrameDecoder: Sendable {
    /// Maximum bytes of a body. A change applies to the next frame, even if its header was already received.
    public var limit: Int
    /// The first fault. It is permanent, because the rest of the stream cannot be divided into frames.
    private var fault: FrameFault?

    /// - Parameter limit: maximum bytes of a body, at most 16 MiB - 1. The first byte of each frame is therefore 0.
    public init(limit: Int) { self.limit = limit }

    /// Removes and returns the next body from the buffer; `nil` if it is not complete.
    /// - Throws: `FrameFault.length` if the announced length is invalid, as soon as the header has arrived. The caller closes the
    ///   connection.
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
