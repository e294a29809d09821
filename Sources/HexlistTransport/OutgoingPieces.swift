import NIOCore

/// What a connection wrote and did not yet give to its channel, in pieces that suit one write each.
struct OutgoingPieces {
    /// Bytes from which a piece is sent as it is, and another one begun: in buffers of 64 KiB.
    private static let pieceBytes = 48 << 10
    private static let allocator = ByteBufferAllocator()

    /// Ready to be sent, and the one being filled.
    private var sealed: [ByteBuffer] = []
    private var last = ByteBuffer()

    var bytes: Int { sealed.reduce(last.readableBytes) { $0 + $1.readableBytes } }

    mutating func append(_ bytes: ByteBuffer) {
        if last.readableBytes == 0 { last = bytes } else { last.writeImmutableBuffer(bytes) }
        sealIfFull()
    }

    /// - Parameter encode: writes in place, behind what is there.
    mutating func append(_ encode: (inout ByteBuffer) -> Void) {
        if last.capacity == 0 { last = Self.allocator.buffer(capacity: sealed.isEmpty ? 1 << 10 : Self.pieceBytes) }
        encode(&last)
        sealIfFull()
    }

    private mutating func sealIfFull() {
        guard last.readableBytes >= Self.pieceBytes else { return }
        sealed.append(last)
        last = ByteBuffer()
    }

    /// All of it, in order; nothing is left, and no buffer is held.
    mutating func take() -> [ByteBuffer] {
        if last.readableBytes > 0 { sealed.append(last) }
        defer { self = OutgoingPieces() }
        return sealed
    }
}
