internal import GRDB
internal import HexlistLists
internal import HexlistModel

// Deletion marks stay in a list for good, so a shared list may reach its maximum of rows although it shows few hexes and links. Its owner
// then replaces it by a new list with a copy of the shown hexes and links. The members have to join the new list.

/// A shared hex after it was renewed.
public struct ListRenewal: Sendable, Equatable {
    /// The hex with its new list. The members have not joined it yet.
    public var shared: SharedHex
    /// The number of deleted hexes and links that were left out.
    public var removed: Int
}

extension HexStore {
    /// Replaces the list of a shared hex by a new one, with a copy of the hex and of everything shown inside, and offers that to the members
    /// with the access that they have. The hex and those inside keep their ids.
    ///
    /// The old list ends: its members keep it as it is. Its deleted hexes and links leave the trash, and its changes cannot be undone any
    /// more. Changes that members have not sent yet do not arrive. Members that have left, or whose access has ended, are left out.
    /// - Parameter now: milliseconds since 1970.
    /// - Throws: `.notFound`; `.badRequest` if the hex is not shared, is inside a shared hex, or belongs to another person.
    public func renewShared(_ hex: Int64, at now: Int64) async throws -> ListRenewal {
        try await write { try $0.renewShared(hex, at: now) }
    }
}

extension StoreReader {
    /// The number of rows of an own shared list from which a page of a member may not fit any more (`StoreWriter.checkFits`).
    private static let fullRows = StoreWriter.acceptedNodes - ListLimits.pageNodes

    /// Whether an own shared list has so many rows that changes of members may not be received, and renewing it makes room.
    /// - Parameter shown: the numbers of hexes and links that the copy would have.
    func needsRenewal(_ list: ListRecord, shown: ListSize) throws -> Bool {
        // The greatest number is at least the number of rows, so the rows of most lists are not counted.
        guard list.sequence ?? 0 > Self.fullRows, shown.hexes + shown.links < Self.fullRows, try isOwned(list.row) else { return false }
        return try rowCount(of: list) > Self.fullRows
    }

    /// Returns the number of rows of a shared list, those of deleted hexes and links included.
    func rowCount(of list: ListRecord) throws -> Int {
        try first("SELECT count(*) FROM node INDEXED BY nodeChanged WHERE list = ? AND seq IS NOT NULL", list.row) { $0.int(0) } ?? 0
    }

    /// Returns the number of deleted hexes and links of a shared list.
    fileprivate func deletedCount(of list: ListRecord) throws -> Int {
        try first(
            "SELECT count(*) FROM node INDEXED BY nodeChanged WHERE list = ? AND seq IS NOT NULL AND kind IN (1, 2) AND state = 1", list.row
        ) { $0.int(0) } ?? 0
    }

    /// Whether all rows of an own shared list have arrived from another machine of the user.
    fileprivate func hasArrived(_ list: ListRecord) throws -> Bool {
        try first("SELECT 1 FROM listCursor JOIN ownMachine USING (peer) WHERE list = ? AND isFirstExchangeOver LIMIT 1", list.row) { _ in
            true
        } ?? false
    }

    /// Returns the registers of the entry for the list that replaces one: the access of its members, and those that are not known.
    fileprivate func registersOfEntry(replacing entry: SharedListEntry, of list: ListRecord) throws -> [UTF8Text: UTF8Text] {
        var registers = entry.node.registers.mapValues(\.value).filter { name, value in
            !value.isEmpty && !SharedListEntry.isMember(name) && name != SharedListEntry.copied
        }
        let members = try all(
            "SELECT peer, access FROM listPeer WHERE list = ? AND NOT isOwner AND access <> ? AND state <> ?", list.row,
            ListOverview.Access.ended.rawValue, SharedHex.State.left.rawValue
        ) { (peer: $0.uuid(0), access: $0.text(1)) }
        for (peer, access) in members {
            if let peer { registers[SharedListEntry.member(PeerID(peer))] = UTF8Text(access) }
        }
        registers[SharedListEntry.seen] = SeenLinks(base: 0).value  // the links of the copy are the user's
        registers[SharedListEntry.renewed] = SharedListEntry.renewedValue(list.id, list.digest ?? ListDigest())
        return registers
    }
}

extension StoreWriter {
    func renewShared(_ hex: Int64, at now: Int64) throws -> ListRenewal {
        try change {
            try checkIsMine(hex)
            guard let node = try node(ofHex: hex), node.list != ListRecord.mine else { throw HexlistError.notShared(hex) }
            let old = try ListRecord(on: self, row: node.list)
            try checkIsOwned(old, hex)
            guard node.isRoot else {
                throw try insideSharedHex(hex, in: node.list) { "To renew all of it: `hexlist mine share \($0) --renew`." }
            }
            let entries = try sharedListEntries().filter { $0.list == old.id && $0.isShown }
            guard let entryID = try entry(ofList: old.row), let entry = entries.first(where: { $0.node.id == entryID }) else {
                throw HexlistError.noHex(hex)
            }
            let registers = try registersOfEntry(replacing: entry, of: old)
            let removed = try deletedCount(of: old)
            let new = try addSharedList(copying: old.id, from: old, at: now)
            try offerFiles(of: old.row, alsoTo: new.row)
            try limitTexts(of: new, to: old)
            try changeMine(at: now) { mine in
                // It has a smaller number than the deletions, so other machines receive it in the same page or an earlier one.
                let added = try mine.addEntry(of: new.id, before: entryID, registers: registers)
                try run("UPDATE node SET hex = ? WHERE uuid = ? AND list = ?", hex, added.uuid, ListRecord.mine)
                try run("UPDATE node SET hex = NULL WHERE uuid = ? AND list = ?", entryID.uuid, ListRecord.mine)
                for entry in entries {
                    try mine.endSharing(entry.node.id)
                    try mine.nodes.delete(entry.node.id)
                }
                _ = mine.nodes.takeChanges()  // not in the log: everything is still there
            }
            for entry in entries { try takeFromTrash(entry.node.id) }
            try removeSharedList(of: entryID)
            guard let shared = try sharedHex(inList: new.row) else { throw HexlistError.noHex(hex) }
            return ListRenewal(shared: shared, removed: removed)
        }
    }

    /// Counts the texts of a copy as texts of members, at most as many as were counted in the original. Otherwise each renewal would let
    /// members add texts up to the maximum again, and new members could not receive all of them.
    private func limitTexts(of copy: ListRecord, to original: ListRecord) throws {
        try run(
            """
            UPDATE list SET textBytes = min((SELECT textBytes FROM list WHERE id = ?2), (SELECT coalesce(sum(\(Self.nodeTextBytes)), 0)
                FROM node INDEXED BY nodeChanged WHERE list = ?1 AND seq IS NOT NULL)) WHERE id = ?1
            """, copy.row, original.row)
    }

    /// Takes the entries of renewed lists out of the trash after all rows of the copy have arrived. If the rows differ from those of the copy,
    /// the entry stays there, because this machine has changes that the copy does not have, or that did not arrive here. The new hex gets the
    /// id of the old one if it is not shown yet. `purgeUnshown` removes the rows of the old list later.
    /// - Parameter entries: `sharedListEntries()`.
    func removeRenewedFromTrash(_ entries: [SharedListEntry]) throws {
        for new in entries where new.isOwned && new.isShown {
            guard let renewed = new.renewed, !entries.contains(where: { $0.list == renewed.list && $0.isShown }),
                let old = try ListRecord(renewed.list, on: self), old.isShared, try isOwned(old.row), old.digest == renewed.digest
            else { continue }
            let former = entries.filter { $0.list == old.id }.map(\.node.id)
            if let number = try self.hex(ofNode: old.id, in: old.row) {
                for entry in former { try run("UPDATE node SET hex = NULL WHERE uuid = ? AND list = ?", entry.uuid, ListRecord.mine) }
                try run("UPDATE node SET hex = NULL WHERE list = ? AND kind = 1 AND hex IS NOT NULL", old.row)
                try run("UPDATE node SET hex = ? WHERE uuid = ? AND list = ? AND hex IS NULL", number, new.node.id.uuid, ListRecord.mine)
            }
            guard let copy = try ListRecord(new.list, on: self), try hasArrived(copy) else { continue }
            for entry in former { try takeFromTrash(entry) }
        }
    }
}
