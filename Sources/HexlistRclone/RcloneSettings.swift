import HexlistModel

/// Where rclone and its configuration are, and how long its process is kept.
public struct RcloneSettings: Sendable {
    /// The path of the configuration file; `nil` for rclone's own choice.
    public var configuration: String?
    /// The command whose output is the password of an encrypted configuration, as rclone's `--password-command` takes it.
    public var passwordCommand: String?
    /// The environment of the daemon, of which rclone gets what `childEnvironment` leaves.
    public var environment: [String: String]
    /// The time after the last request after which the process ends.
    public var idle = Duration.seconds(60)

    public init(configuration: String? = nil, passwordCommand: String? = nil, environment: [String: String]) {
        self.configuration = configuration
        self.passwordCommand = passwordCommand
        self.environment = environment
    }

    /// The first executable `rclone` of `PATH`; relative folders of it are passed over.
    var program: String? {
        let path = environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
        return path.utf8.split(separator: UInt8(ascii: ":")).lazy.map { String(decoding: $0, as: UTF8.self) + "/rclone" }
            .first { $0.utf8.first == UInt8(ascii: "/") && Executable.isThere($0) }
    }

    /// rclone with this configuration, as a person types it.
    var command: String {
        guard let configuration else { return "rclone" }
        let isPlain = configuration.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "/._-+~".utf8.contains($0) }
        return "rclone --config \(isPlain ? configuration : "'\(TerminalText.clean(configuration, columns: 200))'")"
    }

    /// Every file that may be the configuration: the one that is named, or each that rclone looks for.
    var configurationFiles: [String] {
        if let configuration { return [configuration] }
        let home = environment["HOME"] ?? ""
        let folder = environment["XDG_CONFIG_HOME"] ?? "\(home)/.config"
        return ["\(folder)/rclone/rclone.conf", "\(home)/.config/rclone/rclone.conf", "\(home)/.rclone.conf"]
    }

    /// The environment of the process: the daemon's without what rclone or systemd would take for theirs, and the login.
    func childEnvironment(_ login: RcloneLogin) -> [String] {
        var variables = environment.filter { name, _ in
            !name.utf8.starts(with: "RCLONE_".utf8) && !name.utf8.starts(with: "HEXLIST_".utf8) && !Self.ofSystemd.contains(name)
        }
        variables["RCLONE_RC_USER"] = login.user
        variables["RCLONE_RC_PASS"] = login.password
        variables["RCLONE_ASK_PASSWORD"] = "false"
        variables["RCLONE_CONFIG"] = configuration
        variables["RCLONE_PASSWORD_COMMAND"] = passwordCommand
        // One attempt is one attempt: the request queue counts them.
        variables["RCLONE_LOW_LEVEL_RETRIES"] = "1"
        variables["RCLONE_CONTIMEOUT"] = "15s"
        // A file is written from its beginning to its end, so that its length says how far it is; and for as long as that takes.
        variables["RCLONE_MULTI_THREAD_STREAMS"] = "0"
        variables["RCLONE_LOCAL_NO_PREALLOCATE"] = "true"
        variables["RCLONE_RC_SERVER_READ_TIMEOUT"] = "\(RcloneRemote.copyHours)h"
        variables["RCLONE_RC_SERVER_WRITE_TIMEOUT"] = "\(RcloneRemote.copyHours)h"
        variables["RCLONE_TIMEOUT"] = "60s"
        return variables.map { "\($0)=\($1)" }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    private static let ofSystemd: Set = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"]
}

/// The user and the password of one process, random and never used again.
struct RcloneLogin: Sendable {
    let user = RcloneLogin.text()
    let password = RcloneLogin.text()

    /// 128 bits of the system's randomness as digits.
    private static func text() -> String {
        var random = SystemRandomNumberGenerator()
        return "\(random.next() as UInt64)-\(random.next() as UInt64)"
    }
}
