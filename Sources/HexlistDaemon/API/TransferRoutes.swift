import Crypto
import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistNode
import HexlistStore
import HexlistWire
import Hummingbird
import NIOCore
import Synchronization

/// `/v1/export` and `/v1/import`: stored hexes out, and hexes into My Hexlist, one HexJM a line.
struct TransferRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.post("/v1/export", use: export)
        router.post("/v1/import", use: importing)
    }

    // MARK: Out

    /// Hexes that are read and written at once.
    private static let pieceHexes = 100

    private func export(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let selection: ExportSelection = try await APIInput.requiredShape(request)
        let source = try await source(selection)
        let store = api.store
        let body = ResponseBody { writer in
            try await source.forEachPage(of: store) { ids in
                for start in stride(from: 0, to: ids.count, by: Self.pieceHexes) {
                    let piece = Array(ids[start..<min(start + Self.pieceHexes, ids.count)])
                    let hexes = try await store.read { try $0.hexes(piece) }
                    guard !hexes.isEmpty else { continue }
                    try await writer.write(ByteBuffer(bytes: hexes.flatMap { Self.line($0.content) }))
                }
            }
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: [.contentType: LocalAPI.bulkType, .cacheControl: "no-store"], body: body)
    }

    /// The HexJM with what is not to be shown escaped, so that the file can be looked at.
    private static func line(_ hex: HexContent) -> [UInt8] {
        var json = JSONWriter()
        json.raw(HexEncoder.encode(hex))
        return json.bytes + [0x0A]
    }

    /// What is exported.
    private enum Source: Sendable {
        case ids([Int64])
        case groups([HexGroup])
        case search(SearchFilter)

        func forEachPage(of store: HexStore, _ body: ([Int64]) async throws -> Void) async throws {
            switch self {
            case .ids(let ids): try await body(ids)
            case .groups(let groups):
                for group in groups {
                    try await Self.each({ after in try await store.read { try $0.hexIDs(group, after: after) } }, body)
                }
            case .search(let filter):
                try await Self.each({ after in try await store.readWithIndex { try $0.searchedIDs(filter, after: after) } }, body)
            }
        }

        private static func each(
            _ page: (Int64?) async throws -> HexlistStore.Page<Int64>, _ body: ([Int64]) async throws -> Void
        ) async throws {
            var after: Int64?
            repeat {
                let page = try await page(after)
                try await body(page.items)
                after = page.next
            } while after != nil
        }
    }

    /// - Throws: `notFound` for a named hex that is not there.
    private func source(_ selection: ExportSelection) async throws -> Source {
        switch selection {
        case .hexes(let hexes): return try await source(hexes)
        case .search(let text, let from, let location):
            var filter = SearchFilter(try SearchTerm.parse(text))
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
            guard newest == nil else { throw HexlistError(.badRequest, "`newest` is not known here.") }
            let location: HexLocation = try location.map { try APIQuery.choice($0, of: "location") } ?? .inbox
            let peer: PeerID? = if let from { try await api.sender(from) } else { nil }
            return .groups([.list(HexFilter(location: location, peer: peer))])
        }
    }

    // MARK: In

    private func importing(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let query = try APIQuery(request, allowing: ["in", "merge", "progress"])
        let parent = try query.number("in", 1...Int64.max)
        let (isMerging, tells) = (try query.flag("merge"), try query.flag("progress"))
        let slot = try await api.importSlot()
        let body = request.body
        guard tells else {
            let result = try await api.importing(slot) {
                try await stored(Self.read(body), into: parent, merging: isMerging) { _ in }
            }
            return APIReply.json(result)
        }
        let read = try await api.importing(slot) { ImportHandover(try await Self.read(body)) }
        return ProgressStream.response(request, api: api) { tell -> ImportResult in
            try await api.importing(slot) {
                let hexes = read.take()
                let total = hexes.hexes.count
                return try await stored(hexes, into: parent, merging: isMerging) { tell(ImportProgress(done: $0, total: total)) }
            }
        }
    }

    private static func read(_ body: RequestBody) async throws -> ReadHexes {
        var reader = try await APIInput.read(body, into: ImportReader()) { try $0.feed($1) }
        try reader.finish()
        return reader.read
    }

    /// The hexes of a request until their import begins, which is then the only one to have them.
    private final class ImportHandover: Sendable {
        private let read: Mutex<ReadHexes>

        init(_ read: ReadHexes) { self.read = Mutex(read) }

        /// The hexes the first time, then none.
        func take() -> ReadHexes {
            read.withLock { read in
                defer { read = ReadHexes() }
                return read
            }
        }
    }

    private func stored(
        _ read: ReadHexes, into parent: Int64?, merging: Bool, progress: @escaping @Sendable (Int) -> Void
    ) async throws -> ImportResult {
        try Task.checkCancellation()
        let done = try await api.store.importMine(
            read.hexes, into: parent, merging: merging, at: Timestamp.now.milliseconds,
            diskReserve: Int64(await api.node.configuration.limits.diskReserveBytes),
            digest: { hex in
                // An unknown member that was exported and imported may have another place and other escapes than before.
                let bytes = HexEncoder.encode(hex)
                let canonical = (try? JSONValue(parsing: bytes))?.canonicalBytes ?? bytes
                return canonical.withUnsafeBytes { Array(SHA256.hash(data: $0)) }
            }, progress: progress)
        return ImportResult(
            added: done.added, addedInside: done.addedInside, unchanged: done.unchanged, extended: done.extended,
            newHexes: done.newHexes, newLinks: done.newLinks, refused: read.refused, untold: read.untold)
    }
}

/// What was read of an import.
struct ReadHexes: Sendable {
    var hexes: [HexContent] = []
    var refused: [BulkRefusal] = []
    var untold = 0
}

/// The hexes of an import, which wait in memory for their one transaction: bounded by what they take there.
struct ImportReader {
    private(set) var read = ReadHexes()
    private var weight = 0
    private var decoder = WrapperDecoder()
    private var splitter = LineSplitter(limit: ProtocolLimits.largestFrameBytes)

    /// - Throws: `tooLarge`
    mutating func feed(_ bytes: UnsafeRawBufferPointer) throws(HexlistError) {
        for (number, line) in splitter.lines(bytes) { try take(number, line) }
    }

    mutating func finish() throws(HexlistError) {
        for (number, line) in splitter.lastLine() { try take(number, line) }
    }

    private mutating func take(_ number: Int, _ line: [UInt8]?) throws(HexlistError) {
        guard let line else {
            let message = "the line is longer than \(ProtocolLimits.largestFrameBytes) bytes"
            return refuse(BulkRefusal(line: number, code: RefusalCode.tooLarge.rawValue, message: message))
        }
        if line.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }) { return }
        switch decoder.decodeHex(line, acceptsLocalNames: true) {
        case .failure(let refusal): refuse(BulkRefusal(line: number, code: refusal.code.rawValue, message: refusal.message))
        case .success(let hex):
            weight += hex.content.weight(frame: line.count)
            guard weight <= LocalAPI.importWeight else {
                throw HexlistError(
                    .tooLarge, "What is imported at once takes more than \(LocalAPI.importWeight >> 20) MiB of memory.",
                    hint: "Nothing was imported. Split it.")
            }
            read.hexes.append(hex.content)
        }
    }

    private mutating func refuse(_ refusal: BulkRefusal) {
        if read.refused.count < LocalAPI.importRefusals { read.refused.append(refusal) } else { read.untold += 1 }
    }
}
