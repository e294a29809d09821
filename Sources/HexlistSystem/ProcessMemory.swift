internal import CLinux

/// The memory of this process.
public enum ProcessMemory {
    /// Limits how much freed memory the heap keeps: 1 MiB at its end, and no block of 256 KiB or more. Called before anything large is
    /// allocated.
    public static func boundHeap() { hexlist_bound_heap() }

    /// Returns free pages in the middle of the heap to the system; the C library returns only those at its end.
    public static func returnFreePages() { hexlist_return_memory() }

    /// Forbids core dumps of this process, and access to its memory by other processes of this user.
    public static func forbidCoreDumps() { hexlist_forbid_core_dumps() }
}
