internal import Crypto
public import HexlistModel

/// The ID of a transfer: its row ID in the store.
public struct TransferID: Hashable, Comparable, Sendable, CustomStringConvertible {
    public let value: Int64

    public init(_ value: Int64) { self.value = value }

    public var description: String { String(value) }

    public static func < (left: TransferID, right: TransferID) -> Bool { left.value < right.value }
}

/// The ID of one attempt at a transfer, unique within a `TransferQueue`.
public struct TransferAttemptID: Hashable, Sendable, CustomStringConvertible {
    public let value: UInt64

    public init(_ value: UInt64) { self.value = value }

    public var description: String { String(value) }
}

/// Identifies the source and the destination of a transfer. Transfers with the same key are duplicates of each other.
public struct TransferKey: Hashable, Sendable {
    /// The first 16 bytes of a SHA-256, so that the key is small even if the link is long.
    private let high: UInt64
    private let low: UInt64

    /// - Parameters:
    ///   - url: the link, compared byte for byte.
    ///   - folder: the path of the destination folder.
    public init(url: String, folder: String) { self.init([Array(url.utf8) + [0], Array(folder.utf8)]) }

    /// The key of a transfer into the cache, where files are stored under their digest. Each peer that offers the file has its own
    /// transfer.
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
    /// Suspended after repeated failures of its source.
    case paused(until: ContinuousClock.Instant)
    case done, failed, cancelled
}

/// The condition for which a transfer waits.
public enum TransferWait: String, CaseIterable, Sendable {
    /// A slot: all are in use.
    case slot = "turn"
    /// The peer: it is offline.
    case peer
    /// A connection: the last one was lost. Another attempt follows within a minute.
    case link
    /// Space on the disk: it is full.
    case disk
    /// The source: it failed. Another attempt follows within seconds.
    case source
}
