public import HexlistModel

#if canImport(Glibc)
    import Glibc
#endif

/// The file system /proc, of which libdispatch needs the part about this process: it ends a program whose threads it cannot look up there. So
/// nothing may run on its queues, as every `Task` does, before `check`.
public enum ProcFileSystem {
    /// - Throws: `HexlistError` `internal` if /proc is not there.
    public static func check(for program: String) throws(HexlistError) {
        guard access("/proc/self/stat", R_OK) != 0 else { return }
        throw HexlistError(
            .internal, "\(program) cannot run here: /proc is not mounted, or does not show this process.",
            hint: "Mount it: `mount -t proc proc /proc`. `--help` and `--version` work without it.")
    }
}
