import Glibc
import HexlistAPI
import HexlistModel
import HexlistSystem

/// Starts hexlistd for `hexlist web --start`, and configures it to start at every login.
enum DaemonStarter {
    /// Maximum time in milliseconds until hexlistd is ready.
    private static let longestStart: CInt = 5_000

    /// Enables and starts the systemd user unit. Without systemd or without the unit, starts the installed hexlistd directly and writes an
    /// autostart entry.
    /// - Parameters:
    ///   - notifySocket: the path for a temporary socket on which hexlistd reports that it is ready. Its folder must belong to this user.
    ///   - configurationHome: the user's configuration folder, for the autostart entry.
    static func start(notifySocket: String, configurationHome: String) async throws(HexlistError) {
        if await startUnit() { return }
        guard let program = InstalledDaemon.path() else {
            throw HexlistError(.daemonUnreachable, "hexlistd is not installed.", hint: "Install the package hexlist.")
        }
        switch Program(program).startService(environment: environment, notifySocket: notifySocket, milliseconds: longestStart) {
        case .ready: break
        case .timedOut:
            throw HexlistError(
                .daemonUnreachable, "hexlistd was started, but is not ready after \(longestStart / 1_000) s.",
                hint: "Try again in a moment.")
        case .ended:
            throw HexlistError(
                .daemonUnreachable, "hexlistd was started and ended at once.", hint: "To see the reason, run `hexlistd` in a terminal.")
        case .notStarted(let reason):
            throw HexlistError(.daemonUnreachable, "hexlistd cannot be started: \(reason).")
        }
        let entry = AutostartEntry(configurationHome: configurationHome)
        do {
            try entry.write(program: program)
        } catch {
            StandardError.note("Hexlist runs now, but will not start at login: \(entry.path) cannot be written: \(error.description).")
        }
    }

    /// Enables and starts the systemd user unit.
    /// - Returns: whether systemd reports that the unit is ready.
    private static func startUnit() async -> Bool {
        guard let systemctl = Program.path(ofSystem: "systemctl") else { return false }
        let outcome = await Program(systemctl, ["--user", "enable", "--now", "hexlistd.service"]).run(
            environment: environment, milliseconds: Int64(longestStart), outputBytes: 4 << 10)
        return outcome.end == .exited(0)
    }

    /// The environment variables of this session that hexlistd, its hooks and systemctl need.
    private static var environment: [String] {
        Environment.assignments(of: [
            "HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "LC_ALL", "TZ", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY",
            "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME",
            "XDG_CURRENT_DESKTOP", "HEXLIST_STATE_DIR", "HEXLIST_CONFIG", "HEXLIST_SOCKET",
        ])
    }
}
