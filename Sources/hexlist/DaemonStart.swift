import HexlistAPI
import HexlistModel
import HexlistSystem

/// The command line that starts this user's daemon.
enum DaemonStart {
    static let unit = "hexlistd.service"

    /// The error of a command if nothing listens on its socket.
    /// - Parameter holder: the process that holds the lock of the state folder.
    static func absent(_ paths: HexlistPaths, holder: LockFile.Holder?, startCommand: String) -> HexlistError {
        let socket = TerminalText.clean(paths.socket)
        guard let pid = holder?.pid else {
            return HexlistError(.daemonUnreachable, "Nothing is listening on \(socket).", hint: "Start the daemon with `\(startCommand)`.")
        }
        let running = "hexlistd (pid \(pid)) uses the state folder \(TerminalText.clean(paths.stateFolder))"
        if let recorded = holder?.socket, recorded != HexlistPaths.absolute(paths.socket) {
            return HexlistError(
                .daemonUnreachable, "Nothing is listening on \(socket). \(running), with the socket \(TerminalText.clean(recorded)).",
                hint: "Leave out HEXLIST_SOCKET and --socket to use that one.")
        }
        return HexlistError(
            .daemonUnreachable, "\(running), but nothing is listening on \(socket).",
            hint: "If it was started just now, try again. If its socket was deleted: `kill \(pid)`, then `\(startCommand)`.")
    }

    /// The command for systemd if its user manager runs and has the unit, and the unit's daemon is the one asked for: a unit does not know
    /// a socket or state folder named for this command only. Otherwise `hexlistd`.
    /// - Parameter exists: whether there is something at a path.
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
