import NIOCore
import Testing

@testable import HexlistTransport

@Suite("What an idle connection keeps") struct IdleMemoryTests {
    @Test("reads of a trusted peer grow while they leave some behind, and shrink again") func longReads() {
        var pool = NIOPooledRecvBufferAllocator(capacity: 1, recvAllocator: ReadBufferAllocator(most: SocketOptions.longReadBytes))
        var capacities: [Int] = []
        for count in [SocketOptions.readBytes, SocketOptions.longReadBytes, SocketOptions.readBytes - 1, 1] {
            capacities.append(pool.buffer(allocator: ByteBufferAllocator()) { $0.writeInteger(UInt8(1)) }.0.capacity)
            pool.record(actualReadBytes: count)
        }
        let (short, long) = (SocketOptions.readBytes, SocketOptions.longReadBytes)
        #expect(capacities == [short, long, long, short])
    }

    @Test("a channel keeps its first buffer, a small one, and no other") func readBuffers() {
        var pool = NIOPooledRecvBufferAllocator(capacity: 1, recvAllocator: ReadBufferAllocator())
        let first = pool.buffer(allocator: ByteBufferAllocator()) { $0.writeInteger(UInt8(1)) }.0
        #expect(first.capacity <= 1_024)
        pool.record(actualReadBytes: 1)
        for _ in 0..<3 {
            var next = pool.buffer(allocator: ByteBufferAllocator()) { $0.writeInteger(UInt8(1)) }.0
            pool.record(actualReadBytes: 1)
            #expect(next.capacity >= SocketOptions.readBytes)
            #expect(next.modifyIfUniquelyOwned { _ in true } == true)
        }
    }
}
