public import HexlistModel

#if canImport(Glibc)
    import Glibc
#endif

/// Checks the /proc file system. libdispatch traps if it cannot read the threads of this process in /proc, so `check` must be called before
/// any `Task` or dispatch queue is used.
public enum ProcFileSystem {
    /// - Throws: `HexlistError` with the code `internal` if /proc is not available.
    public static func check(for program: String) throws(HexlistError) {
        guard access("/proc/self/stat", R_OK) != 0 else { return }
        throw HexlistError(
            .internal, "\(program) cannot run here: /proc is not mounted, or does not show this process.",
            hint: "Mount it: `mount -t proc proc /proc`. `--help` and `--version` work without it.")
    }
}
