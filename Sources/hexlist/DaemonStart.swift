import HexlistAPI

/// The command line that starts this user's daemon.
enum DaemonStart {
    static let unit = "hexlistd.service"

    /// The command for systemd if its user manager runs and has the unit, and the unit's daemon is the one asked for: a unit does not know
    /// a socket or state folder named for this command only. Otherwise `hexlistd`.
    /// - Parameters:
    ///   - variables: the environment variables of the process.
    ///   - isNamed: whether the command line names the socket or the state folder.
    ///   - exists: whether there is something at a path.
    static func command(_ variables: [String: String], isNamed: Bool, exists: (String) -> Bool) -> String {
        func variable(_ name: String) -> String? { variables[name].flatMap { $0.isEmpty ? nil : $0 } }
        let isOther = isNamed || variable("HEXLIST_SOCKET") != nil || variable("HEXLIST_STATE_DIR") != nil
        guard !isOther, let runtime = variable("XDG_RUNTIME_DIR"), exists("\(runtime)/systemd/private") else { return "hexlistd" }
        let home = variable("HOME").map {
            [variable("XDG_CONFIG_HOME") ?? "\($0)/.config", variable("XDG_DATA_HOME") ?? "\($0)/.local/share"]
        }
        // The order and the folders of systemd.unit(5) for user units.
        let folders = (home ?? []) + ["/etc", "/run", runtime, "/usr/local/lib", "/usr/local/share", "/usr/lib", "/usr/share"]
        let isInstalled = folders.contains { exists("\($0)/systemd/user/\(unit)") }
        return isInstalled ? "systemctl --user start hexlistd" : "hexlistd"
    }
}
