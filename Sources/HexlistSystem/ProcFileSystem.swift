public import HexlistModel

#if canImport(Glibc)
    import Glibc
#endif

/// The /proc file system, which libdispatch needs: it traps if it cannot read the threads of this process there. So `check` must run before
/// any `Task` or dispatch queue is used.
public enum ProcFileSystem {
    /// - Throws: `HexlistError` `internal` if /proc is not there.
    public static func check(for program: String) throws(HexlistError) {
        guard access("/proc/self/stat", R_OK) != 0 else { return }
        throw HexlistError(
            .internal, "\(program) cannot run here: /proc is not mounted, or does not show this process.",
            hint: "Mount it: `mount -t proc proc /proc`. `--help` and `--version` work without it.")
    }
}
