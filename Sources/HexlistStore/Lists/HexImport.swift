public import HexlistModel

/// What an import did.
public struct HexImport: Sendable, Equatable {
    public var added = 0
    /// Hexes inside those that were added.
    public var addedInside = 0
    /// Hexes that were in My Hexlist before, with all that was imported of them.
    public var unchanged = 0
    /// Hexes that were there before and got what is new, and the hexes and links they got, with those inside them.
    public var extended = 0
    public var newHexes = 0
    public var newLinks = 0

    /// The hexes that were looked at.
    fileprivate var done: Int { added + unchanged + extended }
}

extension HexStore {
    /// Hexes between two calls that tell how far an import is.
    private static let hexesPerStep = 200

    /// Puts hexes into My Hexlist in one transaction, the last first, so that the list shows them in their order. One that is there already,
    /// with the same links and all inside it, is not added: as many equal ones as there are count.
    ///
    /// - Parameters:
    ///   - parent: the hex of My Hexlist whose inside they are added to, at its end; `nil` for none.
    ///   - merging: whether a hex is a folder, which gets what is new (`ImportMerge`) where one of its description and sender is there, and
    ///     no other of that description on either side.
    ///   - now: milliseconds since 1970.
    ///   - diskReserve: the bytes of the file system to leave free.
    ///   - digest: the same for equal hexes and for no others.
    ///   - progress: called on the writer's thread with the number of hexes that are done.
    /// - Throws: `.storageFull`, `.notFound`, `.badRequest` for a hex that cannot be; then nothing is added.
    public func importMine(
        _ hexes: [HexContent], into parent: Int64? = nil, merging: Bool = false, at now: Int64, diskReserve: Int64,
        digest: @escaping @Sendable (HexContent) -> [UInt8], progress: @escaping @Sendable (Int) -> Void = { _ in }
    ) async throws -> HexImport {
        try await write(rows: hexes.reduce(0) { $0 + $1.links.count + 1 }) { writer in
            let bytes = hexes.reduce(0) { $0 + $1.weight(frame: $1.frame.count) }
            writer.passedBytes += bytes
            guard try !writer.isDiskFull(reserve: diskReserve, writing: Int64(bytes)) else {
                throw HexlistError(
                    .storageFull, "The disk has no room for what is imported.", hint: "Nothing was imported. Free some of it.")
            }
            var result = HexImport()
            func tell(_ before: Int) {
                if result.done / Self.hexesPerStep > before / Self.hexesPerStep { progress(result.done) }
            }
            let siblings = try ImportSiblings(of: parent, on: writer)
            var fresh: [Int] = []
            // Those of one description are compared with one another's.
            let groups = Dictionary(grouping: hexes.indices) { hexes[$0].descriptionBytes }
            for group in groups.sorted(by: { $0.value[0] < $1.value[0] }) {
                let found = try siblings.find(group.key, for: group.value.map { hexes[$0] }, merging: merging, digest)
                for index in group.value {
                    let before = result.done
                    if found.takesEqual(hexes[index], digest) {
                        result.unchanged += 1
                    } else if group.value.count == 1, let only = found.only, let merge = ImportMerge(of: hexes[index], into: only, digest) {
                        if merge.additions.isEmpty { result.unchanged += 1 } else { result.extended += 1 }
                        let new = try writer.extend(only, by: merge, of: hexes[index], at: now)
                        result.newHexes += new.hexes
                        result.newLinks += new.links
                    } else {
                        fresh.append(index)
                    }
                    tell(before)
                }
            }
            fresh.sort()
            for index in parent == nil ? fresh.reversed() : fresh {
                let before = result.done
                let id = try writer.insertMine(hexes[index], at: now)
                if let parent { try writer.put(id, into: parent) }
                result.added += 1
                result.addedInside += hexes[index].children.count
                tell(before)
            }
            if let parent, result.added + result.extended > 0 { try writer.change { try writer.checkBounds(ofTop: parent) } }
            return result
        }
    }
}

/// The hexes that imported ones come to stand beside: those of My Hexlist itself, or those directly inside one of them.
private struct ImportSiblings {
    fileprivate struct Row {
        var id: Int64
        var shape: Shape
    }

    /// What equal hexes have in common, and can be read without their links.
    fileprivate struct Shape: Hashable {
        var links: Int
        var hexesInside: Int
        var linksInside: Int
    }

    /// Hexes of one description that are there.
    final class Found {
        fileprivate var digests: [[UInt8]: Int] = [:]
        /// The one that is there, if it is the only one.
        fileprivate(set) var only: HexDetail?

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
    /// The rows inside the hex, by description; `nil` for My Hexlist itself, where they are looked up.
    private var inside: [[UInt8]: [Row]]?

    init(of parent: Int64?, on writer: StoreWriter) throws {
        reader = writer
        guard let parent else { return }
        let ids = jsonArray(try writer.childrenOfMine(parent))
        let rows = try writer.all(
            "SELECT id, linkCount, hexesInside, linksInside, description FROM hex WHERE id IN (SELECT value FROM json_each(?))", ids
        ) { (key: $0.bytes(4), row: Row(id: $0.int64(0), shape: Shape($0))) }
        inside = Dictionary(grouping: rows, by: \.key).mapValues { $0.map(\.row) }
    }

    /// Reads of the hexes of a description those that imported ones may be equal to, or be merged with.
    func find(
        _ description: [UInt8], for hexes: [HexContent], merging: Bool, _ digest: (HexContent) -> [UInt8]
    ) throws -> Found {
        let rows = try inside.map { $0[description] ?? [] } ?? mine(description)
        let found = Found()
        let shapes = Set(hexes.map { Shape(links: $0.links.count, hexesInside: $0.children.count, linksInside: $0.childLinks.count) })
        let wanted = rows.filter { shapes.contains($0.shape) }.map(\.id)
        for start in stride(from: 0, to: wanted.count, by: Self.piece) {
            for hex in try reader.hexes(Array(wanted[start..<min(start + Self.piece, wanted.count)])) {
                found.digests[digest(hex.content), default: 0] += 1
            }
        }
        let isNamed = !description.allSatisfy { $0 == 0x20 }
        if merging, isNamed, hexes.count == 1, rows.count == 1 { found.only = try reader.hex(rows[0].id) }
        return found
    }

    /// Hexes that are read at once.
    private static let piece = 100

    private func mine(_ description: [UInt8]) throws -> [Row] {
        // The plus keeps SQLite from putting the text in place of the column in `substr` too, which the index would then not match.
        try reader.all(
            """
            SELECT id, linkCount, hexesInside, linksInside FROM hex INDEXED BY hexMine
            WHERE location = 'mine' AND substr(description, 1, 64) = substr(?1, 1, 64) AND +description = ?1
            """, String(decoding: description, as: UTF8.self)
        ) { Row(id: $0.int64(0), shape: Shape($0)) }
    }
}

extension ImportSiblings.Shape {
    /// Of a row of `id, linkCount, hexesInside, linksInside, …`.
    fileprivate init(_ row: SQLStatement) {
        self.init(links: row.int(1), hexesInside: row.int(2), linksInside: row.int(3))
    }
}

extension HexContent {
    fileprivate var descriptionBytes: [UInt8] { withBytes(of: hexDescription) { Array($0) } }
}
