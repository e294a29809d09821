import Glibc
import HexlistAPI
import HexlistSystem

/// Finds the hexlistd that was installed together with this program.
enum InstalledDaemon {
    /// Returns the path of hexlistd next to this program, or else in a system folder; `nil` if it is in neither.
    static func path() -> String? {
        let beside = HexlistPaths.join(HexlistPaths.folder(of: NotifySend.ownPath), "hexlistd")
        // Only an absolute path is accepted: without /proc the path of this program is unknown, and hexlistd would be searched in the
        // current folder.
        return beside.hasPrefix("/") && access(beside, X_OK) == 0 ? beside : Program.path(ofSystem: "hexlistd")
    }
}
