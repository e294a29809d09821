internal import Crypto
public import HexlistModel

/// The number of a transfer: that of its row in the store.
public struct TransferID: Hashable, Comparable, Sendable, CustomStringConvertible {
    public let value: Int64

    public init(_ value: Int64) { self.value = value }

    public var description: String { String(value) }

    public static func < (left: TransferID, right: TransferID) -> Bool { left.value < right.value }
}

/// The number of one attempt at a transfer, never used again by one `TransferQueue`.
public struct TransferAttemptID: Hashable, Sendable, CustomStringConvertible {
    public let value: UInt64

    public init(_ value: UInt64) { self.value = value }

    public var description: String { String(value) }
}

/// What is fetched where: a transfer with the same key is the same one.
public struct TransferKey: Hashable, Sendable {
    /// 16 bytes of a SHA-256, so that a key is small whatever a peer writes into a link.
    private let high: UInt64
    private let low: UInt64

    /// - Parameters:
    ///   - url: the link's, byte for byte.
    ///   - folder: the path of the folder it is fetched into.
    public init(url: String, folder: String) { self.init([Array(url.utf8) + [0], Array(folder.utf8)]) }

    /// The key of a file that is put under its digest. Peers that offer the same file have a transfer each.
    public init(digest: [UInt8], peer: PeerID) { self.init([digest, Array(peer.description.utf8)]) }

    private init(_ parts: [[UInt8]]) {
        var digest = SHA256()
        for part in parts { digest.update(data: part) }
        let bytes = Array(digest.finalize())
        let word = { (part: ArraySlice<UInt8>) in part.reduce(0) { $0 << 8 | UInt64($1) } }
        (high, low) = (word(bytes[..<8]), word(bytes[8..<16]))
    }
}

public enum TransferState: Equatable, Sendable {
    case waiting(TransferWait)
    case running
    /// It failed repeatedly by its source's own fault.
    case paused(until: ContinuousClock.Instant)
    case done, failed, cancelled
}

/// What a transfer waits for.
public enum TransferWait: String, CaseIterable, Sendable {
    /// A place: as many run as may.
    case turn
    /// The peer, which is not there.
    case peer
    /// The link, which was lost; it is tried again soon.
    case link
    /// Room on the disk.
    case disk
    /// A source that failed; it is tried again soon.
    case source
}
