internal import GRDB
internal import HexlistLists
public import HexlistModel

// Offers for lists (migration 34): files that the user added to My Hexlist or to a shared hex. The own machines and the members of the list
// may fetch them as long as the list shows a link to them (Docs/Lists.md, "Files").
//
// The right to fetch is derived at each request from the rows that also decide about the exchange of the list, so a change of access and a
// deleted or restored link take effect at once. A link alone gives no right, because members add links too: only a command of the user of
// this machine records an offer for a list. That is why the table `offerList` is needed beside the links.
//
// When a hex of My Hexlist becomes a shared list, only the offers whose links the user added inside it are recorded for the new list. So
// each offer for My Hexlist is recorded with its link: a copy of a member's hex (`save`) may have a link to a file that the user has not
// added there.

enum OffersOfLists {
    static let schema = """
        -- The lists whose members and own machines may fetch a file of an offer, while a link of the list leads to it.
        CREATE TABLE offerList (
            offer BLOB NOT NULL REFERENCES offer (id) ON DELETE CASCADE,
            list INTEGER NOT NULL,
            link BLOB NOT NULL,                                 -- in My Hexlist: node.uuid of the link; empty until it is added, and in shared lists
            checkAt INTEGER NOT NULL,                           -- the row is deleted then if no link leads to the offer any more
            PRIMARY KEY (offer, list, link)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX offerListChecks ON offerList (checkAt);
        CREATE INDEX offerListLinks ON offerList (list, link);
        -- Links to offers: hexlist://<UUID, 36 digits>/<offer, 32 digits>/<name>
        CREATE INDEX nodeOffer ON node (list, substr(url, 48, 32), state) WHERE kind = 2 AND substr(url, 1, 10) = 'hexlist://';
        """

    /// SQL condition: whether a row of `node` is a link of the list `offerList.list` that leads to the offer `offerList.offer`.
    static let isLink = """
        node.list = offerList.list AND substr(node.url, 48, 32) = lower(hex(offerList.offer)) AND node.kind = 2
            AND substr(node.url, 1, 10) = 'hexlist://'
        """

    /// Milliseconds from an offer to the first check, within which the link to it has to be added.
    static let unlinkedTime: Int64 = 3_600_000
    /// Milliseconds between two checks whether a link still leads to an offer. Deleted links count until they are purged.
    static let checkTime: Int64 = 30 * 86_400_000
    /// Milliseconds by which an offer outlives its next check, so that a delayed check finds it.
    static let slack: Int64 = 30 * 86_400_000
}

extension StoreReader {
    /// Throws an error if the user cannot add links to a hex of My Hexlist.
    /// - Throws: `.notFound`; `.badRequest` if the hex is not in My Hexlist, or belongs to another person who does not let the user change
    ///   it.
    public func checkCanAddFiles(to hex: Int64) throws {
        try checkIsMine(hex)
        try checkIsWritable(ListRecord(on: self, row: listOfContents(hex)))
    }

    /// Returns an offer that a peer may fetch because a list that it exchanges with this machine shows a link to it; `nil` if there is
    /// none.
    func offerOfList(_ id: [UInt8], to peer: PeerID) throws -> OfferRow? {
        try first(
            """
            SELECT \(OfferRow.columns) FROM offer CROSS JOIN offerList ON offerList.offer = offer.id
                CROSS JOIN list ON list.id = offerList.list
            WHERE offer.id = ?1 AND EXISTS (SELECT 1 FROM peer WHERE uuid = ?2 AND trust = 'trusted')
                AND (
                    (list.id = \(ListRecord.mine) OR list.entry IS NOT NULL) AND EXISTS (SELECT 1 FROM ownMachine WHERE peer = ?2)
                    OR list.entry IS NOT NULL AND EXISTS (
                        SELECT 1 FROM listPeer WHERE listPeer.list = list.id AND listPeer.peer = ?2
                            AND listPeer.isOwner <> list.isOwned
                            AND iif(list.isOwned, listPeer.access, list.access) <> '\(ListOverview.Access.ended.rawValue)')
                )
                AND EXISTS (SELECT 1 FROM node INDEXED BY nodeOffer WHERE \(OffersOfLists.isLink) AND node.state = 0)
            """, id, peer.uuid, read: OfferRow.init)
    }
}

extension HexStore {
    /// Offers files to the own machines and the members of the list in which a hex of My Hexlist is, and blocks the calling thread. The
    /// offers end after an hour if `addMine` adds no link to them before.
    /// - Parameter hex: the hex that gets the links; `nil` for a new hex at the top level.
    /// - Throws: the errors of `checkCanAddFiles`; `.badRequest` if there would be more than `OfferRow.limit` offers. Then nothing is
    ///   changed.
    public func offerSync(_ offers: [OfferRow], toListOf hex: Int64?) throws { try writeSync { try $0.offer(offers, toListOf: hex) } }
}

extension StoreWriter {
    func offer(_ offers: [OfferRow], toListOf hex: Int64?) throws {
        try change {
            if let hex { try checkCanAddFiles(to: hex) }
            let list = try hex.map(listOfContents) ?? ListRecord.mine
            try insert(offers)
            for offer in offers { try offerToList(offer.id, list, link: [], checkAt: lived &+ OffersOfLists.unlinkedTime) }
        }
    }

    // MARK: - Inside `change`

    /// Records the links by which new hexes at the top level of My Hexlist, or in unshared ones, lead to offers that were made for them.
    /// - Parameter hexes: the ids of the hexes that the user has just added.
    func recordLinksToOffers(in hexes: ClosedRange<Int64>) throws {
        let links = try all(
            """
            SELECT offerList.offer, node.uuid FROM offerList CROSS JOIN node INDEXED BY nodeOffer ON \(OffersOfLists.isLink)
                CROSS JOIN node AS outer ON outer.uuid = node.container AND outer.list = node.list
            WHERE offerList.list = \(ListRecord.mine) AND offerList.link = x'' AND outer.hex BETWEEN ? AND ?
            """, hexes.lowerBound, hexes.upperBound
        ) { (offer: $0.bytes(0), link: $0.bytes(1)) }
        for (offer, link) in links {
            try offerToList(offer, ListRecord.mine, link: link, checkAt: lived &+ OffersOfLists.checkTime)
            try run("DELETE FROM offerList WHERE offer = ? AND list = \(ListRecord.mine) AND link = x''", offer)
        }
    }

    /// - Parameter link: the column `link`.
    private func offerToList(_ offer: [UInt8], _ list: Int64, link: [UInt8] = [], checkAt: Int64) throws {
        // For the peers to which the offer was made, it ends when it would have ended.
        try run("UPDATE offerPeer SET ends = (SELECT ends FROM offer WHERE id = ?1) WHERE offer = ?1 AND ends IS NULL", offer)
        try run("UPDATE offer SET ends = max(ends, ?) WHERE id = ?", checkAt &+ OffersOfLists.slack, offer)
        try run(
            """
            INSERT INTO offerList (offer, list, link, checkAt) VALUES (?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET checkAt = max(checkAt, excluded.checkAt)
            """, offer, list, link, checkAt)
    }

    /// Offers the files that the user has added inside a hex of My Hexlist to a shared list as well, because the list is a copy of the hex.
    /// Call before the links are purged.
    func offerFiles(inside hex: ListNode.ID, alsoTo list: Int64) throws {
        let links = try all("SELECT offer, link FROM offerList WHERE list = \(ListRecord.mine)") {
            (offer: $0.bytes(0), link: $0.nodeID(1))
        }
        for (offer, link) in links {
            if let link, try isInside(link, hex) { try offerToList(offer, list, checkAt: lived &+ OffersOfLists.checkTime) }
        }
    }

    /// Whether a node of My Hexlist is, or was when it was deleted, inside a hex.
    private func isInside(_ node: ListNode.ID, _ hex: ListNode.ID) throws -> Bool {
        var next: ListNode.ID? = node
        for _ in 0...ListStructure.levels {
            guard let inner = next else { return false }
            next =
                try first(
                    "SELECT iif(state = 1, goneWith, container) FROM node WHERE uuid = ? AND list = \(ListRecord.mine)", inner.uuid
                ) { $0.nodeID(0) } ?? nil
            if next == hex { return true }
        }
        return false
    }

    /// Offers the files of a shared list to the list that replaces it as well.
    /// - Parameters: rows of `list`.
    func offerFiles(of list: Int64, alsoTo copy: Int64) throws {
        for offer in try all("SELECT offer FROM offerList WHERE list = ?", list, read: { $0.bytes(0) }) {
            try offerToList(offer, copy, checkAt: lived &+ OffersOfLists.checkTime)
        }
    }

    /// Offers the files of this machine to a list of the user that another own machine has made of a hex, or to replace a list.
    func offerFiles(toListOf entry: SharedListEntry, _ list: ListRecord) throws {
        guard entry.isOwned else { return }
        if let hex = entry.copied?.hex { try offerFiles(inside: hex, alsoTo: list.row) }
        if let former = try entry.renewed.flatMap({ try ListRecord($0.list, on: self) }), try isOwned(former.row) {
            try offerFiles(of: former.row, alsoTo: list.row)
        }
    }

    /// Replaces links to offers by those that stand for them after a join.
    /// - Parameter counterparts: the node of the joined collection by own node.
    func renameLinksToOffers(_ counterparts: [ListNode.ID: ListNode.ID]) throws {
        for link in try all("SELECT link FROM offerList WHERE list = \(ListRecord.mine)", read: { $0.nodeID(0) }) {
            guard let link, let counterpart = counterparts[link] else { continue }
            try run("UPDATE OR IGNORE offerList SET link = ? WHERE list = \(ListRecord.mine) AND link = ?", counterpart.uuid, link.uuid)
        }
    }

    /// Checks the offers for lists that are due: deletes those to which no link leads any more, and postpones the check of the others.
    /// - Returns: the number of checked ones.
    func checkOffersOfLists(_ chunk: Int) throws -> Int {
        let due = try all("SELECT offer, list, link FROM offerList WHERE checkAt <= ? ORDER BY checkAt LIMIT ?", lived, chunk) {
            (offer: $0.bytes(0), list: $0.int64(1), link: $0.bytes(2))
        }
        for (offer, list, link) in due {
            // In My Hexlist, one whose link was not added in time ends: no later link may take its place.
            let isLinked = try first(
                """
                SELECT 1 FROM offerList CROSS JOIN node INDEXED BY nodeOffer ON \(OffersOfLists.isLink)
                WHERE offerList.offer = ? AND offerList.list = ? AND offerList.link = ?
                    AND (offerList.list <> \(ListRecord.mine) OR offerList.link <> x'')
                LIMIT 1
                """, offer, list, link
            ) { _ in true }
            guard isLinked == nil else {
                try offerToList(offer, list, link: link, checkAt: lived &+ OffersOfLists.checkTime)
                continue
            }
            try run("DELETE FROM offerList WHERE offer = ? AND list = ? AND link = ?", offer, list, link)
            try run(
                """
                DELETE FROM offer WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM offerList WHERE offer = ?1)
                    AND NOT EXISTS (SELECT 1 FROM offerPeer WHERE offer = ?1) AND NOT EXISTS (SELECT 1 FROM offerRow WHERE offer = ?1)
                """, offer)
        }
        return due.count
    }
}
