public import HexlistLists
public import HexlistModel

/// The state of a list, of which changes are announced to peers.
public struct AnnouncedList: Equatable, Sendable {
    public enum Access: Equatable, Sendable {
        case ownMachine
        /// - Parameters:
        ///   - peer: the access of a member; `write` for a machine of the owner.
        ///   - user: the access of the user.
        ///   - isShown: whether My Hexlist has an entry for the list.
        case otherPerson(peer: ListOverview.Access, user: ListOverview.Access, isShown: Bool)
    }

    public var id: ListNode.ID
    /// The greatest number of a row.
    public var sequence: Int64
    /// The access of each peer that exchanges the list, or exchanged it before.
    public var access: [PeerID: Access]
    /// The peers with which the sharing has ended. They do not learn of changed rows.
    public var former: Set<PeerID>
}

extension StoreReader {
    /// Returns the state of all lists, for announcements.
    public func announcedLists() throws -> [AnnouncedList] {
        let own = try all("SELECT peer FROM ownMachine") { $0.uuid(0).map { PeerID($0) } }.compactMap(\.self)
        return try all("SELECT id, uuid, coalesce(seq, 0), access, entry IS NOT NULL FROM list ORDER BY id") {
            (
                row: $0.int64(0), id: $0.nodeID(1), sequence: $0.int64(2), access: ListOverview.Access(rawValue: $0.text(3)),
                isShown: $0.bool(4)
            )
        }.compactMap { list in
            guard let id = list.id else { return nil }
            var access: [PeerID: AnnouncedList.Access] = Dictionary(own.map { ($0, .ownMachine) }) { first, _ in first }
            var former: Set<PeerID> = []
            let others = try all("SELECT peer, access FROM listPeer WHERE list = ?", list.row) {
                (peer: $0.uuid(0).map { PeerID($0) }, access: ListOverview.Access(rawValue: $0.text(1)) ?? .ended)
            }
            for other in others {
                guard let peer = other.peer, access[peer] == nil else { continue }
                access[peer] = .otherPerson(peer: other.access, user: list.access ?? .ended, isShown: list.isShown)
                if other.access == .ended { former.insert(peer) }
            }
            return AnnouncedList(id: id, sequence: list.sequence, access: access, former: former)
        }
    }
}
