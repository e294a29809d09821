import HexlistAPI
import HexlistFiles
import HexlistModel
import Synchronization

/// The entries of a folder of a remote, in one order.
struct RemoteListing: Sendable {
    let order: FileOrder
    let entries: [FileEntry]
    let leftOut: Int

    init(_ entries: [FileEntry], by order: FileOrder, leftOut: Int) {
        self.order = order
        self.leftOut = leftOut
        self.entries = entries.sorted { Self.precedes(Place($0, order), Place($1, order)) }
    }

    /// A place in the order: what is sorted by, and the name.
    private struct Place {
        var key: Int64
        var name: String

        init(key: Int64, name: String) { (self.key, self.name) = (key, name) }

        init(_ entry: FileEntry, _ order: FileOrder) {
            name = entry.name
            key =
                switch order {
                case .name: 0
                case .size: entry.size ?? -1
                case .time: entry.modified?.milliseconds ?? .min
                }
        }
    }

    /// The largest and the newest first; the names go up.
    private static func precedes(_ left: Place, _ right: Place) -> Bool {
        left.key != right.key ? left.key > right.key : left.name.utf8.lexicographicallyPrecedes(right.name.utf8)
    }

    /// The entries behind a place: its key, a `/`, and the name, which has none.
    /// - Returns: `nil` for a text that is no place.
    func page(after: String?, limit: Int) -> FilePage? {
        var start = 0
        if let after {
            let bytes = after.utf8
            guard let slash = bytes.firstIndex(of: UInt8(ascii: "/")), let key = Int64(String(decoding: bytes[..<slash], as: UTF8.self))
            else { return nil }
            let place = Place(key: key, name: String(decoding: bytes[bytes.index(after: slash)...], as: UTF8.self))
            start = entries.firstIndex { Self.precedes(place, Place($0, order)) } ?? entries.count
        }
        let end = min(entries.count, start + limit)
        let next = end < entries.count && end > start ? Place(entries[end - 1], order) : nil
        return FilePage(items: Array(entries[start..<end]), next: next.map { "\($0.key)/\($0.name)" }, leftOut: leftOut)
    }
}

/// The newest listings, for the pages after the first: few, and for a minute.
final class ListingCache: Sendable {
    private static let most = 4
    private static let age = Duration.seconds(60)

    private struct Kept {
        let remote: [UInt8]
        let folder: [UInt8]
        let listing: RemoteListing
        let at: ContinuousClock.Instant
    }

    private let kept = Mutex<[Kept]>([])

    func listing(_ remote: String, _ folder: String, _ order: FileOrder, now: ContinuousClock.Instant) -> RemoteListing? {
        kept.withLock { kept in
            kept.removeAll { $0.at + Self.age < now }
            return kept.last {
                $0.listing.order == order && $0.remote.elementsEqual(remote.utf8) && $0.folder.elementsEqual(folder.utf8)
            }?.listing
        }
    }

    /// Keeps a listing, and forgets the oldest where there are too many of them, or their entries are.
    func keep(_ listing: RemoteListing, _ remote: String, _ folder: String, now: ContinuousClock.Instant) {
        kept.withLock { kept in
            kept.removeAll {
                $0.at + Self.age < now
                    || $0.listing.order == listing.order && $0.remote.elementsEqual(remote.utf8) && $0.folder.elementsEqual(folder.utf8)
            }
            kept.append(Kept(remote: Array(remote.utf8), folder: Array(folder.utf8), listing: listing, at: now))
            while kept.count > 1,
                kept.count > Self.most || kept.reduce(0, { $0 + $1.listing.entries.count }) > RcloneRemote.mostEntries
            {
                kept.removeFirst()
            }
        }
    }

    func clear() { kept.withLock { $0 = [] } }

    var entryCount: Int { kept.withLock { $0.reduce(0) { $0 + $1.listing.entries.count } } }
}
