public import HexlistModel

/// What an import did.
public struct HexImport: Sendable, Equatable {
    public var added = 0
    /// Hexes that were in My Hexlist before.
    public var unchanged = 0
}

extension HexStore {
    /// Puts hexes into My Hexlist in one transaction, the last first, so that the list shows them in their order. One that is there already,
    /// with the same links and all inside it, is not added: as many equal ones as there are count.
    ///
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - diskReserve: the bytes of the file system to leave free.
    ///   - digest: the same for equal hexes and for no others.
    /// - Throws: `.storageFull`, `.badRequest` for a hex that cannot be; then nothing is added.
    public func importMine(
        _ hexes: [HexContent], at now: Int64, diskReserve: Int64, digest: @escaping @Sendable (HexContent) -> [UInt8]
    ) async throws -> HexImport {
        try await write(rows: hexes.reduce(0) { $0 + $1.links.count + 1 }) { writer in
            var known = try writer.digestsOfMine(digest)
            guard try !writer.isDiskFull(reserve: diskReserve, writing: hexes.reduce(0) { $0 + Int64($1.weight(frame: $1.frame.count)) })
            else {
                throw HexlistError(
                    .storageFull, "The disk has no room for what is imported.", hint: "Nothing was imported. Free some of it.")
            }
            var result = HexImport()
            var fresh: [HexContent] = []
            for hex in hexes {
                let key = digest(hex)
                if let count = known[key], count > 0 {
                    known[key] = count - 1
                    result.unchanged += 1
                } else {
                    fresh.append(hex)
                }
            }
            for hex in fresh.reversed() { _ = try writer.insertMine(hex, at: now) }
            result.added = fresh.count
            return result
        }
    }
}

extension StoreWriter {
    /// How often each digest is in My Hexlist.
    fileprivate func digestsOfMine(_ digest: (HexContent) -> [UInt8]) throws -> [[UInt8]: Int] {
        var known: [[UInt8]: Int] = [:]
        var after: Int64?
        repeat {
            let page = try hexIDs(.list(HexFilter(location: .mine)), after: after)
            for hex in try hexes(page.items) { known[digest(hex.content), default: 0] += 1 }
            after = page.next
        } while after != nil
        return known
    }
}
