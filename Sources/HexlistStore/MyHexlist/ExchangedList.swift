internal import GRDB
internal import HexlistLists
internal import HexlistModel

/// A shared list that is exchanged with a peer.
struct ExchangedList {
    enum Relation { case ownMachine, owner, member(ListOverview.Access, at: Int64) }

    var record: ListRecord
    var isOwned: Bool
    /// Whether My Hexlist has an entry for it.
    var isShown: Bool
    /// The access that the owner granted to the user; `write` to an own list.
    var access: ListOverview.Access
    var epoch: UTF8Text
    var relation: Relation

    /// The member `access` in the overview for the peer: the access of a member; for the owner and own machines, that of the user;
    /// `ended` after the entry was deleted.
    var servedAccess: ListOverview.Access {
        guard isShown else { return .ended }
        return if case .member(let access, _) = relation { access } else { access }
    }

    /// The access in an overview. For the owner, `ended` means that the user has deleted the list, not that the owner ended the sharing.
    var announcedAccess: ListOverview.Access {
        if case .owner = relation, isShown, access == .ended { return .read }
        return servedAccess
    }

    /// Whether the peer may read rows of this machine.
    var isServed: Bool { isShown && servedAccess != .ended }

    /// Whether the peer requests rows of this machine. An owner does not request those of a reader, so there is nothing to acknowledge.
    var isRequested: Bool { if case .owner = relation { access != .read } else { true } }

    /// `ListExchange.LocalState.List.repairs`.
    var repairs: Bool { if case .member = relation { false } else { true } }

    /// The epoch that has to be equal on both machines. Other persons have none.
    var exchangedEpoch: UTF8Text { if case .ownMachine = relation { epoch } else { .empty } }

    /// Whether it is a list of another person, which the peer, an own machine, gets from this one.
    var isRelayed: Bool { if case .ownMachine = relation { !isOwned } else { false } }

    /// Whether rows of the peer are accepted.
    var receives: Bool {
        guard isShown else { return false }
        return switch relation {
        case .ownMachine: true
        case .owner: access != .ended
        case .member(let access, _): access == .write
        }
    }
}

extension StoreReader {
    /// Returns the shared lists that a peer may have, also those with ended access. Those that are shown come first, so that they fit into
    /// the overview.
    func exchangedLists(with peer: PeerID) throws -> [ExchangedList] {
        let isOwn = try isOwnMachine(peer)
        return try all(
            """
            SELECT list.id, list.isOwned, list.entry IS NOT NULL, list.access, list.epoch, listPeer.isOwner, listPeer.access,
                coalesce(listPeer.accessAt, 0)
            FROM list LEFT JOIN listPeer ON listPeer.list = list.id AND listPeer.peer = ?
            WHERE list.id <> \(ListRecord.mine) AND (\(isOwn ? "list.entry IS NOT NULL" : "listPeer.peer IS NOT NULL"))
            ORDER BY list.entry IS NULL, list.id
            """, peer.uuid
        ) { row in
            (
                list: row.int64(0), isOwned: row.bool(1), isShown: row.bool(2), access: row.text(3), epoch: UTF8Text(row.text(4)),
                isOwner: row.bool(5), memberAccess: row.text(6), at: row.int64(7)
            )
        }.map { row in
            ExchangedList(
                record: try ListRecord(on: self, row: row.list), isOwned: row.isOwned, isShown: row.isShown,
                access: row.isOwned ? .write : ListOverview.Access(rawValue: row.access) ?? .ended, epoch: row.epoch,
                relation: isOwn
                    ? .ownMachine
                    : row.isOwner ? .owner : .member(ListOverview.Access(rawValue: row.memberAccess) ?? .ended, at: row.at))
        }
    }

    /// Returns a shared list that is exchanged with a peer; `nil` if there is none.
    func exchangedList(_ list: ListNode.ID, with peer: PeerID) throws -> ExchangedList? {
        guard try isOwnMachine(peer) || isTrusted(peer) else { return nil }
        return try exchangedLists(with: peer).first { $0.record.id == list }
    }

    /// Returns the list whose rows a peer may read; `nil` if there is none.
    func servedList(_ list: ListNode.ID, to peer: PeerID) throws -> ListRecord? {
        let mine = try ListRecord(on: self)
        if list == mine.id { return try isOwnMachine(peer) && mine.sequence != nil ? mine : nil }
        guard let exchanged = try exchangedList(list, with: peer), exchanged.isServed else { return nil }
        return try exchanged.isRelayed && !isComplete(exchanged.record.row) ? nil : exchanged.record
    }

    /// Returns the list for which rows of a peer are accepted; `nil` if there is none.
    func receivedList(_ list: ListNode.ID, from peer: PeerID) throws -> ListRecord? {
        let mine = try ListRecord(on: self)
        if list == mine.id { return try isOwnMachine(peer) ? mine : nil }
        guard let exchanged = try exchangedList(list, with: peer), exchanged.receives else { return nil }
        return exchanged.record
    }
}
