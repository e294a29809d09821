#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// The paths of the daemon's files, from the XDG Base Directory Specification and the `HEXLIST_…` variables.
public struct HexlistPaths: Sendable, Equatable {
    /// The folder of `hexlist.sqlite`, `identity.pem` and the lock file, with mode 0700.
    public var stateFolder: String
    /// Whether the user named the state folder, with an option or a variable.
    public var stateFolderIsNamed: Bool
    public var configurationFile: String
    /// Whether the user named the configuration file, so that it has to exist.
    public var configurationIsNamed: Bool
    /// The path of the API socket of a daemon that is started in this environment. A running daemon records its path in the lock file
    /// (`lockName`).
    public var socket: String
    /// Whether the user named the path of the socket, with an option or a variable.
    public var socketIsNamed: Bool
    /// The user's runtime folder (`XDG_RUNTIME_DIR`); `nil` if it is missing or belongs to another user, as after `su`.
    public var runtimeFolder: String?
    /// The folder for configuration files: `XDG_CONFIG_HOME`, or `~/.config`.
    public var configurationHome: String
    /// The folder for data of programs: `XDG_DATA_HOME`, or `~/.local/share`.
    public var dataHome: String
    /// The folder for caches: `XDG_CACHE_HOME`, or `~/.cache`.
    public var cacheHome: String

    /// - Parameters:
    ///   - environment: the variables of the process.
    ///   - stateFolder, configurationFile, socket: paths from the command line; they take precedence over the environment.
    ///   - isOwnFolder: returns whether a path is a folder that belongs to this user.
    ///   - isForeignHome: returns whether a value of `HOME` is ignored, because it is the home of another user.
    public init(
        environment: [String: String], stateFolder: String? = nil, configurationFile: String? = nil, socket: String? = nil,
        isOwnFolder: (String) -> Bool = HexlistPaths.isOwnFolder, isForeignHome: (String) -> Bool = HexlistPaths.isForeignHome
    ) {
        func variable(_ name: String) -> String? {
            environment[name].flatMap { $0.isEmpty ? nil : $0 }
        }
        let home = variable("HOME").flatMap { isForeignHome($0) ? nil : $0 } ?? HexlistPaths.homeFolder()
        /// Returns the folder that a variable names, or the default. The XDG specification says that relative paths are ignored.
        func base(_ name: String, _ fallback: String) -> String {
            if let path = variable(name), path.hasPrefix("/") { return path }
            return HexlistPaths.join(home, fallback)
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

    /// The folder of hooks, in the same folder as the configuration file.
    public var hookFolder: String { HexlistPaths.join(HexlistPaths.folder(of: configurationFile), "hooks") }

    /// The folder of the cache of fetched files. Each state folder has its own cache.
    public var cacheFolder: String {
        HexlistPaths.join(stateFolderIsNamed ? stateFolder : cacheHome, stateFolderIsNamed ? "cache" : "hexlist")
    }

    /// The name of the file in the state folder that a running daemon keeps locked. It contains the process id and the path of the socket.
    public static let lockName = "hexlistd.lock"

    /// Whether a path is a folder that belongs to the user of this process.
    public static func isOwnFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR && status.st_uid == geteuid()
    }

    /// Whether a value of `HOME` is the home of another user, as after `sudo -E -u`: the folder belongs to another user, this user cannot
    /// write to it, and this user has a home folder in the user database.
    public static func isForeignHome(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_uid != geteuid() && access(path, W_OK | X_OK) != 0 && isOwnFolder(homeFolder())
    }

    public static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Returns an absolute path. Relative paths are resolved against the working directory.
    public static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        return join(String(cString: folder), path)
    }

    public static func join(_ folder: String, _ name: String) -> String { folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)" }

    /// Returns the folder that contains `path`; `.` for a path without a slash.
    public static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Returns the home folder of this user from the user database, which is used if `HOME` is missing or belongs to another user.
    public static func homeFolder() -> String {
        guard let entry = getpwuid(geteuid()), let home = entry.pointee.pw_dir else { return "/" }
        return String(cString: home)
    }
}
