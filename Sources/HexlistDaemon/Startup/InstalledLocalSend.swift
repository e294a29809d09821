#if canImport(Glibc)
    import Glibc
#endif

/// Finds an installed program of LocalSend, which may use the same port as hexlistd.
enum InstalledLocalSend {
    private static let desktopNames = ["localsend", "org.localsend.localsend_app"]
    private static let programs = ["localsend_app", "localsend", "localsend-cli", "localsendd"]

    /// Returns the name of an installed program; `nil` if there is none. Looks for desktop entries in the XDG data folders and the exports
    /// of Flatpak, and for programs in `PATH`.
    static func installed(environment: [String: String]) -> String? {
        let home = environment["HOME"] ?? ""
        var folders = [environment["XDG_DATA_HOME"] ?? "\(home)/.local/share", "\(home)/.local/share/flatpak/exports/share"]
        folders += (environment["XDG_DATA_DIRS"] ?? "/usr/local/share:/usr/share").split(separator: ":").map(String.init)
        folders.append("/var/lib/flatpak/exports/share")
        for folder in folders where folder.utf8.first == UInt8(ascii: "/") {
            for name in desktopNames where exists("\(folder)/applications/\(name).desktop") { return "\(name).desktop" }
        }
        for folder in (environment["PATH"] ?? "").split(separator: ":") where folder.utf8.first == UInt8(ascii: "/") {
            for name in programs where exists("\(folder)/\(name)") { return name }
        }
        return nil
    }

    private static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }
}
