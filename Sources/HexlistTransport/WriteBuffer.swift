import NIOCore

/// The written bytes that were not passed to the channel yet, in chunks that have a good size for one write.
struct WriteBuffer {
    /// Size in bytes at which a chunk is complete and the next one begins. The buffers have 64 KiB.
    private static let chunkBytes = 48 << 10
    private static let allocator = ByteBufferAllocator()

    /// The complete chunks.
    private var complete: [ByteBuffer] = []
    /// The chunk that is being filled.
    private var last = ByteBuffer()
    private static let minimumCapacity = 1 << 10
    /// The initial capacity of the first chunk: the size that the first chunk had at the last `take`. Traffic often continues at the same
    /// rate.
    private var expected = minimumCapacity

    var bytes: Int { complete.reduce(last.readableBytes) { $0 + $1.readableBytes } }

    mutating func append(_ bytes: ByteBuffer) {
        if last.readableBytes == 0 { last = bytes } else { last.writeImmutableBuffer(bytes) }
        sealIfFull()
    }

    /// Appends bytes.
    /// - Parameter encode: appends them to the buffer that it is passed.
    mutating func append(_ encode: (inout ByteBuffer) -> Void) {
        if last.capacity == 0 { last = Self.allocator.buffer(capacity: complete.isEmpty ? expected : Self.chunkBytes) }
        encode(&last)
        sealIfFull()
    }

    private mutating func sealIfFull() {
        guard last.readableBytes >= Self.chunkBytes else { return }
        complete.append(last)
        last = ByteBuffer()
    }

    /// Removes and returns all chunks, in order. No memory is retained.
    mutating func take() -> [ByteBuffer] {
        if last.readableBytes > 0 { complete.append(last) }
        let taken = complete
        self = WriteBuffer()
        expected = min(max(taken.first?.readableBytes ?? 0, Self.minimumCapacity), Self.chunkBytes)
        return taken
    }
}
