import Glibc

/// Finds and starts programs of the desktop session, such as notify-send and xclip.
enum DesktopPrograms {
    /// Returns the path of a program found in `PATH`; `nil` if it is not installed.
    static func path(of program: String) -> String? {
        (Environment.value("PATH") ?? "/usr/bin:/bin").split(separator: ":").map { "\($0)/\(program)" }
            .first { $0.hasPrefix("/") && access($0, X_OK) == 0 }
    }

    /// The environment variables that a program needs to access the desktop session, as `NAME=value`.
    static var environment: [String] {
        Environment.assignments(of: [
            "HOME", "PATH", "LANG", "LC_ALL", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CURRENT_DESKTOP", "DBUS_SESSION_BUS_ADDRESS",
            "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "BROWSER", "HEXLIST_SOCKET", "HEXLIST_STATE_DIR",
        ])
    }
}
