import HexlistModel
public import NIOCore

/// The reason why a stream of frames cannot be read any further.
public enum FrameFault: Error, Sendable, Equatable {
    /// The announced length in bytes is 0 or exceeds the limit.
    case length(UInt32)
}

/// Splits a stream into frames (Docs/Protocol.md, "Framing"):
///
///     | length N: UInt32 big-endian | N bytes: one DataSendWrapper |
///
/// Allocates memory only for received bytes, not for announced lengths.
public struct FrameDecoder: Sendable {
    /// Maximum bytes of a body. Applies from the next frame on, even if its header was already received.
    public var limit: Int
    /// The first fault. Permanent, because the stream cannot be resynchronized.
    private var fault: FrameFault?

    /// - Parameter limit: maximum bytes of a body, at most 16 MiB - 1, so that the first byte of a frame is always 0.
    public init(limit: Int) { self.limit = limit }

    /// Removes and returns the next complete body; `nil` until it was received.
    /// - Throws: `FrameFault.length` for an invalid length, as soon as the header was received. The caller closes the connection.
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
