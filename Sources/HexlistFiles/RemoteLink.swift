internal import Crypto
public import HexlistModel

/// A file of a remote of rclone, as the `url` of a transfer has it: `rclone://REMOTE/PATH`, both percent-encoded.
///
/// It never leaves this machine, and is none that a peer's hex could have: there it is an address like any other.
public struct RemoteLink: Sendable, CustomStringConvertible {
    public static let scheme = "rclone"
    private static let start = Array("\(scheme)://".utf8)
    /// Three bytes for each of a name and a path.
    private static let maximumBytes = 16_384

    /// The name of the remote, as rclone's configuration has it.
    public let remote: String
    public let path: SharePath

    public init(remote: String, path: SharePath) { (self.remote, self.path) = (remote, path) }

    /// `nil` for anything else.
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

    /// What stands for the remote in the queue of transfers, which knows peers only: a UUID made of its name, and nobody's.
    public var lane: PeerID {
        var digest = SHA256()
        digest.update(data: Self.start + Array(remote.utf8))
        let bytes = Array(digest.finalize())
        let word = { (part: ArraySlice<UInt8>) in part.reduce(0) { $0 << 8 | UInt64($1) } }
        return PeerID(UUIDBytes(high: word(bytes[..<8]), low: word(bytes[8..<16])))
    }
}

/// Why a file of a remote was not copied, and what that means for its transfer.
public struct RemoteFault: Error, Sendable {
    public var outcome: TransferQueue.Outcome
    /// A word.
    public var reason: String
    /// For people.
    public var message: String

    public init(_ outcome: TransferQueue.Outcome, _ reason: String, _ error: HexlistError) {
        self.outcome = outcome
        self.reason = reason
        message = [error.message, error.hint ?? ""].filter { !$0.isEmpty }.joined(separator: " ")
    }
}
