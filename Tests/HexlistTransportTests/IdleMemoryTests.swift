import NIOCore
import Testing

@testable import HexlistTransport

#if canImport(Glibc)
    import Glibc
#endif

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

    #if canImport(Glibc)
        @Test("memory for TLS holds nothing of what others gave back") func lazyMemory() {
            // Holes that are in physical memory, in between what stays.
            let blocks = (0..<64).compactMap { _ in malloc(48 << 10) }
            for block in blocks { memset(block, 0xFF, 48 << 10) }
            for block in blocks.enumerated() where block.offset % 2 == 0 { free(block.element) }
            defer { for block in blocks.enumerated() where block.offset % 2 == 1 { free(block.element) } }
            let size = 8 * Int(sysconf(Int32(_SC_PAGESIZE)))
            for _ in 0..<16 {
                var buffer = LazyMemory.allocator.buffer(capacity: size)
                buffer.withUnsafeMutableWritableBytes { bytes in
                    #expect(bytes.count == size)
                    #expect(bytes.allSatisfy { $0 == 0 })
                }
            }
        }

        @Test("it grows as any other") func growth() {
            var buffer = LazyMemory.allocator.buffer(capacity: 16 << 10)
            for number in 0..<100_000 { buffer.writeInteger(UInt32(number)) }
            #expect((0..<100_000).allSatisfy { buffer.readInteger(as: UInt32.self) == UInt32($0) })
        }
    #endif
}
