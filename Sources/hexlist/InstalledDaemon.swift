import Glibc
import HexlistAPI
import HexlistSystem

/// The hexlistd that was installed together with this program.
enum InstalledDaemon {
    /// Its path; `nil` if it is neither beside this program nor where the system has its programs.
    static func path() -> String? {
        let beside = HexlistPaths.join(HexlistPaths.folder(of: NotifySend.ownPath), "hexlistd")
        // Never a program of the current folder: without /proc the own path is not known.
        return beside.hasPrefix("/") && access(beside, X_OK) == 0 ? beside : Program.path(ofSystem: "hexlistd")
    }
}
