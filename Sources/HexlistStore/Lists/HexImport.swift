public import HexlistModel

/// The result of an import into My Hexlist, as numbers of hexes and links.
public struct HexImport: Sendable, Equatable {
    public var added = 0
    /// Number of inner hexes of the added hexes, at all levels.
    public var addedInside = 0
    /// Number of links in the added hexes and in those inside them.
    public var addedLinks = 0
    /// Number of imported hexes that were not added, because My Hexlist already had them with all their links and inner hexes.
    public var unchanged = 0
    /// Number of stored hexes that were extended with new links or inner hexes by merging. `newHexes` and `newLinks` count the additions.
    public var extended = 0
    /// Number of inner hexes that merging added, at all levels.
    public var newHexes = 0
    /// Number of links that merging added, at all levels.
    public var newLinks = 0
    /// Number of links that merging did not add, because the stored hex has their address in another spelling (`NormalizedLinkAddress`), and the
    /// first `respellingsShown` of them.
    public var respelled = 0
    public var respellings: [EquivalentLink] = []

    static let respellingsShown = 5

    /// Number of imported hexes that are processed.
    fileprivate var done: Int { added + unchanged + extended }
}

/// A link that was not added, and the equal address that is stored.
public struct EquivalentLink: Sendable, Equatable {
    public var url: String
    public var stored: String
}

extension HexStore {
    /// Number of processed hexes between two reports of progress.
    private static let hexesPerStep = 200

    /// Adds hexes to My Hexlist in one transaction. Adds the last hex first, so that the list, which is newest first, shows them in their
    /// original order. A hex is not added if My Hexlist already has an equal one, with the same links and inner hexes. Each stored hex is
    /// matched with at most one imported hex.
    ///
    /// Memory use: one hex of the source at a time, and about 80 bytes for each entry.
    ///
    /// - Parameters:
    ///   - parent: the hex of My Hexlist to which the imported hexes are appended as inner hexes; `nil` for the top level.
    ///   - merging: whether an imported hex extends (`ImportMerge`) a stored hex with the same description and sender instead of being
    ///     added, if the description is unique among the imported hexes and among the stored ones.
    ///   - now: milliseconds since 1970.
    ///   - diskReserve: bytes of the file system to leave free.
    ///   - digest: returns equal digests for equal hexes, and different digests for different hexes.
    ///   - progress: called on the writer's thread with the number of processed hexes.
    /// - Throws: `.storageFull`, `.notFound`, `.badRequest` for a hex that exceeds the bounds of a hex, and errors of the source. Then
    ///   nothing is added.
    public func importMine(
        _ source: some ImportSource, into parent: Int64? = nil, merging: Bool = false, at now: Int64, diskReserve: Int64,
        digest: @escaping @Sendable (HexContent) -> [UInt8], progress: @escaping @Sendable (Int) -> Void = { _ in }
    ) async throws -> HexImport {
        let entries = source.entries
        return try await write(rows: entries.reduce(0) { $0 + Int($1.shape.links) + 1 }) { writer in
            let bytes = entries.reduce(0) { $0 + $1.weight }
            writer.passedBytes += bytes
            guard try !writer.isDiskFull(reserve: diskReserve, writing: Int64(bytes)) else {
                throw HexlistError(
                    .storageFull, "The disk has no space for the import.", hint: "Nothing was imported. Free disk space.")
            }
            var result = HexImport()
            func report(_ before: Int) {
                if result.done / Self.hexesPerStep > before / Self.hexesPerStep { progress(result.done) }
            }
            try writer.groupMine(at: now) {
                let siblings = try ImportSiblings(of: parent, on: writer)
                var fresh: [Int] = []
                for group in Self.groupsOfDescription(entries) {
                    let isOnly = group.count == 1
                    let first = try source.hex(group[group.startIndex])
                    let found = try siblings.find(
                        first.descriptionBytes, shapes: Set(group.map { entries[$0].shape }), merging: merging && isOnly, digest)
                    guard !found.isEmpty else {
                        fresh += group
                        continue
                    }
                    for index in group {
                        let before = result.done
                        let hex = index == group[group.startIndex] ? first : try source.hex(index)
                        if found.takesEqual(hex, digest) {
                            result.unchanged += 1
                        } else if let only = found.only, let merge = ImportMerge(of: hex, into: only, digest) {
                            if merge.additions.isEmpty { result.unchanged += 1 } else { result.extended += 1 }
                            let new = try writer.extend(only, by: merge, of: hex, at: now)
                            result.newHexes += new.hexes
                            result.newLinks += new.links
                            result.respelled += merge.respellings.count
                            result.respellings += merge.respellings.prefix(HexImport.respellingsShown - result.respellings.count)
                        } else {
                            fresh.append(index)
                        }
                        report(before)
                    }
                }
                fresh.sort()
                for index in parent == nil ? fresh.reversed() : fresh {
                    let before = result.done
                    _ = try writer.insertMine(source.hex(index), into: parent, at: now)
                    result.added += 1
                    let shape = entries[index].shape
                    result.addedInside += Int(shape.hexesInside)
                    result.addedLinks += Int(shape.links) + Int(shape.linksInside)
                    report(before)
                }
            }
            if let parent, result.added + result.extended > 0 { try writer.change { try writer.checkBounds(ofTop: parent) } }
            return result
        }
    }

    /// Returns the indices of the entries, grouped by description. The groups are in the order of their first entries.
    private static func groupsOfDescription(_ entries: [ImportEntry]) -> [ArraySlice<Int>] {
        let indices = entries.indices.sorted { (entries[$0].descriptionHash, $0) < (entries[$1].descriptionHash, $1) }
        var groups: [ArraySlice<Int>] = []
        var start = 0
        for end in 1...max(1, indices.count) where end <= indices.count {
            if end < indices.count, entries[indices[end]].descriptionHash == entries[indices[start]].descriptionHash { continue }
            groups.append(indices[start..<end])
            start = end
        }
        return groups.sorted { $0[$0.startIndex] < $1[$1.startIndex] }
    }
}

/// The stored hexes of the level to which an import adds hexes: the top level of My Hexlist, or the children of its parent.
private struct ImportSiblings {
    fileprivate struct Row {
        var id: Int64
        var shape: ImportEntry.Shape
    }

    /// The stored hexes with one description that are compared with imported hexes.
    final class Found {
        fileprivate var digests: [[UInt8]: Int] = [:]
        /// The stored hex that an imported hex may extend; `nil` if merging is not possible.
        fileprivate(set) var only: HexDetail?

        /// Whether every imported hex with this description is new: none can be equal to a stored hex or extend it.
        var isEmpty: Bool { digests.isEmpty && only == nil }

        /// Removes one stored hex that is equal to `hex` from the comparison.
        func takesEqual(_ hex: HexContent, _ digest: (HexContent) -> [UInt8]) -> Bool {
            guard !digests.isEmpty else { return false }
            let key = digest(hex)
            guard let count = digests[key], count > 0 else { return false }
            digests[key] = count - 1
            return true
        }
    }

    private let reader: StoreReader
    /// The children of the parent, by description; `nil` for an import to the top level, whose hexes are queried by description.
    private var inside: [[UInt8]: [Row]]?

    init(of parent: Int64?, on writer: StoreWriter) throws {
        reader = writer
        guard let parent else { return }
        let ids = jsonArray(try writer.childrenOfMine(parent))
        let rows = try writer.all(
            "SELECT id, linkCount, hexesInside, linksInside, description FROM hex WHERE id IN (SELECT value FROM json_each(?))", ids
        ) { (key: $0.bytes(4), row: Row(id: $0.int64(0), shape: ImportEntry.Shape($0))) }
        inside = Dictionary(grouping: rows, by: \.key).mapValues { $0.map(\.row) }
    }

    /// Reads the stored hexes with a description that may be equal to imported hexes, or that an imported hex may extend.
    /// - Parameters:
    ///   - shapes: the shapes of the imported hexes with this description. Stored hexes of other shapes cannot be equal and are not read.
    ///   - merging: whether an imported hex may extend a stored one. It may only if each of the two is the only one with this description.
    func find(
        _ description: [UInt8], shapes: Set<ImportEntry.Shape>, merging: Bool, _ digest: (HexContent) -> [UInt8]
    ) throws -> Found {
        let rows = try inside.map { $0[description] ?? [] } ?? mine(description)
        let found = Found()
        let wanted = rows.filter { shapes.contains($0.shape) }.map(\.id)
        for start in stride(from: 0, to: wanted.count, by: Self.hexesPerQuery) {
            for hex in try reader.hexes(Array(wanted[start..<min(start + Self.hexesPerQuery, wanted.count)])) {
                found.digests[digest(hex.content), default: 0] += 1
            }
        }
        let isNamed = !description.allSatisfy { $0 == 0x20 }
        if merging, isNamed, rows.count == 1, try reader.isOwned(reader.listOfContents(rows[0].id)) {
            found.only = try reader.hex(rows[0].id)
        }
        return found
    }

    /// Number of stored hexes that are read at a time. Small, because a hex may have several MiB.
    private static let hexesPerQuery = 8

    private func mine(_ description: [UInt8]) throws -> [Row] {
        // The `+` stops SQLite from substituting the constant for the column in `substr`; the expression would then not match the index.
        try reader.all(
            """
            SELECT id, linkCount, hexesInside, linksInside FROM hex INDEXED BY hexMine
            WHERE location = 'mine' AND substr(description, 1, 64) = substr(?1, 1, 64) AND +description = ?1
            """, String(decoding: description, as: UTF8.self)
        ) { Row(id: $0.int64(0), shape: ImportEntry.Shape($0)) }
    }
}

extension ImportEntry.Shape {
    /// Reads the counts from a row with the columns `id, linkCount, hexesInside, linksInside, …`.
    fileprivate init(_ row: SQLStatement) {
        self.init(links: row.int(1), hexesInside: row.int(2), linksInside: row.int(3))
    }
}

extension HexContent {
    fileprivate var descriptionBytes: [UInt8] { withBytes(of: hexDescription) { Array($0) } }
}
