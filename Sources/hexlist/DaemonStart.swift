import HexlistAPI
import HexlistModel
import HexlistSystem

/// The command line that starts the daemon, and the error if it does not run.
enum DaemonStart {
    static let unit = "hexlistd.service"

    /// The error if nothing listens on the socket.
    /// - Parameter holder: the process that holds the lock of the state folder.
    static func absent(_ paths: HexlistPaths, holder: LockFile.Holder?, startCommand: String) -> HexlistError {
        let socket = TerminalText.clean(paths.socket)
        guard let pid = holder?.pid else {
            return HexlistError(
                .daemonUnreachable, "hexlistd is not running (nothing listens on \(socket)).", hint: "Start it with `\(startCommand)`.")
        }
        let running = "hexlistd (pid \(pid)) uses the state folder \(TerminalText.clean(paths.stateFolder))"
        if let recorded = holder?.socket, recorded != HexlistPaths.absolute(paths.socket) {
            return HexlistError(
                .daemonUnreachable, "Nothing listens on \(socket). \(running) and the socket \(TerminalText.clean(recorded)).",
                hint: "Leave out HEXLIST_SOCKET and --socket to use that one.")
        }
        return HexlistError(
            .daemonUnreachable, "\(running), but nothing listens on \(socket).",
            hint: "If it was just started, try again. If its socket was deleted: `kill \(pid)`, then `\(startCommand)`.")
    }

    /// The systemctl command if the systemd user manager runs and has the unit; otherwise `hexlistd`. An explicit socket or state folder
    /// also gives `hexlistd`, because the unit does not know them.
    /// - Parameter exists: returns whether a path exists.
    static func command(_ paths: HexlistPaths, exists: (String) -> Bool) -> String {
        guard !paths.socketIsNamed, !paths.stateFolderIsNamed, let runtime = paths.runtimeFolder, exists("\(runtime)/systemd/private")
        else { return "hexlistd" }
        // The order and the folders of systemd.unit(5) for user units.
        let folders =
            [paths.configurationHome, paths.dataHome]
            + ["/etc", "/run", runtime, "/usr/local/lib", "/usr/local/share", "/usr/lib", "/usr/share"]
        let isInstalled = folders.contains { exists("\($0)/systemd/user/\(unit)") }
        return isInstalled ? "systemctl --user start hexlistd" : "hexlistd"
    }
}
