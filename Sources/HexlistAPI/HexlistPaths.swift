#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// The paths of the daemon's files, by the XDG Base Directory Specification and the `HEXLIST_…` variables.
public struct HexlistPaths: Sendable, Equatable {
    /// `hexlist.sqlite`, `identity.pem` and the lock, mode 0700.
    public var stateFolder: String
    /// Whether the state folder was named by the user.
    public var stateFolderIsNamed: Bool
    public var configurationFile: String
    /// Whether the configuration file was named by the user, and must be there.
    public var configurationIsNamed: Bool
    /// The socket that a daemon started in this environment listens on. One that runs already has recorded its own in the state folder,
    /// in the file `lockName`.
    public var socket: String
    /// Whether the socket's place was named by the user.
    public var socketIsNamed: Bool
    /// The user's runtime folder (`XDG_RUNTIME_DIR`); `nil` if it is missing or belongs to another user, as after `su`.
    public var runtimeFolder: String?
    /// `XDG_CONFIG_HOME`, or `~/.config`.
    public var configurationHome: String
    /// `XDG_DATA_HOME`, or `~/.local/share`.
    public var dataHome: String
    /// `XDG_CACHE_HOME`, or `~/.cache`.
    public var cacheHome: String

    /// - Parameters:
    ///   - environment: the variables of the process.
    ///   - stateFolder, configurationFile, socket: from the command line; they go before the environment.
    ///   - isOwnFolder: whether a path is a folder of this user.
    public init(
        environment: [String: String], stateFolder: String? = nil, configurationFile: String? = nil, socket: String? = nil,
        isOwnFolder: (String) -> Bool = HexlistPaths.isOwnFolder
    ) {
        func variable(_ name: String) -> String? {
            environment[name].flatMap { $0.isEmpty ? nil : $0 }
        }
        /// XDG: a relative path is to be ignored.
        func base(_ name: String, _ fallback: String) -> String {
            if let path = variable(name), path.hasPrefix("/") { return path }
            return HexlistPaths.join(variable("HOME") ?? HexlistPaths.homeFolder(), fallback)
        }
        configurationHome = base("XDG_CONFIG_HOME", ".config")
        dataHome = base("XDG_DATA_HOME", ".local/share")
        cacheHome = base("XDG_CACHE_HOME", ".cache")
        runtimeFolder = variable("XDG_RUNTIME_DIR").flatMap { $0.hasPrefix("/") && isOwnFolder($0) ? $0 : nil }
        let namedFolder = stateFolder ?? variable("HEXLIST_STATE_DIR")
        stateFolderIsNamed = namedFolder != nil
        self.stateFolder = namedFolder ?? HexlistPaths.join(dataHome, "hexlist")
        let named = configurationFile ?? variable("HEXLIST_CONFIG")
        configurationIsNamed = named != nil
        self.configurationFile = named ?? HexlistPaths.join(configurationHome, "hexlist/config.yaml")
        let namedSocket = socket ?? variable("HEXLIST_SOCKET")
        socketIsNamed = namedSocket != nil
        if let path = namedSocket {
            self.socket = path
        } else if let runtimeFolder {
            self.socket = HexlistPaths.join(runtimeFolder, "hexlist/control.sock")
        } else {
            self.socket = HexlistPaths.join(self.stateFolder, "control.sock")
        }
    }

    /// Hooks lie beside the configuration file in use.
    public var hookFolder: String { HexlistPaths.join(HexlistPaths.folder(of: configurationFile), "hooks") }

    /// The folder of fetched files that may go: with a state folder of its own, each daemon has its own.
    public var cacheFolder: String {
        HexlistPaths.join(stateFolderIsNamed ? stateFolder : cacheHome, stateFolderIsNamed ? "cache" : "hexlist")
    }

    /// The name of the file in the state folder that a running daemon holds locked; it contains its process id and its socket.
    public static let lockName = "hexlistd.lock"

    /// Whether a path is a folder of the user this process runs as.
    public static func isOwnFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR && status.st_uid == geteuid()
    }

    public static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// The path from the root; a relative one begins in this process's folder.
    public static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        return join(String(cString: folder), path)
    }

    public static func join(_ folder: String, _ name: String) -> String { folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)" }

    /// The folder `path` lies in; `.` for a bare name.
    public static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Returns the home folder of the user database, for a process without `HOME`.
    private static func homeFolder() -> String {
        guard let entry = getpwuid(getuid()), let home = entry.pointee.pw_dir else { return "/" }
        return String(cString: home)
    }
}
