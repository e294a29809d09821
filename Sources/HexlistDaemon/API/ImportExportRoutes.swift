import Crypto
import HexlistAPI
import HexlistFormats
import HexlistJSON
import HexlistModel
import HexlistNode
import HexlistStore
import HexlistWire
import Hummingbird
import NIOCore

/// `/v1/export` and `/v1/import`: streams of hexes, one HexJM per line. An export returns stored hexes; an import adds hexes to My Hexlist.
struct ImportExportRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.post("/v1/export", use: export)
        router.post("/v1/import", use: importing)
    }

    // MARK: Export

    /// Number of hexes that are read and sent in one step.
    private static let batchSize = 100

    private func export(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let format = try APIQuery(request, allowing: ["format"]).choice("format", among: FileFormat.written)
        let selection: ExportSelection = try await RequestInput.requiredShape(request)
        let source = try await source(selection)
        let store = api.store
        if let format { return try await export(source, as: format, isMine: selection.isMine) }
        let body = ResponseBody { writer in
            try await source.forEachPage(of: store) { ids in
                for start in stride(from: 0, to: ids.count, by: Self.batchSize) {
                    let batch = Array(ids[start..<min(start + Self.batchSize, ids.count)])
                    let hexes = try await store.read { try $0.hexes(batch) }
                    guard !hexes.isEmpty else { continue }
                    try await writer.write(ByteBuffer(bytes: hexes.flatMap { Self.line($0.content) }))
                }
            }
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: [.contentType: LocalAPI.bulkType, .cacheControl: "no-store"], body: body)
    }

    /// Returns the whole export as a file in a format. All its hexes are in memory at the same time.
    /// - Throws: `tooLarge` above `LocalAPI.importWeight`.
    private func export(_ source: Source, as format: FileFormat, isMine: Bool) async throws -> Response {
        let store = api.store
        var lines: [JSONValue] = []
        var bytes = 0
        try await source.forEachPage(of: store) { ids in
            for start in stride(from: 0, to: ids.count, by: Self.batchSize) {
                let batch = Array(ids[start..<min(start + Self.batchSize, ids.count)])
                for hex in try await store.read({ try $0.hexes(batch) }) {
                    let line = HexEncoder.encode(hex.content)
                    bytes += line.count
                    guard bytes <= LocalAPI.importWeight else {
                        throw HexlistError(
                            .tooLarge, "The export is larger than \(LocalAPI.importWeight >> 20) MiB.", hint: "Use `hexlist export`.")
                    }
                    lines.append(try JSONValue(parsing: line))
                }
            }
        }
        let file = format.write(lines, isMine: isMine)
        return Response(
            status: .ok, headers: [.contentType: LocalAPI.uploadType, .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: file)))
    }

    /// Returns a hex as HexJM in one line, with control characters escaped for display.
    private static func line(_ hex: HexContent) -> [UInt8] {
        var json = JSONWriter()
        json.raw(HexEncoder.encode(hex))
        return json.bytes + [0x0A]
    }

    /// The hexes to export.
    private enum Source: Sendable {
        case ids([Int64])
        case groups([HexSet])
        case search(SearchFilter)

        func forEachPage(of store: HexStore, _ body: ([Int64]) async throws -> Void) async throws {
            switch self {
            case .ids(let ids): try await body(ids)
            case .groups(let groups):
                for group in groups {
                    try await Self.each(body) { after in
                        let page = try await store.read { try $0.hexIDs(group, after: after) }
                        return (page.items, page.next)
                    }
                }
            case .search(let filter):
                try await Self.each(body) { after in
                    let page = try await store.readWithIndex { try $0.searchedIDs(filter, after: after) }
                    return (page.items, page.next)
                }
            }
        }

        private static func each<Cursor>(
            _ body: ([Int64]) async throws -> Void, of page: (Cursor?) async throws -> (ids: [Int64], next: Cursor?)
        ) async throws {
            var after: Cursor?
            repeat {
                let (ids, next) = try await page(after)
                try await body(ids)
                after = next
            } while after != nil
        }
    }

    /// Converts the selection of an export to the hexes to read.
    /// - Throws: `notFound` for an unknown id.
    private func source(_ selection: ExportSelection) async throws -> Source {
        switch selection {
        case .hexes(let hexes): return try await source(hexes)
        case .search(let text, let from, let location):
            var filter = try await api.searchFilter(text)
            filter.location = try location.map { try APIQuery.choice($0, of: "location") }
            if let from { filter.peer = try await api.sender(from) }
            return .search(filter)
        }
    }

    private func source(_ selection: HexSelection) async throws -> Source {
        switch selection {
        case .ids(let ids, let ranges):
            try HexRoutes.check(ids, ranges)
            let present = try await api.store.read { try $0.locations(of: ids) }
            if let missing = ids.first(where: { present[$0] == nil }) { throw HexlistError.noHex(missing) }
            guard !ranges.isEmpty else { return .ids(ids) }
            guard ids.isEmpty else { throw HexlistError(.badRequest, "`ids` and `ranges` do not go together here.") }
            let newest = try await api.store.read { try $0.newestHex() }
            return .groups(ranges.filter { $0.lowerBound <= newest }.map { .ids($0.clamped(to: $0.lowerBound...newest), in: nil) })
        case .list(let from, let location, let newest):
            guard newest == nil else { throw HexlistError(.badRequest, "`newest` is unknown.") }
            let location: HexLocation = try location.map { try APIQuery.choice($0, of: "location") } ?? .inbox
            let peer: PeerID? = if let from { try await api.sender(from) } else { nil }
            return .groups([.list(HexFilter(location: location, peer: peer))])
        }
    }

    // MARK: Import

    /// Maximum bytes of an imported file. The whole file is in memory while it is parsed.
    private static let fileBytes = 32 << 20

    private func importing(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let query = try APIQuery(request, allowing: ["in", "merge", "progress", "file"])
        let parent = try query.number("in", 1...Int64.max)
        var (isMerging, reportsProgress) = (try query.flag("merge"), try query.flag("progress"))
        let name = try query.text("file")
        let slot = try await api.importSlot()
        let body = request.body
        let limits = await api.node.configuration.limits
        let diskReserve = Int64(limits.diskReserveBytes)
        let (spooled, folders, skipped) = try await api.importing(slot) { [folder = api.stateFolder] in
            let reader = try ImportReader(folder: folder, diskReserve: diskReserve)
            guard let name else {
                var reader = try await RequestInput.read(body, into: reader) { try $0.feed($1) }
                return (try reader.finish(), false, 0)
            }
            let bytes = try await RequestInput.read(body, into: [UInt8]()) { file, piece in
                guard file.count + piece.count <= Self.fileBytes else {
                    throw HexlistError(
                        .tooLarge, "The file is larger than \(Self.fileBytes >> 20) MiB.", hint: "Import it with `hexlist import`.")
                }
                file += piece
            }
            let file = try BookmarkFile(bytes, name: name)
            var filled = reader
            for line in file.lines { try (line.bytes + [0x0A]).withUnsafeBytes { try filled.feed($0) } }
            return (try filled.finish(), file.hasFolders, file.skipped)
        }
        isMerging = isMerging || folders
        guard reportsProgress else {
            return APIReply.json(
                try await api.importing(slot) { [isMerging] in
                    try await store(spooled, skipped, into: parent, merging: isMerging, diskReserve) { _ in }
                })
        }
        let total = spooled.entries.count
        return ProgressStream.response(request, api: api) { [isMerging] report -> ImportResult in
            try await api.importing(slot) {
                try await store(spooled, skipped, into: parent, merging: isMerging, diskReserve) {
                    report(ImportProgress(done: $0, total: total))
                }
            }
        }
    }

    private func store(
        _ spooled: SpooledImport, _ skipped: Int, into parent: Int64?, merging: Bool, _ diskReserve: Int64,
        progress: @escaping @Sendable (Int) -> Void
    ) async throws -> ImportResult {
        try Task.checkCancellation()
        let done = try await api.store.importMine(
            spooled, into: parent, merging: merging, at: Timestamp.now.milliseconds, diskReserve: diskReserve,
            digest: { hex in
                // The digest is computed from the canonical form, because an export may change the order and the escapes of unknown
                // members.
                let bytes = HexEncoder.encode(hex)
                let canonical = (try? JSONValue(parsing: bytes))?.canonicalBytes ?? bytes
                return canonical.withUnsafeBytes { Array(SHA256.hash(data: $0)) }
            }, progress: progress)
        return ImportResult(
            added: done.added, addedInside: done.addedInside, addedLinks: done.addedLinks, unchanged: done.unchanged,
            extended: done.extended,
            newHexes: done.newHexes, newLinks: done.newLinks, respelled: done.respelled,
            respellings: done.respellings.map { EquivalentLinkJSON(url: $0.url, stored: $0.stored) }, refused: spooled.refused,
            untold: spooled.unlisted, skipped: skipped)
    }
}
