import HexlistAPI
import HexlistModel
import HexlistSystem

/// Texts for errors if the daemon does not run: the reason, and the command line that starts it.
enum DaemonNotRunningText {
    static let unit = "hexlistd.service"

    /// Returns the error to throw if nothing listens on the socket.
    /// - Parameter holder: the process that holds the lock of the state folder; `nil` if no daemon runs.
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

    /// Returns the command line that starts the daemon: `systemctl` if a systemd user manager runs and has the unit, otherwise `hexlistd`.
    /// If the socket or state folder is given explicitly, the result is `hexlistd`, because the unit would use the default paths.
    /// - Parameter exists: returns whether a path exists.
    static func command(_ paths: HexlistPaths, exists: (String) -> Bool) -> String {
        guard !paths.socketIsNamed, !paths.stateFolderIsNamed, let runtime = paths.runtimeFolder, exists("\(runtime)/systemd/private")
        else { return "hexlistd" }
        // The order and the folders are those of systemd.unit(5) for user units.
        let folders =
            [paths.configurationHome, paths.dataHome]
            + ["/etc", "/run", runtime, "/usr/local/lib", "/usr/local/share", "/usr/lib", "/usr/share"]
        let isInstalled = folders.contains { exists("\($0)/systemd/user/\(unit)") }
        return isInstalled ? "systemctl --user start hexlistd" : "hexlistd"
    }
}
