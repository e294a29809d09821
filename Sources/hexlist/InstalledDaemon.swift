import Glibc
import HexlistAPI
import HexlistSystem

/// The hexlistd that was installed together with this program.
enum InstalledDaemon {
    /// The path: next to this program, or in a system folder; `nil` if it is in neither.
    static func path() -> String? {
        let beside = HexlistPaths.join(HexlistPaths.folder(of: NotifySend.ownPath), "hexlistd")
        // Never a program in the current folder: without /proc the path of this program is unknown.
        return beside.hasPrefix("/") && access(beside, X_OK) == 0 ? beside : Program.path(ofSystem: "hexlistd")
    }
}
