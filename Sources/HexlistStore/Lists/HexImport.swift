public import HexlistModel

/// The result of an import.
public struct HexImport: Sendable, Equatable {
    public var added = 0
    /// Hexes inside the added hexes.
    public var addedInside = 0
    /// Hexes that My Hexlist had before with all their links and hexes inside.
    public var unchanged = 0
    /// Hexes that got new links or hexes inside; then the numbers of those, at all levels.
    public var extended = 0
    /// Hexes that merging added, at all levels.
    public var newHexes = 0
    /// Links that merging added.
    public var newLinks = 0

    /// The hexes that were compared or stored.
    fileprivate var done: Int { added + unchanged + extended }
}

extension HexStore {
    /// Hexes between two reports of progress.
    private static let hexesPerStep = 200

    /// Adds hexes to My Hexlist in one transaction, the last one first, so that the list shows them in their order. A hex that My Hexlist
    /// has already, with the same links and the same hexes inside, is not added again: each stored hex stands for one imported hex.
    ///
    /// Memory: one hex of the source at a time, and about 80 bytes for each entry.
    ///
    /// - Parameters:
    ///   - parent: the hex of My Hexlist that gets the imported ones inside, at its end; `nil` for none.
    ///   - merging: whether a hex is a folder that extends (`ImportMerge`) the stored hex of its description and sender, if that description
    ///     is unique on both sides.
    ///   - now: milliseconds since 1970.
    ///   - diskReserve: bytes of the file system to leave free.
    ///   - digest: equal for equal hexes, different for all others.
    ///   - progress: called on the writer's thread with the number of hexes that are done.
    /// - Throws: `.storageFull`, `.notFound`, `.badRequest` for a hex that My Hexlist refuses, and errors of the source; then nothing is added.
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
                    } else {
                        fresh.append(index)
                    }
                    report(before)
                }
            }
            fresh.sort()
            for index in parent == nil ? fresh.reversed() : fresh {
                let before = result.done
                let id = try writer.insertMine(source.hex(index), at: now)
                if let parent { try writer.append(id, to: parent) }
                result.added += 1
                result.addedInside += Int(entries[index].shape.hexesInside)
                report(before)
            }
            if let parent, result.added + result.extended > 0 { try writer.change { try writer.checkBounds(ofTop: parent) } }
            return result
        }
    }

    /// Indices of the entries of each description, in the order of their first ones.
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

/// The stored hexes beside which the imported ones are put: those of My Hexlist itself, or those directly inside one of them.
private struct ImportSiblings {
    fileprivate struct Row {
        var id: Int64
        var shape: ImportEntry.Shape
    }

    /// Stored hexes of one description.
    final class Found {
        fileprivate var digests: [[UInt8]: Int] = [:]
        /// The stored hex that may be extended.
        fileprivate(set) var only: HexDetail?

        /// Whether no imported hex can be equal to one of these or extend one.
        var isEmpty: Bool { digests.isEmpty && only == nil }

        /// Takes one that is equal, if there is one left.
        func takesEqual(_ hex: HexContent, _ digest: (HexContent) -> [UInt8]) -> Bool {
            guard !digests.isEmpty else { return false }
            let key = digest(hex)
            guard let count = digests[key], count > 0 else { return false }
            digests[key] = count - 1
            return true
        }
    }

    private let reader: StoreReader
    /// The rows inside the parent, by description; `nil` for the top level, which is queried by description.
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

    /// Reads the stored hexes of a description that may be equal to imported ones, or be extended by one.
    /// - Parameters:
    ///   - shapes: those of the imported hexes.
    ///   - merging: whether the only imported hex of this description may extend the only stored one.
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
        if merging, isNamed, rows.count == 1 { found.only = try reader.hex(rows[0].id) }
        return found
    }

    /// Few, because each hex may have some MiB.
    private static let hexesPerQuery = 8

    private func mine(_ description: [UInt8]) throws -> [Row] {
        // The plus keeps SQLite from replacing the column in `substr` by the constant, which would not match the index.
        try reader.all(
            """
            SELECT id, linkCount, hexesInside, linksInside FROM hex INDEXED BY hexMine
            WHERE location = 'mine' AND substr(description, 1, 64) = substr(?1, 1, 64) AND +description = ?1
            """, String(decoding: description, as: UTF8.self)
        ) { Row(id: $0.int64(0), shape: ImportEntry.Shape($0)) }
    }
}

extension ImportEntry.Shape {
    /// The counts of a row of `id, linkCount, hexesInside, linksInside, …`.
    fileprivate init(_ row: SQLStatement) {
        self.init(links: row.int(1), hexesInside: row.int(2), linksInside: row.int(3))
    }
}

extension HexContent {
    fileprivate var descriptionBytes: [UInt8] { withBytes(of: hexDescription) { Array($0) } }
}
