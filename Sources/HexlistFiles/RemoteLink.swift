internal import Crypto
public import HexlistModel

/// A link to a file of an rclone remote: `rclone://REMOTE/PATH`, both percent-encoded. Used as the URL of a transfer.
///
/// Such a link is valid on this machine only. In a hex of a peer, it is an ordinary URL.
public struct RemoteLink: Sendable, CustomStringConvertible {
    public static let scheme = "rclone"
    private static let start = Array("\(scheme)://".utf8)
    /// Maximum bytes of a link, in which each byte of name and path may be percent-encoded.
    private static let maximumBytes = 16_384

    /// The name of the remote in the configuration of rclone.
    public let remote: String
    public let path: SharePath

    public init(remote: String, path: SharePath) { (self.remote, self.path) = (remote, path) }

    /// Parses a link; `nil` if the URL is not a link of this form.
    public init?(_ url: String) {
        let bytes = Array(url.utf8)
        guard bytes.count <= Self.maximumBytes, bytes.starts(with: Self.start) else { return nil }
        let parts = bytes[Self.start.count...].split(separator: UInt8(ascii: "/"), maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, let remote = PercentEncoding.decode(String(decoding: parts[0], as: UTF8.self)),
            let path = SharePath(percentEncoded: parts[1]), !path.names.isEmpty
        else { return nil }
        self.init(remote: remote, path: path)
    }

    public var description: String { "\(Self.scheme)://\(PercentEncoding.encode(remote))/\(path.percentEncoded)" }

    /// A peer UUID that represents the remote in `TransferQueue`, which has one queue per peer. It is derived from the remote's name.
    public var lane: PeerID {
        var digest = SHA256()
        digest.update(data: Self.start + Array(remote.utf8))
        let bytes = Array(digest.finalize())
        let word = { (part: ArraySlice<UInt8>) in part.reduce(0) { $0 << 8 | UInt64($1) } }
        return PeerID(UUIDBytes(high: word(bytes[..<8]), low: word(bytes[8..<16])))
    }
}

/// The reason why a file of a remote was not copied, with the result of the attempt for the transfer.
public struct RemoteFault: Error, Sendable {
    public var outcome: TransferQueue.AttemptResult
    /// A stable code for logs and JSON.
    public var reason: String
    /// The message for users.
    public var message: String

    public init(_ outcome: TransferQueue.AttemptResult, _ reason: String, _ error: HexlistError) {
        self.outcome = outcome
        self.reason = reason
        message = [error.message, error.hint ?? ""].filter { !$0.isEmpty }.joined(separator: " ")
    }
}
