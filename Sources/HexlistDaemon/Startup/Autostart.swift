import HexlistModel
import HexlistSystem

/// The automatic start of hexlistd at login: by an autostart entry of the desktop, or by the systemd user unit. `hexlist web --start` turns
/// it on.
struct Autostart: Sendable {
    /// Maximum time in milliseconds that systemctl may take.
    private static let timeout: Int64 = 5_000

    private let entry: AutostartEntry
    /// The environment of systemctl, as `NAME=value`.
    private let environment: [String]

    /// - Parameters:
    ///   - configurationHome: the user's configuration folder.
    ///   - environment: the environment of the daemon. Without the variables of a session, systemctl cannot reach systemd.
    init(configurationHome: String, environment: [String: String]) {
        entry = AutostartEntry(configurationHome: configurationHome)
        self.environment = ["HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"].compactMap { name in
            environment[name].map { "\(name)=\($0)" }
        }
    }

    /// Removes the autostart entry and disables the systemd user unit. hexlistd continues to run.
    /// - Returns: how many of the two were active before: 0, 1 or 2.
    func turnOff() async throws(HexlistError) -> Int {
        var changed = 0
        if entry.exists {
            do { try entry.remove() } catch {
                throw HexlistError(.internal, "\(entry.path) cannot be removed: \(error.description).")
            }
            changed += 1
        }
        guard let systemctl = Program.path(ofSystem: "systemctl") else { return changed }
        func run(_ action: String) async -> Bool {
            let program = Program(systemctl, ["--user", "--quiet", action, "hexlistd.service"])
            return await program.run(environment: environment, milliseconds: Self.timeout, outputBytes: 4 << 10).end == .exited(0)
        }
        guard await run("is-enabled") else { return changed }
        guard await run("disable") else {
            throw HexlistError(.internal, "systemd did not disable hexlistd.", hint: "In a terminal: `systemctl --user disable hexlistd`.")
        }
        return changed + 1
    }
}
