internal import GRDB
internal import HexlistLists
public import HexlistModel

/// The value of the register `seen` of an entry: the links of a shared list that the user has seen on any of his or her machines.
///
/// One time would not be enough: a link that a member added while not connected arrives with a time before the last opening of the hex.
/// Each replica writes with ascending times, and its rows arrive in the order of its changes, so one time for each replica is.
struct SeenLinks: Equatable {
    /// The hybrid time up to which links of all other replicas were seen.
    var base: Int64
    /// The hybrid times up to which links of replicas were seen.
    var clocks: [ReplicaNumber: Int64] = [:]

    /// Keeps the value below the bound of a register. The replicas of a shared list are bounded more strictly.
    private static let maximumReplicas = 1_000

    init(base: Int64) { self.base = base }

    /// - Parameter text: `base number:clock number:clock …`.
    /// - Returns: `nil` if the text is not such a value.
    init?(_ text: UTF8Text) {
        let words = text.description.split(separator: " ")
        guard let first = words.first, let base = Int64(first), base >= 0 else { return nil }
        self.base = base
        for word in words.dropFirst() {
            let parts = word.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count == 2, let number = ReplicaNumber(parts[0]), let clock = Int64(parts[1]) else { return nil }
            clocks[number] = clock
        }
    }

    /// The text of the register.
    var value: UTF8Text {
        let newest = clocks.sorted { ($1.value, $1.key) < ($0.value, $0.key) }.prefix(Self.maximumReplicas)
        return UTF8Text((["\(base)"] + newest.map { "\($0.key):\($0.value)" }).joined(separator: " "))
    }
}

/// SQL for the links of shared lists that were added by others and that the user has not seen.
private enum UnseenLinks {
    /// SQL condition of the index `nodeAdded`: shown links of shared lists.
    static let indexed = "node.kind = 2 AND node.state <> 1 AND node.list > 1"

    /// Tables `author (list, replica)`, with the replicas that added the shown links of the lists in the JSON array `?1`, and `unseen
    /// (list, replica, clock)`, with those of others and the hybrid time after which their links are new. Finds each replica with one
    /// search of the index (a loose index scan).
    static let tables = """
        WITH RECURSIVE author (list, replica) AS (
            SELECT value, (SELECT addedBy FROM node INDEXED BY nodeAdded WHERE node.list = value AND addedBy > 0 AND \(indexed)
                ORDER BY addedBy LIMIT 1) FROM json_each(?1)
            UNION ALL
            SELECT author.list, (SELECT addedBy FROM node INDEXED BY nodeAdded WHERE node.list = author.list AND addedBy > author.replica
                AND \(indexed) ORDER BY addedBy LIMIT 1) FROM author WHERE author.replica IS NOT NULL
        ), unseen (list, replica, clock) AS (
            SELECT author.list, author.replica, coalesce(
                (SELECT clock FROM listSeen WHERE listSeen.list = author.list AND listSeen.number = replica.number), list.seenClock)
            FROM author CROSS JOIN replica ON replica.id = author.replica AND replica.isOwn = 0 CROSS JOIN list ON list.id = author.list
        )
        """

    /// SQL condition: whether a link is one of those of a row of `unseen`.
    static let isUnseen = "node.list = unseen.list AND node.addedBy = unseen.replica AND node.addedClock > unseen.clock AND \(indexed)"
}

extension HexStore {
    /// Marks the links of a shared hex as seen, with those of the hexes inside. The other machines of the user learn of it.
    /// - Parameters:
    ///   - sequence: `HexSharing.sequence` when the hex was shown, so that links that arrived since then stay new; `nil` for all links.
    ///   - now: milliseconds since 1970.
    /// - Returns: the number of links that were new and are not any more, counted up to `HexSharing.maximumNew`.
    /// - Throws: `.notFound`; `.badRequest` if the hex is not shared, or is inside a shared hex.
    public func markSeen(_ hex: Int64, through sequence: Int64? = nil, at now: Int64) async throws -> Int {
        try await write { try $0.markSeen(hex, through: sequence, at: now) }
    }
}

extension StoreReader {
    /// Returns the numbers of links of shared lists that others added and that the user has not seen, each counted up to
    /// `HexSharing.maximumNew`. Lists without such links may be missing.
    /// - Parameter lists: `ListRecord.row` of each.
    func newLinkCounts(of lists: some Collection<Int64>) throws -> [Int64: Int] {
        guard !lists.isEmpty else { return [:] }
        let counts = try all(
            """
            \(UnseenLinks.tables)
            SELECT unseen.list, (SELECT count(*) FROM (SELECT 1 FROM node INDEXED BY nodeAdded WHERE \(UnseenLinks.isUnseen)
                LIMIT \(HexSharing.maximumNew))) FROM unseen
            """, jsonArray(lists)
        ) { ($0.int64(0), $0.int(1)) }
        return Dictionary(counts, uniquingKeysWith: +).mapValues { min($0, HexSharing.maximumNew) }
    }

    /// Returns the number of new links in all shared hexes of My Hexlist, each counted up to `HexSharing.maximumNew`.
    public func newLinkCount() throws -> Int {
        let lists = try all("SELECT id FROM list WHERE id <> ? AND entry IS NOT NULL", ListRecord.mine) { $0.int64(0) }
        return try newLinkCounts(of: lists).values.reduce(0, +)
    }

    /// Returns the new links in a hex that is shared or inside a shared hex, and in the hexes inside; empty for other hexes.
    public func newLinks(in hex: HexDetail) throws -> Set<LinkPosition> {
        guard let node = try node(ofHex: hex.summary.id), node.list != ListRecord.mine else { return [] }
        let root = try ListRecord(on: self, row: node.list).id
        let found = try all(
            """
            \(UnseenLinks.tables)
            SELECT node.uuid, around.hex FROM unseen CROSS JOIN node INDEXED BY nodeAdded ON \(UnseenLinks.isUnseen)
                CROSS JOIN node AS around ON around.uuid = coalesce(node.container, ?2) AND around.list = node.list
            """, jsonArray([node.list]), root.uuid
        ) { (link: $0.nodeID(0), hex: $0.int64(1)) }
        var positions: Set<LinkPosition> = []
        let shown = Set([hex.summary.id] + hex.childIDs)
        for (hex, links) in Dictionary(grouping: found, by: \.hex) where shown.contains(hex) {
            let new = Set(links.compactMap(\.link))
            for (position, link) in (try mineLinkIDs(of: hex)?.ids ?? []).enumerated() where new.contains(link) {
                positions.insert(LinkPosition(hex: hex, position: position))
            }
        }
        return positions
    }
}

extension StoreWriter {
    /// Stores that a machine of the user writes with a replica number, so that its links are not new.
    /// - Parameter replica: its row in the table `replica`.
    func markOwn(_ replica: Int64) throws { try run("UPDATE replica SET isOwn = 1 WHERE id = ? AND isOwn = 0", replica) }

    func markSeen(_ hex: Int64, through sequence: Int64?, at now: Int64) throws -> Int {
        try change {
            try checkIsMine(hex)
            guard let node = try node(ofHex: hex), node.list != ListRecord.mine else { throw HexlistError.notShared(hex) }
            guard node.isRoot else {
                throw try insideSharedHex(hex, in: node.list) { "Links are marked as seen together, with all of hex \($0)." }
            }
            guard let entry = try entry(ofList: node.list) else { throw HexlistError.noHex(hex) }
            let columns = try first("SELECT seen, clock FROM list WHERE id = ?", node.list) {
                (seen: UTF8Text($0.text(0)), clock: $0.int64(1))
            }
            var seen = columns.flatMap { SeenLinks($0.seen) } ?? SeenLinks(base: columns?.clock ?? 0)
            let newest = try all(
                """
                \(UnseenLinks.tables)
                SELECT replica.number, (SELECT addedClock FROM node INDEXED BY nodeAdded WHERE node.list = unseen.list
                    AND node.addedBy = unseen.replica AND \(UnseenLinks.indexed) AND node.seq <= ?2 ORDER BY addedClock DESC LIMIT 1)
                FROM unseen CROSS JOIN replica ON replica.id = unseen.replica
                """, jsonArray([node.list]), sequence ?? .max
            ) { (number: ReplicaNumber(UInt64(bitPattern: $0.int64(0))), clock: $0.optionalInt64(1)) }
            for (number, clock) in newest {
                guard let clock else { continue }
                seen.clocks[number] = max(seen.clocks[number] ?? seen.base, clock)
            }
            guard seen.value != columns?.seen else { return 0 }
            let before = try newLinkCounts(of: [node.list])[node.list] ?? 0
            try changeMine(at: now) { mine in
                try mine.nodes.setRegister(SharedListEntry.seen, of: entry, to: seen.value)
                _ = mine.nodes.takeChanges()  // not a change for the log
            }
            return try before - (newLinkCounts(of: [node.list])[node.list] ?? 0)
        }
    }

    /// Stores the register `seen` of the entry of a shared list.
    func store(seen value: UTF8Text, of list: ListRecord) throws {
        guard try run("UPDATE list SET seen = ?1 WHERE id = ?2 AND seen <> ?1", value, list.row) > 0 else { return }
        let seen = SeenLinks(value)
        try run("UPDATE list SET seenClock = ? WHERE id = ?", seen?.base, list.row)
        try run("DELETE FROM listSeen WHERE list = ?", list.row)
        for (number, clock) in seen?.clocks ?? [:] {
            try run("INSERT INTO listSeen (list, number, clock) VALUES (?, ?, ?)", list.row, Int64(bitPattern: number.value), clock)
        }
    }
}
