/// The environment of a hook: the variables of the user's session that hooks need, and the paths of the daemon. The daemon's other
/// variables are not passed on.
enum HookEnvironment {
    private static let passedOn = [
        "HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_TIME", "TZ", "TMPDIR",
        "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CURRENT_DESKTOP",
        "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY",
    ]

    /// - Parameters:
    ///   - own: the environment of the daemon.
    ///   - socket: the current path of the API socket, so that `hexlist` in a hook finds this daemon.
    /// - Returns: entries `NAME=value`, sorted.
    static func make(from own: [String: String], socket: String, stateFolder: String) -> [String] {
        var environment = ["PATH": "/usr/local/bin:/usr/bin:/bin"]
        for name in passedOn { environment[name] = own[name] ?? environment[name] }
        environment["HEXLIST_SOCKET"] = socket
        environment["HEXLIST_STATE_DIR"] = stateFolder
        return environment.map { "\($0)=\($1)" }.sorted()
    }
}
