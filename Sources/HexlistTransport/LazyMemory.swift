@_spi(CustomByteBufferAllocator) import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

/// Memory for what a TLS handler keeps as long as its connection lives: 48 KiB, of which an idle one uses a few hundred bytes. Without
/// this they are pieces of what others gave back, which is in physical memory already; here a page is only once it is used. A connection
/// whose socket is full pays for it with a system call for each record that waits.
///
/// NIO promises nothing of this allocator (SPI), so the manifest takes no later minor version of it unseen.
enum LazyMemory {
    static var allocator: ByteBufferAllocator {
        #if canImport(Glibc)
            ByteBufferAllocator { size in
                guard size >= LazyMemory.fewPages else { return malloc(size) }
                var memory: UnsafeMutableRawPointer?
                guard posix_memalign(&memory, LazyMemory.page, size) == 0, let memory else { return nil }
                // A failure here costs memory and nothing else.
                madvise(memory, size / LazyMemory.page * LazyMemory.page, MADV_DONTNEED)
                return memory
            } reallocate: { memory, _, size in
                realloc(memory, size)
            } deallocate: { memory in
                free(memory)
            } copy: { target, source, count in
                target.copyMemory(from: source, byteCount: count)
            }
        #else
            ByteBufferAllocator()
        #endif
    }

    #if canImport(Glibc)
        private static let page = Int(sysconf(Int32(_SC_PAGESIZE)))
        /// The least bytes worth pages of their own: 16 KiB for pages of 4 KiB.
        private static let fewPages = 4 * page
    #endif
}
