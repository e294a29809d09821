internal import CLinux

#if canImport(Glibc)
    internal import Glibc
#endif

/// The memory of this process.
public enum ProcessMemory {
    /// Limits how much freed memory the heap keeps: 1 MiB at its end, and no block of 256 KiB or more. Called before anything large is
    /// allocated.
    public static func boundHeap() { hexlist_bound_heap() }

    /// The resident bytes, as the kernel counts them; `nil` where it does not say.
    public static var residentBytes: Int64? {
        // Pages: all, resident, shared, …
        guard let text = try? SmallFile.read("/proc/self/statm", limit: 4_096) else { return nil }
        let fields = text.split(separator: " ")
        guard fields.count > 1, let pages = Int64(fields[1]) else { return nil }
        return pages * Int64(sysconf(Int32(_SC_PAGESIZE)))
    }

    /// Returns free pages in the middle of the heap to the system; the C library returns only those at its end.
    public static func returnFreePages() { hexlist_return_memory() }

    /// Forbids core dumps of this process, and access to its memory by other processes of this user.
    public static func forbidCoreDumps() { hexlist_forbid_core_dumps() }
}
