import Glibc
import HexlistAPI
import HexlistModel
import HexlistSystem
import Hummingbird

/// `/v1/autostart`: whether hexlistd starts at login, which `hexlist web --start` turns on.
enum AutostartRoutes {
    /// Time limit of a call of `systemctl`, in milliseconds.
    private static let longest: Int64 = 5_000

    static func add(to router: Router<BasicRequestContext>) {
        router.delete("/v1/autostart") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(ChangedJSON(changed: try await turnOff()))
        }
    }

    /// Removes the autostart entry and disables the systemd user unit. hexlistd goes on running.
    /// - Returns: how many of the two were enabled before.
    private static func turnOff() async throws(HexlistError) -> Int {
        var changed = 0
        var variables: [String: String] = [:]
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"] {
            variables[name] = getenv(name).map { String(cString: $0) }
        }
        if let entry = AutostartEntry(environment: variables), entry.exists {
            do { try entry.remove() } catch {
                throw HexlistError(.internal, "\(entry.path) cannot be removed: \(error.description).")
            }
            changed += 1
        }
        guard let systemctl = Program.path(ofSystem: "systemctl") else { return changed }
        let environment = variables.map { "\($0.key)=\($0.value)" }
        func run(_ action: String) async -> Bool {
            let program = Program(systemctl, ["--user", "--quiet", action, "hexlistd.service"])
            return await program.run(environment: environment, milliseconds: longest, outputBytes: 4 << 10).end == .exited(0)
        }
        guard await run("is-enabled") else { return changed }
        guard await run("disable") else {
            throw HexlistError(.internal, "systemd did not disable hexlistd.", hint: "In a terminal: `systemctl --user disable hexlistd`.")
        }
        return changed + 1
    }
}
