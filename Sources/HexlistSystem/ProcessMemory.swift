internal import CLinux

/// The memory of this process.
public enum ProcessMemory {
    /// Sets what the heap keeps of what was freed: 1 MiB at its end, and no block of 256 KiB or more. To be called before anything large is in it.
    public static func boundHeap() { hexlist_bound_heap() }

    /// Gives free pages in the middle of the heap back to the system; the C library does so at its end only.
    public static func returnFreePages() { hexlist_return_memory() }

    /// From now on there is no core dump of this process, and no other process of this user may look into its memory.
    public static func forbidCoreDumps() { hexlist_forbid_core_dumps() }
}
