import HexlistModel

/// The configuration and environment of rclone, and the time after which its idle process is stopped.
public struct RcloneSettings: Sendable {
    /// Path of the configuration file; `nil` for rclone's default.
    public var configuration: String?
    /// The command that prints the password of an encrypted configuration (rclone's `--password-command`).
    public var passwordCommand: String?
    /// The environment of the daemon; `childEnvironment` derives that of rclone from it.
    public var environment: [String: String]
    /// Time without requests after which the process is stopped.
    public var idle = Duration.seconds(60)

    public init(configuration: String? = nil, passwordCommand: String? = nil, environment: [String: String]) {
        self.configuration = configuration
        self.passwordCommand = passwordCommand
        self.environment = environment
    }

    /// Path of the first executable `rclone` in `PATH`. Relative folders are ignored.
    var program: String? {
        let path = environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
        return path.utf8.split(separator: UInt8(ascii: ":")).lazy.map { String(decoding: $0, as: UTF8.self) + "/rclone" }
            .first { $0.utf8.first == UInt8(ascii: "/") && ExecutableFile.exists($0) }
    }

    /// The rclone command line with this configuration, to be shown to the user.
    var command: String {
        guard let configuration else { return "rclone" }
        let isPlain = configuration.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "/._-+~".utf8.contains($0) }
        return "rclone --config \(isPlain ? configuration : "'\(TerminalText.clean(configuration, columns: 200))'")"
    }

    /// All paths at which rclone may find its configuration.
    var configurationFiles: [String] {
        if let configuration { return [configuration] }
        let home = environment["HOME"] ?? ""
        let folder = environment["XDG_CONFIG_HOME"] ?? "\(home)/.config"
        return ["\(folder)/rclone/rclone.conf", "\(home)/.config/rclone/rclone.conf", "\(home)/.rclone.conf"]
    }

    /// Returns the environment of the rclone process: that of the daemon without variables of rclone, Hexlist and systemd, but with the
    /// credentials.
    func childEnvironment(_ login: RcloneServerCredentials) -> [String] {
        var variables = environment.filter { name, _ in
            !name.utf8.starts(with: "RCLONE_".utf8) && !name.utf8.starts(with: "HEXLIST_".utf8) && !Self.ofSystemd.contains(name)
        }
        variables["RCLONE_RC_USER"] = login.user
        variables["RCLONE_RC_PASS"] = login.password
        variables["RCLONE_ASK_PASSWORD"] = "false"
        variables["RCLONE_CONFIG"] = configuration
        variables["RCLONE_PASSWORD_COMMAND"] = passwordCommand
        // The request queue retries failed requests, so rclone should not.
        variables["RCLONE_LOW_LEVEL_RETRIES"] = "1"
        variables["RCLONE_CONTIMEOUT"] = "15s"
        // A copy is a single sequential stream without preallocation, so the length of the file shows its progress. Long copies do not time
        // out.
        variables["RCLONE_MULTI_THREAD_STREAMS"] = "0"
        variables["RCLONE_LOCAL_NO_PREALLOCATE"] = "true"
        variables["RCLONE_RC_SERVER_READ_TIMEOUT"] = "\(RcloneRemote.copyHours)h"
        variables["RCLONE_RC_SERVER_WRITE_TIMEOUT"] = "\(RcloneRemote.copyHours)h"
        variables["RCLONE_TIMEOUT"] = "60s"
        return variables.map { "\($0)=\($1)" }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    private static let ofSystemd: Set = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"]
}

/// Random credentials for the HTTP server of one rclone process.
struct RcloneServerCredentials: Sendable {
    let user = RcloneServerCredentials.text()
    let password = RcloneServerCredentials.text()

    /// Returns 128 random bits as decimal digits.
    private static func text() -> String {
        var random = SystemRandomNumberGenerator()
        return "\(random.next() as UInt64)-\(random.next() as UInt64)"
    }
}
