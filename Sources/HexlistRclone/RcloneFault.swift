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
        case notFound, noLinks, signIn, mayPass
    }

    var meaning: Meaning? {
        guard case .refused(let status, let message) = self else { return nil }
        let text = message.lowercased()
        let says = { (words: [String]) in words.contains { text.utf8.firstRange(of: $0.utf8) != nil } }
        if status == 404 || says(["not found", "not_found", "doesn't exist"]) && !says(["section"]) { return .notFound }
        if says(["public link", "publiclink", "can't expire", "expire is not", "expiry", "unlink", "not supported", "not implemented"]) {
            return .noLinks
        }
        if says([
            "invalid_grant", "expired_access_token", "invalid_access_token", "empty token", "couldn't fetch token", "cannot fetch token",
            "token expired", "unauthorized", "401", "didn't find section", "reconnect", "access denied", "accessdenied", "invalidaccesskey",
            "signaturedoesnotmatch",
        ]) {
            return .signIn
        }
        return status == 400 || status == 403 ? nil : .mayPass
    }

    /// Whether the same request may succeed a moment later.
    var mayPass: Bool {
        switch self {
        case .ended, .timedOut: true
        case .refused: meaning == .mayPass
        case .missing, .tooOld, .encrypted, .noPassword, .notStarted, .stopping, .unreadable, .tooMany, .paused: false
        }
    }

    /// The fault as a person sees it.
    /// - Parameters:
    ///   - remote: the remote that was asked.
    ///   - path: in it.
    func error(_ remote: String = "", _ path: String = "") -> HexlistError {
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
            case .notFound: return HexlistError(.notFound, "There is no \(place).", hint: "`hexlist files` lists what is there.")
            case .noLinks: return HexlistError(.notSupported, "There is no link for \(place): \(said)")
            case .signIn:
                return HexlistError(
                    .gone, "\(place) wants a sign-in: \(said)",
                    hint: "`rclone config reconnect \(TerminalText.clean(remote, columns: 60)):` signs in again.")
            case .mayPass, nil: return HexlistError(.gone, "\(place) failed: \(said)", hint: "Try again later.")
            }
        }
    }

    /// What it means for a file that was to be copied: rclone that cannot be used is waited for, what the remote does counts as its failure.
    func asRemote(_ remote: String, _ path: String) -> RemoteFault {
        let error = error(remote, path)
        switch self {
        case .missing, .tooOld, .encrypted, .noPassword, .notStarted, .ended, .stopping:
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
