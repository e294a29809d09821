import HexlistAPI

extension Output {
    /// Requests a list page by page, and prints each as JSON objects, or as rows of a table whose header precedes the first row.
    /// - Parameters:
    ///   - maximum: maximum number of rows.
    ///   - request: requests a page with at most `limit` rows, after a cursor.
    /// - Returns: the number of printed rows, and whether the list has more.
    func pages<Row>(
        maximum: Int, header: [String], _ request: (_ limit: Int, _ cursor: String?) async throws -> Page<Row>,
        cells: @escaping (Row) -> [Table.Cell]
    ) async throws -> (listed: Int, hasMore: Bool) {
        try await pages(maximum: maximum, request) { _ in (header, cells) }
    }

    /// - Parameter columns: returns the header, and the cells of a row, given the rows of the first page.
    func pages<Row>(
        maximum: Int, _ request: (_ limit: Int, _ cursor: String?) async throws -> Page<Row>,
        columns: ([Row]) -> (header: [String], cells: (Row) -> [Table.Cell])
    ) async throws -> (listed: Int, hasMore: Bool) {
        var table: (header: [String], cells: (Row) -> [Table.Cell])?
        var (cursor, listed): (String?, Int) = (nil, 0)
        repeat {
            let page = try await request(min(maximum - listed, LocalAPI.pageLimit), cursor)
            cursor = page.next
            if json {
                for row in page.items { try object(row) }
            } else if !page.items.isEmpty {
                let (header, cells) = table ?? columns(page.items)
                var lines = Table(table == nil ? header : [])
                for row in page.items { lines.add(cells(row)) }
                try self.table(lines)
                table = (header, cells)
            }
            listed += page.items.count
            if listed >= maximum { try cut(cursor) }
            try flush()
        } while cursor != nil && listed < maximum
        return (listed, cursor != nil)
    }
}
