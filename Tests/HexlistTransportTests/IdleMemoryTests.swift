import NIOCore
import Testing

@testable import HexlistTransport

@Suite("Buffers of an idle connection") struct IdleMemoryTests {
    @Test("reads of a trusted peer grow under load, and shrink again") func longReads() {
        var pool = NIOPooledRecvBufferAllocator(capacity: 1, recvAllocator: ReadBufferAllocator(maximumBytes: SocketOptions.longReadBytes))
        var capacities: [Int] = []
        for count in [SocketOptions.readBytes, SocketOptions.longReadBytes, SocketOptions.readBytes - 1, 1] {
            capacities.append(pool.buffer(allocator: ByteBufferAllocator()) { $0.writeInteger(UInt8(1)) }.0.capacity)
            pool.record(actualReadBytes: count)
        }
        let (short, long) = (SocketOptions.readBytes, SocketOptions.longReadBytes)
        #expect(capacities == [short, long, long, short])
    }

    @Test("a channel keeps only its small first buffer") func readBuffers() {
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
