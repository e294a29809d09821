import HexlistFiles
import HexlistModel

/// The reason why a request to rclone failed.
enum RcloneFault: Error, Equatable, Sendable {
    /// There is no rclone in `PATH`.
    case missing
    case tooOld(String)
    /// The configuration is encrypted, and no password command is configured.
    case encrypted
    /// The password command failed, or its password is wrong.
    case noPassword
    /// The configuration file named in the settings does not exist.
    case noConfiguration(String)
    /// The process ended before it answered. The value is its last output.
    case notStarted(String)
    /// The process ended during the request. The value is its last output.
    case ended(String)
    /// The daemon is stopping.
    case stopping
    /// rclone did not answer in time.
    case timedOut
    /// The response is malformed, or exceeds its size limit.
    case unreadable(String)
    /// There are too many entries in a folder, or too many concurrent requests.
    case tooMany(String)
    /// rclone responded with an error.
    case refused(status: Int, message: String)
    /// The request failed repeatedly. The same request is refused for this number of seconds.
    case paused(seconds: Int64)

    /// The cause of an error that rclone reported, derived from its message because rclone has no error codes.
    enum Cause: Sendable {
        case notFound, noLinks, signIn
        /// The configuration of the remote is wrong and must be changed.
        case settings
        /// A temporary failure of the service or the network.
        case temporary
    }

    /// The cause, if rclone reported an error with a known message; otherwise `nil`.
    var cause: Cause? {
        guard case .refused(let status, let message) = self else { return nil }
        let text = message.lowercased()
        let says = { (words: [String]) in words.contains { text.utf8.firstRange(of: $0.utf8) != nil } }
        if says([
            "obscured", "contains invalid characters", "didn't find backend", "didn't find section", "unknown type", "can't point",
            "can't use",
            "check the value of", "protocol scheme", "invalid url", "parse \"", "must be set", "must set", "need to set", "not set",
            "is required",
            "not-specified", "invalid port", "no such host in config", "missing in the config", "not configured",
        ]) {
            return .settings
        }
        if status == 404 || says(["not found", "not_found", "doesn't exist"]) && !says(["executable"]) { return .notFound }
        if says(["public link", "publiclink", "can't expire", "expire is not", "expiry", "unlink", "not supported", "not implemented"]) {
            return .noLinks
        }
        if says([
            "invalid_grant", "expired_access_token", "invalid_access_token", "empty token", "couldn't fetch token", "cannot fetch token",
            "token expired", "unauthorized", "401", "reconnect", "access denied", "accessdenied", "invalidaccesskey",
            "signaturedoesnotmatch",
            "unable to authenticate", "login incorrect", "logon failure", "invalid_client",
        ]) {
            return .signIn
        }
        if says([
            "connection refused", "connection reset", "connection closed", "no such host", "no route to host", "network is unreachable",
            "server misbehaving", "broken pipe", "eof", "timeout", "timed out", "deadline exceeded", "temporar", "try again", "too many",
            "too_many",
            "rate limit", "rate_limit", "ratelimit", "slow down", "slowdown", "service unavailable", "bad gateway", "internal server error",
        ]) {
            return .temporary
        }
        return nil
    }

    /// Whether the request is retried after a delay. Errors of rclone with an unknown message and a status of at least 500 are retried.
    var isTemporary: Bool {
        switch self {
        case .ended, .timedOut: true
        case .refused(let status, _): cause == .temporary || cause == nil && status >= 500
        case .missing, .tooOld, .encrypted, .noPassword, .noConfiguration, .notStarted, .stopping, .unreadable, .tooMany, .paused: false
        }
    }

    /// Returns the error as it is shown to the user.
    /// - Parameters:
    ///   - remote: the service name of the remote.
    ///   - path: the path in the remote.
    ///   - kind: rclone's type of the remote.
    ///   - command: the rclone command with the configuration in use, to be shown in hints.
    func error(_ remote: String = "", _ path: String = "", kind: String = "", command: String = "rclone") -> HexlistError {
        let object = "\(TerminalText.clean(remote, columns: 60)):\(TerminalText.clean(path, columns: 200))"
        switch self {
        case .missing:
            return HexlistError(
                .gone, "rclone is not installed.", hint: "Install it (`apt install rclone`), then add a remote with `rclone config`.")
        case .tooOld(let version):
            return HexlistError(
                .gone, "rclone \(version) is too old.", hint: "Install \(Self.oldest.map { "\($0)" }.joined(separator: ".")) or newer.")
        case .encrypted:
            return HexlistError(
                .gone, "rclone's configuration is encrypted.",
                hint: "Name a command that prints its password in `services.rclone.passwordCommand`.")
        case .noPassword:
            return HexlistError(
                .gone, "The command in `services.rclone.passwordCommand` did not print the password of rclone's configuration.",
                hint: "Try it with `rclone listremotes --password-command`.")
        case .noConfiguration(let path):
            return HexlistError(
                .gone, "rclone's configuration \(TerminalText.clean(path, columns: 200)) does not exist.",
                hint: "Change `services.rclone.config`, or create the file with `\(command) config`.")
        case .notStarted(let words):
            return HexlistError(.gone, "rclone could not be started\(Self.quote(words)).", hint: "Try `rclone rcd --rc-no-auth` by hand.")
        case .ended(let words): return HexlistError(.gone, "rclone ended during a request\(Self.quote(words)).")
        case .stopping: return HexlistError(.gone, "hexlistd is stopping.")
        case .timedOut: return HexlistError(.gone, "\(object) did not answer in time.", hint: "Try again later.")
        case .unreadable(let what): return HexlistError(.internal, "The response of rclone is invalid (\(what)).")
        case .tooMany(let what): return HexlistError(.tooLarge, what)
        case .paused(let seconds):
            return HexlistError(
                .recentlyFailed, "\(object) failed repeatedly; it can be retried in \(seconds) s.", hint: "`--force` retries now.")
        case .refused(_, let message):
            let said = TerminalText.clean(message, columns: 300)
            switch cause {
            case .notFound where path.isEmpty:
                return HexlistError(
                    .notFound, "The root folder of \(object) does not exist.",
                    hint: "Create it, or change the remote with `\(command) config`.")
            case .notFound: return HexlistError(.notFound, "\(object) does not exist.", hint: "`hexlist files` lists what is there.")
            case .noLinks: return HexlistError(.notSupported, "No link can be created for \(object): \(said)")
            case .signIn:
                return HexlistError(
                    .gone, "\(object) requires a new sign-in: \(said)",
                    hint: Self.withTokens.contains(kind)
                        ? "`\(command) config reconnect \(TerminalText.clean(remote, columns: 60)):` signs in again."
                        : "Check its user, password or keys with `\(command) config`.")
            case .settings:
                return HexlistError(
                    .gone, "rclone cannot use \(TerminalText.clean(remote, columns: 60)): \(said)",
                    hint: Self.settingsHint(message, command))
            case .temporary:
                let isAddress = ["no such host", "connection refused", "no route to host"].contains {
                    message.utf8.firstRange(of: $0.utf8) != nil
                }
                return HexlistError(
                    .gone, "\(object) failed: \(said)",
                    hint: isAddress ? "Try again later, or check its address with `\(command) config`." : "Try again later.")
            case nil:
                return HexlistError(
                    .gone, "\(object) failed: \(said)", hint: "`\(command) config` shows and changes the remote's settings.")
            }
        }
    }

    /// Returns a hint for correcting the configuration of a remote, derived from rclone's message.
    private static func settingsHint(_ message: String, _ command: String) -> String {
        let says = { (words: String) in message.utf8.firstRange(of: words.utf8) != nil }
        if says("obscured") { return "Set the password with `\(command) config`; the file must contain the output of `rclone obscure`." }
        if says("invalid characters") { return "Rename it with `\(command) config`." }
        if says("find backend") { return "Change its type with `\(command) config`; `rclone help backends` lists all types." }
        if says("find section") { return "It has no type, or refers to a remote that does not exist. Change it with `\(command) config`." }
        return "Change it with `\(command) config`."
    }

    /// Types of remotes that log in with an OAuth token, which `rclone config reconnect` renews.
    private static let withTokens: Set = [
        "acd", "box", "drive", "dropbox", "gcs", "google cloud storage", "google photos", "hidrive", "jottacloud", "mailru", "onedrive",
        "pcloud", "pikpak", "premiumizeme", "putio", "sharefile", "yandex", "zoho",
    ]

    /// Converts the fault of a copy to the fault of a transfer. If rclone itself cannot be used, the transfer is interrupted and tried
    /// again. Other errors are attributed to the remote.
    func remoteFault(_ error: HexlistError) -> RemoteFault {
        switch self {
        case .missing, .tooOld, .encrypted, .noPassword, .noConfiguration, .notStarted, .ended, .stopping:
            return RemoteFault(.interrupted(progressed: false), "rclone", error)
        case .refused(_, let message) where message.utf8.firstRange(of: "no space left on device".utf8) != nil:
            return RemoteFault(.diskFull, "diskFull", HexlistError(.storageFull, "There is not enough space on the disk."))
        case .refused where cause == .notFound: return RemoteFault(.final, "notFound", error)
        case .refused, .timedOut, .unreadable, .tooMany, .paused: return RemoteFault(.sourceFault, "remote", error)
        }
    }

    private static func quote(_ words: String) -> String {
        let text = TerminalText.clean(words, columns: 300)
        return text.isEmpty ? "" : " (\(text))"
    }

    /// The oldest supported version of rclone: major and minor number.
    static let oldest = [1, 60]
}
