import HexlistAPI
import HexlistFiles
import HexlistModel
import Synchronization

/// The sorted entries of a folder of a remote.
struct RemoteListing: Sendable {
    let order: FolderSortOrder
    let entries: [FileEntry]
    /// Number of entries that the listing omits.
    let leftOut: Int

    init(_ entries: [FileEntry], by order: FolderSortOrder, leftOut: Int) {
        self.order = order
        self.leftOut = leftOut
        self.entries = entries.sorted { Self.precedes(Cursor($0, order), Cursor($1, order)) }
    }

    /// The sort key of an entry, which is also the cursor of a page.
    private struct Cursor {
        var key: Int64
        var name: String

        init(key: Int64, name: String) { (self.key, self.name) = (key, name) }

        init(_ entry: FileEntry, _ order: FolderSortOrder) {
            name = entry.name
            key =
                switch order {
                case .name: 0
                case .size: entry.size ?? -1
                case .time: entry.modified?.milliseconds ?? .min
                }
        }
    }

    /// Whether one cursor sorts before another: larger numbers first, then names in ascending order.
    private static func precedes(_ left: Cursor, _ right: Cursor) -> Bool {
        left.key != right.key ? left.key > right.key : left.name.utf8.lexicographicallyPrecedes(right.name.utf8)
    }

    /// Returns a page of entries.
    /// - Parameter after: the cursor of the previous page's last entry: the sort number, a `/`, and the name. `nil` for the first page.
    /// - Returns: the page; `nil` if the cursor is invalid.
    func page(after: String?, limit: Int) -> FilePage? {
        var start = 0
        if let after {
            let bytes = after.utf8
            guard let slash = bytes.firstIndex(of: UInt8(ascii: "/")), let key = Int64(String(decoding: bytes[..<slash], as: UTF8.self))
            else { return nil }
            let cursor = Cursor(key: key, name: String(decoding: bytes[bytes.index(after: slash)...], as: UTF8.self))
            start = entries.firstIndex { Self.precedes(cursor, Cursor($0, order)) } ?? entries.count
        }
        let end = min(entries.count, start + limit)
        let next = end < entries.count && end > start ? Cursor(entries[end - 1], order) : nil
        return FilePage(items: Array(entries[start..<end]), next: next.map { "\($0.key)/\($0.name)" }, leftOut: leftOut)
    }
}

/// Caches the latest listings for a minute each, to serve their later pages.
final class ListingCache: Sendable {
    private static let maximumCount = 4
    private static let maximumAge = Duration.seconds(60)

    private struct CachedListing {
        let remote: [UInt8]
        let folder: [UInt8]
        let listing: RemoteListing
        let at: ContinuousClock.Instant
    }

    private let kept = Mutex<[CachedListing]>([])

    func listing(_ remote: String, _ folder: String, _ order: FolderSortOrder, now: ContinuousClock.Instant) -> RemoteListing? {
        kept.withLock { kept in
            kept.removeAll { $0.at + Self.maximumAge < now }
            return kept.last {
                $0.listing.order == order && $0.remote.elementsEqual(remote.utf8) && $0.folder.elementsEqual(folder.utf8)
            }?.listing
        }
    }

    /// Caches a listing, and evicts the oldest ones if there are too many listings or entries.
    func keep(_ listing: RemoteListing, _ remote: String, _ folder: String, now: ContinuousClock.Instant) {
        kept.withLock { kept in
            kept.removeAll {
                $0.at + Self.maximumAge < now
                    || $0.listing.order == listing.order && $0.remote.elementsEqual(remote.utf8) && $0.folder.elementsEqual(folder.utf8)
            }
            kept.append(CachedListing(remote: Array(remote.utf8), folder: Array(folder.utf8), listing: listing, at: now))
            while kept.count > 1,
                kept.count > Self.maximumCount || kept.reduce(0, { $0 + $1.listing.entries.count }) > RcloneRemote.maximumEntries
            {
                kept.removeFirst()
            }
        }
    }

    func clear() { kept.withLock { $0 = [] } }

    var entryCount: Int { kept.withLock { $0.reduce(0) { $0 + $1.listing.entries.count } } }
}
