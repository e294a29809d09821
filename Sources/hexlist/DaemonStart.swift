import HexlistAPI

/// The command line that starts this user's daemon.
enum DaemonStart {
    static let unit = "hexlistd.service"

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
