internal import CLinux

#if canImport(Glibc)
    internal import Glibc
#endif

public enum ProcessMemory {
    /// Limits the freed memory that malloc keeps: 1 MiB at the end of the heap, and no blocks of 256 KiB or more. Must be called before
    /// large allocations.
    public static func boundHeap() { hexlist_bound_heap() }

    /// The resident set size in bytes; `nil` if it cannot be read.
    public static var residentBytes: Int64? {
        // The fields of statm are numbers of pages: total, resident, shared and others.
        guard let text = try? SmallFile.read("/proc/self/statm", limit: 4_096) else { return nil }
        let fields = text.split(separator: " ")
        guard fields.count > 1, let pages = Int64(fields[1]) else { return nil }
        return pages * Int64(sysconf(Int32(_SC_PAGESIZE)))
    }

    /// Returns free pages inside the heap to the system. Without this call, the C library only returns free memory at the end of the heap.
    public static func returnFreePages() { hexlist_return_memory() }

    /// Disables core dumps of this process, and access to its memory by other processes of this user.
    public static func forbidCoreDumps() { hexlist_forbid_core_dumps() }
}
