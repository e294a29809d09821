import HexlistFiles
import HexlistModel

/// Why a request to rclone came to nothing.
enum RcloneFault: Error, Equatable, Sendable {
    /// There is no rclone on `PATH`.
    case missing
    case tooOld(String)
    /// The configuration is encrypted, and no command for its password is configured.
    case encrypted
    /// The command for the password failed, or gave a wrong one.
    case noPassword
    /// The configuration file that is configured does not exist.
    case noConfiguration(String)
    /// rclone ended before it answered; its last words.
    case notStarted(String)
    /// rclone ended in the middle of the request; its last words.
    case ended(String)
    /// The daemon stops.
    case stopping
    /// rclone did not answer in time.
    case timedOut
    /// rclone's answer is not what it should be, or longer than it may be.
    case unreadable(String)
    /// More entries in a folder, or more requests at once, than are taken.
    case tooMany(String)
    /// rclone answered with an error.
    case refused(status: Int, message: String)
    /// The same request has failed repeatedly, and pauses for so many seconds.
    case paused(seconds: Int64)

    /// The meaning of an error of rclone, by its words: it has no codes.
    enum Meaning: Sendable {
        case notFound, noLinks, signIn
        /// The remote's part of the configuration is wrong; nothing but a change of it helps.
        case settings
        /// The service, or the way to it, has no answer for now.
        case mayPass
    }

    var meaning: Meaning? {
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
            return .mayPass
        }
        return nil
    }

    /// Whether the same request is made again a moment later. An error of unknown words is: that costs little.
    var mayPass: Bool {
        switch self {
        case .ended, .timedOut: true
        case .refused(let status, _): meaning == .mayPass || meaning == nil && status >= 500
        case .missing, .tooOld, .encrypted, .noPassword, .noConfiguration, .notStarted, .stopping, .unreadable, .tooMany, .paused: false
        }
    }

    /// The fault as a person sees it.
    /// - Parameters:
    ///   - remote: the remote that was asked, as a service.
    ///   - path: in it.
    ///   - kind: rclone's name of the remote's kind.
    ///   - command: rclone with the configuration that is used here, as a person types it.
    func error(_ remote: String = "", _ path: String = "", kind: String = "", command: String = "rclone") -> HexlistError {
        let place = "\(TerminalText.clean(remote, columns: 60)):\(TerminalText.clean(path, columns: 200))"
        switch self {
        case .missing:
            return HexlistError(
                .gone, "rclone is not installed.", hint: "Install it (`apt install rclone`) and set up a remote with `rclone config`.")
        case .tooOld(let version):
            return HexlistError(
                .gone, "rclone \(version) is too old.", hint: "Install \(Self.oldest.map { "\($0)" }.joined(separator: ".")) or newer.")
        case .encrypted:
            return HexlistError(
                .gone, "rclone's configuration is encrypted.",
                hint: "Name a command that prints its password in `services.rclone.passwordCommand`.")
        case .noPassword:
            return HexlistError(
                .gone, "The command in `services.rclone.passwordCommand` gave no password that opens rclone's configuration.",
                hint: "Try it with `rclone listremotes --password-command`.")
        case .noConfiguration(let path):
            return HexlistError(
                .gone, "rclone's configuration \(TerminalText.clean(path, columns: 200)) does not exist.",
                hint: "`services.rclone.config` names it: change that, or make the file with `\(command) config`.")
        case .notStarted(let words):
            return HexlistError(.gone, "rclone could not be started\(Self.quote(words)).", hint: "Try `rclone rcd --rc-no-auth` by hand.")
        case .ended(let words): return HexlistError(.gone, "rclone ended in the middle of a request\(Self.quote(words)).")
        case .stopping: return HexlistError(.gone, "hexlistd is stopping.")
        case .timedOut: return HexlistError(.gone, "\(place) did not answer in time.", hint: "Try again later.")
        case .unreadable(let what): return HexlistError(.internal, "rclone's answer could not be read (\(what)).")
        case .tooMany(let what): return HexlistError(.tooLarge, what)
        case .paused(let seconds):
            return HexlistError(
                .recentlyFailed, "\(place) failed repeatedly; it can be asked again in \(seconds) s.", hint: "`--force` asks now.")
        case .refused(_, let message):
            let said = TerminalText.clean(message, columns: 300)
            switch meaning {
            case .notFound where path.isEmpty:
                return HexlistError(
                    .notFound, "The folder that \(place) leads to does not exist there.",
                    hint: "Make it there, or change the remote with `\(command) config`.")
            case .notFound: return HexlistError(.notFound, "There is no \(place).", hint: "`hexlist files` lists what is there.")
            case .noLinks: return HexlistError(.notSupported, "There is no link for \(place): \(said)")
            case .signIn:
                return HexlistError(
                    .gone, "\(place) wants a sign-in: \(said)",
                    hint: Self.withTokens.contains(kind)
                        ? "`\(command) config reconnect \(TerminalText.clean(remote, columns: 60)):` signs in again."
                        : "Check its user, password or keys with `\(command) config`.")
            case .settings:
                return HexlistError(
                    .gone, "rclone cannot use \(TerminalText.clean(remote, columns: 60)): \(said)", hint: Self.mend(message, command))
            case .mayPass:
                let isAddress = ["no such host", "connection refused", "no route to host"].contains {
                    message.utf8.firstRange(of: $0.utf8) != nil
                }
                return HexlistError(
                    .gone, "\(place) failed: \(said)",
                    hint: isAddress ? "Try again later, or check its address with `\(command) config`." : "Try again later.")
            case nil:
                return HexlistError(
                    .gone, "\(place) failed: \(said)", hint: "`\(command) config` shows and changes the remote's settings.")
            }
        }
    }

    /// The hint for wrong settings of a remote.
    private static func mend(_ message: String, _ command: String) -> String {
        let says = { (words: String) in message.utf8.firstRange(of: words.utf8) != nil }
        if says("obscured") { return "Set the password with `\(command) config`; in the file it stands as `rclone obscure` prints it." }
        if says("invalid characters") { return "Rename it with `\(command) config`." }
        if says("find backend") { return "`\(command) config` changes its type; `rclone help backends` lists those there are." }
        if says("find section") { return "It has no type, or it leads to a remote that does not exist: `\(command) config` changes it." }
        return "`\(command) config` changes it."
    }

    /// Kinds of remotes that have a token of an OAuth sign-in, which `rclone config reconnect` renews.
    private static let withTokens: Set = [
        "acd", "box", "drive", "dropbox", "gcs", "google cloud storage", "google photos", "hidrive", "jottacloud", "mailru", "onedrive",
        "pcloud", "pikpak", "premiumizeme", "putio", "sharefile", "yandex", "zoho",
    ]

    /// What it means for a file that was to be copied: rclone that cannot be used is waited for, what the remote does counts as its failure.
    func asRemote(_ error: HexlistError) -> RemoteFault {
        switch self {
        case .missing, .tooOld, .encrypted, .noPassword, .noConfiguration, .notStarted, .ended, .stopping:
            return RemoteFault(.interrupted(progressed: false), "rclone", error)
        case .refused(_, let message) where message.utf8.firstRange(of: "no space left on device".utf8) != nil:
            return RemoteFault(.diskFull, "diskFull", HexlistError(.storageFull, "There is no room for it on the disk."))
        case .refused where meaning == .notFound: return RemoteFault(.final, "notFound", error)
        case .refused, .timedOut, .unreadable, .tooMany, .paused: return RemoteFault(.sourceFault, "remote", error)
        }
    }

    private static func quote(_ words: String) -> String {
        let text = TerminalText.clean(words, columns: 300)
        return text.isEmpty ? "" : " (\(text))"
    }

    /// The oldest version whose answers are known.
    static let oldest = [1, 60]
}
