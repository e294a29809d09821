#if canImport(Glibc)
    internal import Glibc
#endif

/// The desktop entry `autostart/hexlist.desktop` in the user's configuration folder, which starts hexlistd at login. Used on systems
/// without systemd user services (freedesktop.org, Desktop Application Autostart Specification).
public struct AutostartEntry: Sendable {
    public let path: String

    /// - Parameter configurationHome: the absolute path of the user's configuration folder, `XDG_CONFIG_HOME`.
    public init(configurationHome: String) { path = configurationHome + "/autostart/hexlist.desktop" }

    public var exists: Bool { access(path, F_OK) == 0 }

    /// Writes the entry, and creates missing folders of its path.
    /// - Parameter program: the absolute path of hexlistd.
    public func write(program: String) throws(SystemError) {
        let folders = path.split(separator: "/").dropLast()
        for count in 1...folders.count {
            let folder = "/" + folders.prefix(count).joined(separator: "/")
            guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw .last }
        }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw .last }
        defer { close(descriptor) }
        try BlockingWrite.write(Array(Self.text(program: program).utf8), to: descriptor)
    }

    /// Removes the entry. Does nothing if it does not exist.
    public func remove() throws(SystemError) {
        guard unlink(path) == 0 || errno == ENOENT else { throw .last }
    }

    static func text(program: String) -> String {
        // A quoted argument has a backslash before each `"`, backquote, `$` and backslash. The file format requires that each backslash is
        // doubled.
        let quoted = program.map { "\"`$\\".contains($0) ? "\\\\\($0)" : String($0) }.joined().replacing("%", with: "%%")
        return """
            [Desktop Entry]
            Type=Application
            Name=Hexlist
            Comment=Receives links and files from machines nearby
            Exec="\(quoted)"
            Icon=hexlist
            NoDisplay=true

            """
    }
}
