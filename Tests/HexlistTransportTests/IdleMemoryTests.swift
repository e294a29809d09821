import NIOCore
import Testing

@testable import HexlistTransport

@Suite("What an idle connection keeps") struct IdleMemoryTests {
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
