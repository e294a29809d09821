internal import GRDB
public import HexlistLists
public import HexlistModel

/// A list that a peer offers to share. The user has not joined it, or has joined it from another peer (`isFurtherMachine`).
public struct ListOffer: Sendable, Equatable {
    /// The number by which users refer to it.
    public var number: Int64
    public var peer: PeerID
    public var list: ListNode.ID
    public var title: String
    /// `read` or `write`.
    public var access: ListOverview.Access
    public var hexes: Int64
    public var links: Int64
    /// Milliseconds since 1970.
    public var at: Int64
    /// Whether the list is joined already from another peer. The peer of this offer claims to be a further machine of the owner; ask the
    /// user.
    public var isFurtherMachine: Bool
    /// Whether the user has declined the offer, or has left the list.
    public var isDeclined: Bool
}

/// A change that an overview of a peer announced.
public enum SharingChange: Sendable, Equatable {
    /// The peer offers a list for the first time.
    case offered(ListOffer)
    /// The owner has ended the sharing.
    case ended(SharedHex)
    /// The owner shares a list again after the sharing had ended. The hex goes on as it was; nothing has to be joined.
    case resumed(SharedHex)
    /// The owner has made a list read-only.
    case becameReadOnly(SharedHex)
    /// After a list became read-only: changes of this machine that the owner does not have.
    /// - Parameters:
    ///   - rows: the number of hexes and links that were added, changed or deleted here.
    ///   - copy: the hex of My Hexlist with those that were not deleted; `nil` if there are none.
    case rejected(SharedHex, rows: Int, copy: Int64?)
    /// A member has joined, or left.
    case member(SharedHex, SharedHex.State)
}

extension StoreReader {
    /// Returns the offers of trusted peers, oldest first, also declined ones.
    public func listOffers() throws -> [ListOffer] {
        try all(
            """
            SELECT listOffer.id, listOffer.peer, listOffer.list, listOffer.title, listOffer.access, listOffer.hexes, listOffer.links,
                listOffer.at, list.entry IS NOT NULL AND EXISTS (SELECT 1 FROM listPeer WHERE listPeer.list = list.id AND isOwner),
                listOffer.isDeclined
            FROM listOffer JOIN peer ON peer.uuid = listOffer.peer LEFT JOIN list ON list.uuid = listOffer.list
            WHERE peer.trust = 'trusted' ORDER BY listOffer.id
            """
        ) { row -> ListOffer? in
            guard let peer = row.uuid(1), let list = row.nodeID(2) else { return nil }
            return ListOffer(
                number: row.int64(0), peer: PeerID(peer), list: list, title: row.text(3),
                access: ListOverview.Access(rawValue: row.text(4)) ?? .read, hexes: row.int64(5), links: row.int64(6), at: row.int64(7),
                isFurtherMachine: row.bool(8), isDeclined: row.bool(9))
        }.compactMap(\.self)
    }
}

extension HexStore {
    /// Stores the overview of a trusted peer that is no own machine: offers, changes of access, and members that joined or left.
    ///
    /// No effect if the peer is not trusted any more, or if its clock differs too much (`ListOverview.clockDifference`). Entries without the
    /// time of the access are ignored. It may be in the future, because the owner's clock was wrong once.
    /// - Parameter now: milliseconds since 1970.
    /// - Returns: the changes, for the user.
    public func applyOverview(_ overview: ListOverview, from peer: PeerID, at now: Int64) async throws -> [SharingChange] {
        var overview = overview
        guard overview.clockDifference(at: now) == nil else { return [] }
        overview.lists.removeAll { $0.role == .shared && !(1...HybridClock.maximumTime ~= $0.accessAt) }
        guard try await read({ [overview] in try $0.isNews(overview, from: peer) }) else { return [] }
        return try await write { [overview] writer in
            try writer.change { try writer.isOtherPerson(peer) ? writer.applyOverview(overview, from: peer, at: now) : [] }
        }
    }
}

extension StoreReader {
    /// Whether a peer is trusted, and no own machine.
    fileprivate func isOtherPerson(_ peer: PeerID) throws -> Bool { try isTrusted(peer) && !isOwnMachine(peer) }

    /// Whether an overview differs from the stored state. Most do not.
    fileprivate func isNews(_ overview: ListOverview, from peer: PeerID) throws -> Bool {
        guard try isOtherPerson(peer) else { return false }
        let offers = try all("SELECT list, access, title, hexes, links, accessAt, isDeclined FROM listOffer WHERE peer = ?", peer.uuid) {
            (
                list: $0.nodeID(0), access: $0.text(1), title: $0.text(2), hexes: $0.int64(3), links: $0.int64(4), at: $0.int64(5),
                isDeclined: $0.bool(6)
            )
        }
        var open = Set(offers.filter { !$0.isDeclined }.compactMap(\.list))
        var count = 0
        for entry in overview.lists {
            open.remove(entry.list)
            switch try relation(of: peer, to: entry.list) {
            case .owner(_, let time) where entry.role == .shared:
                if entry.accessAt > time { return true }
            case .member(_, let state) where entry.role == .joined:
                if state != (entry.access == .ended ? .left : .joined) { return true }
            case .member, .owner: break
            case nil where try isOffer(entry):
                let known = offers.first { $0.list == entry.list }
                let isDeclined = known?.isDeclined ?? false
                let isKnown = known.map {
                    $0.at == entry.accessAt && $0.access == entry.access.rawValue
                        && $0.title.utf8.elementsEqual(entry.title.description.utf8)
                        && $0.hexes == entry.hexes && $0.links == entry.links
                }
                if !isDeclined { count += 1 }
                if !(isKnown ?? false), isDeclined || count <= ListLimits.offersPerPeer { return true }
            case nil: if try hasDeclinedOrLeft(before: entry, of: peer) { return true }
            }
        }
        return !open.isEmpty
    }

    /// Whether an entry is an offer: of a list that is not the user's own.
    fileprivate func isOffer(_ entry: ListOverview.Entry) throws -> Bool {
        guard entry.role == .shared, entry.access != .ended else { return false }
        return try first("SELECT 1 FROM list WHERE uuid = ? AND isOwned", entry.list.uuid) { _ in true } == nil
    }

    /// Whether an entry says that the owner has ended the sharing of a list after the user declined it, or left it. The next offer is a new
    /// one then.
    fileprivate func hasDeclinedOrLeft(before entry: ListOverview.Entry, of peer: PeerID) throws -> Bool {
        guard entry.role == .shared, entry.access == .ended else { return false }
        return try first(
            """
            SELECT 1 FROM listOffer WHERE peer = ?1 AND list = ?2 AND isDeclined AND accessAt < ?3
            UNION ALL SELECT 1 FROM list JOIN listPeer ON listPeer.list = list.id AND listPeer.peer = ?1 AND listPeer.isOwner
                WHERE list.uuid = ?2 AND NOT list.isOwned AND list.entry IS NULL AND list.access <> 'none' AND list.accessAt < ?3
            LIMIT 1
            """, peer.uuid, entry.list.uuid, entry.accessAt
        ) { _ in true } ?? false
    }

    fileprivate enum Relation {
        /// The peer is a machine of the owner. `at` is the hybrid time at which the owner set this access.
        case owner(ListOverview.Access, at: Int64)
        case member(ListOverview.Access, SharedHex.State)
    }

    /// Returns the relation of a peer to a list of My Hexlist; `nil` if there is none.
    fileprivate func relation(of peer: PeerID, to list: ListNode.ID) throws -> Relation? {
        let found = try first(
            """
            SELECT listPeer.isOwner, list.access, listPeer.access, listPeer.state, list.accessAt FROM list JOIN listPeer ON listPeer.list = list.id
            WHERE list.uuid = ? AND listPeer.peer = ? AND (list.entry IS NOT NULL OR list.isOwned)
            """, list.uuid, peer.uuid
        ) { (isOwner: $0.bool(0), own: $0.text(1), theirs: $0.text(2), state: $0.text(3), at: $0.int64(4)) }
        return found.map {
            $0.isOwner
                ? .owner(ListOverview.Access(rawValue: $0.own) ?? .ended, at: $0.at)
                : .member(ListOverview.Access(rawValue: $0.theirs) ?? .ended, SharedHex.State(rawValue: $0.state) ?? .offered)
        }
    }
}

extension StoreWriter {
    fileprivate func applyOverview(_ overview: ListOverview, from peer: PeerID, at now: Int64) throws -> [SharingChange] {
        var changes: [SharingChange] = []
        var (offered, open): (Set<ListNode.ID>, Int) = ([], 0)
        for entry in overview.lists {
            switch try relation(of: peer, to: entry.list) {
            // Two machines of the owner may answer differently for a while.
            case .owner(let access, let time) where entry.role == .shared && entry.accessAt > time:
                guard let record = try ListRecord(entry.list, on: self) else { break }
                if let change = try grant(entry.access, at: entry.accessAt, insteadOf: access, in: record, now: now) {
                    changes.append(change)
                }
            case .member(_, let state) where entry.role == .joined:
                let new = entry.access == .ended ? SharedHex.State.left : .joined
                guard state != new, let record = try ListRecord(entry.list, on: self) else { break }
                try run("UPDATE listPeer SET state = ? WHERE list = ? AND peer = ?", new.rawValue, record.row, peer.uuid)
                if let shared = try sharedHex(inList: record.row) { changes.append(.member(shared, new)) }
            case .owner, .member: break
            case nil:
                if try hasDeclinedOrLeft(before: entry, of: peer) { try forgetRefusal(of: entry, from: peer) }
                guard try isOffer(entry) else { break }
                if try !isDeclined(entry.list, from: peer) {
                    guard open < ListLimits.offersPerPeer else { break }
                    open += 1
                }
                offered.insert(entry.list)
                if let offer = try store(entry, from: peer, at: now) { changes.append(.offered(offer)) }
            }
        }
        // Declined offers stay, so that they do not come again.
        for list in try all("SELECT list FROM listOffer WHERE peer = ? AND NOT isDeclined", peer.uuid, read: { $0.nodeID(0) }) {
            if let list, !offered.contains(list) { try run("DELETE FROM listOffer WHERE peer = ? AND list = ?", peer.uuid, list.uuid) }
        }
        try run(
            """
            DELETE FROM listOffer WHERE peer = ?1 AND isDeclined AND id NOT IN
                (SELECT id FROM listOffer WHERE peer = ?1 AND isDeclined ORDER BY id DESC LIMIT \(Self.maximumDeclined))
            """, peer.uuid)
        changed(.list)
        return changes
    }

    /// Whether the user has declined an offer of a peer, or has left its list.
    private func isDeclined(_ list: ListNode.ID, from peer: PeerID) throws -> Bool {
        let isDeclined = try first("SELECT isDeclined FROM listOffer WHERE peer = ? AND list = ?", peer.uuid, list.uuid) { $0.bool(0) }
        return try isDeclined
            ?? (first("SELECT 1 FROM list WHERE uuid = ? AND (entry IS NOT NULL OR access <> 'none')", list.uuid) { _ in true } ?? false)
    }

    /// Forgets that the user has declined or left a list, because its owner has ended the sharing since.
    private func forgetRefusal(of ended: ListOverview.Entry, from peer: PeerID) throws {
        try run("DELETE FROM listOffer WHERE peer = ? AND list = ? AND isDeclined", peer.uuid, ended.list.uuid)
        try run(
            "UPDATE list SET access = 'none', accessAt = ?1 WHERE uuid = ?2 AND NOT isOwned AND entry IS NULL AND accessAt < ?1",
            ended.accessAt, ended.list.uuid)
    }

    /// Maximum declined offers of one peer that are remembered.
    private static let maximumDeclined = ListLimits.overviewLists

    /// Stores an offer. That of a list that the user has left counts as declined, unless the sharing has ended before or since.
    /// - Returns: the offer if it is new and not declined.
    private func store(_ entry: ListOverview.Entry, from peer: PeerID, at now: Int64) throws -> ListOffer? {
        let isNew = try first("SELECT 1 FROM listOffer WHERE peer = ? AND list = ?", peer.uuid, entry.list.uuid, read: { _ in true }) == nil
        try run(
            isNew
                ? """
                INSERT INTO listOffer (peer, list, title, access, hexes, links, accessAt, at, isDeclined)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, EXISTS (SELECT 1 FROM list WHERE uuid = ?2 AND entry IS NULL AND access <> 'none'))
                """
                : """
                UPDATE listOffer SET (title, access, hexes, links, accessAt, at) = (?3, ?4, ?5, ?6, ?7, coalesce(at, ?8))
                WHERE peer = ?1 AND list = ?2
                """, peer.uuid, entry.list.uuid, entry.title, entry.access.rawValue, entry.hexes, entry.links, entry.accessAt, now)
        return isNew ? try listOffers().first { $0.peer == peer && $0.list == entry.list && !$0.isDeclined } : nil
    }

    /// Stores the access that the owner of a list grants.
    /// - Parameters:
    ///   - time: the hybrid time at which the owner set it.
    ///   - now: milliseconds since 1970.
    /// - Returns: the change to report; `nil` if the sharing had not ended and the user can do at least as much as before.
    private func grant(
        _ access: ListOverview.Access, at time: Int64, insteadOf before: ListOverview.Access, in record: ListRecord, now: Int64
    ) throws -> SharingChange? {
        guard let entry = try entry(ofList: record.row), let known = try sharedHex(inList: record.row) else { return nil }
        let epoch = access == .read && before != .read ? UTF8Text(String(time)) : nil
        try changeMine(at: now) { mine in
            try mine.nodes.setRegister(SharedListEntry.access, of: entry, to: SharedListEntry.accessValue(access, at: time))
            if let epoch { try mine.nodes.setRegister(SharedListEntry.epoch, of: entry, to: epoch) }
            _ = mine.nodes.takeChanges()
        }
        guard var shared = try sharedHex(inList: record.row) else { return nil }
        shared.subject = known.subject
        return switch access {
        case .ended where before != .ended: .ended(shared)
        case .read where before == .ended, .write where before == .ended: .resumed(shared)
        case .read where before == .write: .becameReadOnly(shared)
        case .read, .write, .ended: nil
        }
    }
}
