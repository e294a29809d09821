internal import GRDB
public import HexlistModel

extension StoreWriter {
    /// Marks hexes read or unread. Ids that are not there are passed over.
    /// - Returns: hexes that changed.
    @discardableResult
    public func setRead(_ ids: [Int64], _ read: Bool = true) throws -> Int {
        try change { try mark(ids, unread: !read) }
    }

    /// Marks the oldest unread hexes of the inbox read.
    ///
    /// - Parameters:
    ///   - inboxNumber: only up to this one, so that what arrives meanwhile stays unread.
    ///   - limit: hexes at most, so that one piece of work does not hold up the others; again while it returns as many.
    /// - Returns: hexes that changed.
    public func markRead(upTo inboxNumber: Int64, limit: Int) throws -> Int {
        try change {
            let ids = try all(
                """
                SELECT id FROM hex INDEXED BY hexUnread WHERE unread = 1 AND inboxNumber IS NOT NULL AND inboxNumber <= ?
                ORDER BY inboxNumber LIMIT ?
                """, inboxNumber, limit
            ) { $0.int64(0) }
            return try mark(ids, unread: false)
        }
    }

    /// Deletes hexes wherever they are. The message id of one that was in the inbox is remembered until 60 days after it
    /// came there, so that a late repeat is still a duplicate; that of a held one is forgotten.
    ///
    /// - Returns: hexes that were deleted; ids that are not there are passed over.
    @discardableResult
    public func delete(_ ids: [Int64], at now: Int64) throws -> Int {
        try change { try remove(ids, remembering: now) }
    }

    /// Takes held hexes into the inbox, in the order given, without trusting their sender: one `hex.received` each.
    /// - Returns: those that were held.
    public func accept(_ ids: [Int64], at now: Int64) throws -> [Int64] {
        try change { try takeIn(ids, at: now) }
    }

    /// Puts a hex into My Hexlist.
    /// - Returns: its id.
    /// - Throws: `.badRequest` for too many links.
    public func insertMine(_ content: HexContent, at now: Int64) throws -> Int64 {
        guard content.links.count <= ProtocolLimits.links else {
            throw HexlistError(.badRequest, "A hex has at most \(ProtocolLimits.links) links; this one has \(content.links.count).")
        }
        return try change {
            let id = tally.nextHex
            _ = try HexInserter(on: db).insert(
                content, HexInserter.Row(id: id, location: .mine, unread: false, byteCount: content.byteCount, receivedAt: now))
            tally.nextHex &+= 1
            tally.mine &+= 1
            return id
        }
    }
}

// MARK: - Inside `change`

extension StoreWriter {
    private func mark(_ ids: [Int64], unread: Bool) throws -> Int {
        var changed = 0
        for id in ids {
            let row = try first("SELECT peer, location FROM hex WHERE id = ? AND unread <> ?", id, unread) {
                (peer: $0.optionalInt64(0), isInInbox: $0.text(1) == HexLocation.inbox.rawValue)
            }
            guard let row else { continue }
            try run("UPDATE hex SET unread = ? WHERE id = ?", unread, id)
            changed += 1
            guard row.isInInbox else { continue }
            tally.unread &+= unread ? 1 : -1
            if let peer = row.peer { count(peer: peer) { $0.unread &+= unread ? 1 : -1 } }
        }
        return changed
    }

    /// - Parameter now: message ids that reached the inbox are remembered from here on; `nil`: none is.
    @discardableResult
    func remove(_ ids: [Int64], remembering now: Int64?) throws -> Int {
        var removed = 0
        for id in ids {
            guard let gone = try first("SELECT \(StoredHex.columns) FROM hex WHERE id = ?", id, read: StoredHex.init) else { continue }
            try run("DELETE FROM hex WHERE id = ?", id)
            removed += 1
            uncount(gone)
            guard let now, gone.isProven, let peer = gone.peer, let messageID = gone.messageID, let inboxAt = gone.inboxAt else {
                continue
            }
            let forgetAt = inboxAt &+ Self.rememberedFor
            guard forgetAt > now else { continue }
            try run("INSERT OR REPLACE INTO tombstone (peer, messageID, forgetAt) VALUES (?, ?, ?)", peer, messageID, forgetAt)
        }
        return removed
    }

    /// 60 days: longer than any sender keeps an undelivered hex, and half of that again.
    private static let rememberedFor: Int64 = 60 * 86_400_000

    private func uncount(_ gone: StoredHex) {
        switch gone.location {
        case .inbox:
            tally.inbox &-= 1
            if gone.unread { tally.unread &-= 1 }
        case .held:
            tally.held &-= 1
            tally.heldBytes &-= gone.byteCount
        case .mine: tally.mine &-= 1
        }
        guard let peer = gone.peer else { return }
        count(peer: peer) { delta in
            delta.hexes &-= 1
            switch gone.location {
            case .inbox: if gone.unread { delta.unread &-= 1 }
            case .held:
                delta.held &-= 1
                delta.heldBytes &-= gone.byteCount
            case .mine: break
            }
        }
    }

    /// Held hexes into the inbox, each with a new inbox number and a `hex.received`.
    func takeIn(_ ids: [Int64], at now: Int64) throws -> [Int64] {
        var taken: [(id: Int64, peer: PeerID?)] = []
        for id in ids {
            let held = try first(
                """
                SELECT \(StoredHex.columns), (SELECT uuid FROM peer WHERE peer.id = hex.peer) FROM hex
                WHERE id = ? AND location = 'held'
                """, id
            ) { (hex: StoredHex($0), uuid: $0.uuid(StoredHex.columnCount)) }
            guard let held else { continue }
            try run(
                """
                UPDATE hex SET location = 'inbox', inboxNumber = ?, inboxAt = ?, heldSince = NULL, heldFrom = NULL WHERE id = ?
                """, tally.nextInbox, now, id)
            uncount(held.hex)
            tally.nextInbox &+= 1
            tally.inbox &+= 1
            if held.hex.unread { tally.unread &+= 1 }
            if let peer = held.hex.peer {
                count(peer: peer) { delta in
                    delta.hexes &+= 1
                    if held.hex.unread { delta.unread &+= 1 }
                }
            }
            taken.append((id, held.uuid.map(PeerID.init)))
        }
        // Runs of one peer each, in order.
        var rest = taken[...]
        while let first = rest.first {
            let run = rest.prefix { $0.peer == first.peer }
            try record(.hexReceived, at: now, peer: first.peer, hexes: run.map(\.id))
            rest = rest.dropFirst(run.count)
        }
        return taken.map(\.id)
    }
}

/// What counting needs to know of a stored hex.
private struct StoredHex {
    static let columns = "location, peer, unread, byteCount, messageID, isProven, inboxAt"
    static let columnCount: Int32 = 7

    var location: HexLocation
    var peer: Int64?
    var unread: Bool
    var byteCount: Int64
    var messageID: UUIDBytes?
    var isProven: Bool
    var inboxAt: Int64?

    init(_ row: SQLStatement) {
        location = HexLocation(rawValue: row.text(0)) ?? .inbox
        peer = row.optionalInt64(1)
        unread = row.bool(2)
        byteCount = row.int64(3)
        messageID = row.uuid(4)
        isProven = row.bool(5)
        inboxAt = row.optionalInt64(6)
    }
}
