import NIOCore

/// The bytes a connection has written but not yet passed to its channel, in pieces that suit one write each.
struct OutgoingPieces {
    /// The size in bytes from which a piece is complete and a new one begins. Buffers are of 64 KiB.
    private static let pieceBytes = 48 << 10
    private static let allocator = ByteBufferAllocator()

    /// The complete pieces; `last` is the one being filled.
    private var sealed: [ByteBuffer] = []
    private var last = ByteBuffer()
    private static let fewBytes = 1 << 10
    /// The bytes to make room for at first: as many as the first piece had that was taken last, since a stream goes on as it began.
    private var expected = fewBytes

    var bytes: Int { sealed.reduce(last.readableBytes) { $0 + $1.readableBytes } }

    mutating func append(_ bytes: ByteBuffer) {
        if last.readableBytes == 0 { last = bytes } else { last.writeImmutableBuffer(bytes) }
        sealIfFull()
    }

    /// - Parameter encode: appends to the buffer it is given.
    mutating func append(_ encode: (inout ByteBuffer) -> Void) {
        if last.capacity == 0 { last = Self.allocator.buffer(capacity: sealed.isEmpty ? expected : Self.pieceBytes) }
        encode(&last)
        sealIfFull()
    }

    private mutating func sealIfFull() {
        guard last.readableBytes >= Self.pieceBytes else { return }
        sealed.append(last)
        last = ByteBuffer()
    }

    /// Takes all pieces in order. Afterwards there are none, and no buffer is held.
    mutating func take() -> [ByteBuffer] {
        if last.readableBytes > 0 { sealed.append(last) }
        let taken = sealed
        self = OutgoingPieces()
        expected = min(max(taken.first?.readableBytes ?? 0, Self.fewBytes), Self.pieceBytes)
        return taken
    }
}
