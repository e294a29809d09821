internal import HexlistModel

/// All hexes of a list, newest first, page by page. Memory stays flat however many there are, and the store is not locked between two
/// pages. Hexes that arrive meanwhile are not included; those deleted meanwhile are skipped.
public struct HexPages: AsyncSequence, Sendable {
    public typealias Element = [HexSummary]

    let store: HexStore
    let filter: HexFilter
    let pageSize: Int

    public struct AsyncIterator: AsyncIteratorProtocol {
        let pages: HexPages
        private var after: Int64?
        private var isAtEnd = false

        init(_ pages: HexPages) { self.pages = pages }

        public mutating func next() async throws -> [HexSummary]? {
            guard !isAtEnd else { return nil }
            let (pages, after) = (pages, after)
            let page = try await pages.store.read { try $0.hexPage(pages.filter, limit: pages.pageSize, after: after) }
            self.after = page.next
            isAtEnd = page.next == nil
            return page.items.isEmpty ? nil : page.items
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}

extension HexStore {
    /// - Parameter pageSize: the number of hexes read at once.
    public func hexPages(_ filter: HexFilter = HexFilter(), pageSize: Int = 500) -> HexPages {
        HexPages(store: self, filter: filter, pageSize: pageSize)
    }
}
