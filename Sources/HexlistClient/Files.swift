public import HexlistAPI
public import HexlistModel

// Offers, transfers, shares and services.
extension HexlistClient {
    /// Offers files and folders to peers. The daemon reads all of the files to compute their hashes.
    /// - Parameter onProgress: called with each progress report.
    /// - Returns: a hex with links to the files, ready to send.
    public func offer(_ request: OfferRequest, _ onProgress: (OfferProgress) -> Void) async throws -> OfferResult {
        try await connection.progress("/v1/offers", body: request.jsonBytes, seconds: Self.readingSeconds, onProgress)
    }

    /// Timeout in seconds of requests that read files. In 24 h several terabytes can be read.
    private static let readingSeconds = 86_400.0

    /// Starts to download the files that a hex links to, or a file or folder of a service.
    public func fetch(_ request: TransferRequest) async throws -> TransferStartResult {
        try await connection.call(
            .POST, "/v1/transfers", body: request.jsonBytes, seconds: connection.replySeconds + (request.timeout ?? 0))
    }

    public func shares() async throws -> [ShareView] {
        try await connection.list("/v1/shares")
    }

    public func share(_ request: ShareRequest) async throws -> ShareView {
        try await connection.call(.POST, "/v1/shares", body: request.jsonBytes)
    }

    /// Ends a share.
    /// - Returns: the removed share.
    public func endShare(_ name: String) async throws -> ShareView {
        try await connection.call(.DELETE, "/v1/shares/\(try Self.segment(name, "share"))")
    }

    public func services() async throws -> [ServiceView] {
        try await connection.list("/v1/services")
    }

    /// Requests a page of the entries in a folder of a service.
    public func files(
        of service: String, at path: String, by order: FolderSortOrder = .name, limit: Int, after cursor: String? = nil, force: Bool = false
    ) async throws -> FilePage {
        var query = URLQuery()
        query.add("path", path)
        query.add("sort", order.rawValue)
        query.add("limit", String(limit))
        query.add("after", cursor)
        if force { query.add("force", "true") }
        return try await connection.call(.GET, "/v1/services/\(try Self.segment(service, "service"))/files", query: query)
    }

    /// Creates links to files of a service.
    /// - Parameter each: called with the reply for each path. Replies arrive in any order.
    public func links(of service: String, _ request: ServiceLinksRequest, _ each: (ServiceLinkResult) throws -> Void) async throws
        -> ServiceLinkCounts
    {
        var summary: ServiceLinkCounts?
        let path = "/v1/services/\(try Self.segment(service, "service"))/links"
        try await connection.lines(
            path, query: URLQuery(), body: request.jsonBytes, type: LocalAPI.jsonType, seconds: Self.readingSeconds
        ) { line in
            switch try APIConnection.decode(line) as LinkLine {
            case .reply(let reply): try each(reply)
            case .summary(let end): summary = end
            case .error(let error): throw error.hexlistError
            case .other: break
            }
        }
        guard let summary else { throw HexlistError(.internal, "hexlistd sent no result.") }
        return summary
    }

    /// Requests a page of transfers, newest first.
    public func transfers(_ stages: [TransferStage] = [], limit: Int, after cursor: String? = nil) async throws -> Page<TransferView> {
        var query = URLQuery()
        for stage in stages { query.add("state", stage.rawValue) }
        query.add("limit", String(limit))
        query.add("after", cursor)
        return try await connection.call(.GET, "/v1/transfers", query: query)
    }

    public func transfer(_ id: Int64) async throws -> TransferView { try await connection.call(.GET, "/v1/transfers/\(id)") }

    public func cancelTransfer(_ id: Int64) async throws -> TransferView {
        try await connection.call(.POST, "/v1/transfers/\(id)/cancel")
    }

    public func retryTransfer(_ id: Int64, force: Bool) async throws -> TransferView {
        var query = URLQuery()
        if force { query.add("force", "true") }
        return try await connection.call(.POST, "/v1/transfers/\(id)/retry", query: query)
    }

    /// Removes a finished transfer from the list.
    public func forgetTransfer(_ id: Int64) async throws -> ChangeCountJSON { try await connection.call(.DELETE, "/v1/transfers/\(id)") }

    /// Returns the requests of devices to send files that wait for the user's answer.
    public func uploadRequests() async throws -> Page<UploadRequestView> { try await connection.call(.GET, "/v1/upload-requests") }

    /// Accepts the files of a device.
    /// - Parameter trusting: whether to trust the device from now on.
    public func acceptUpload(_ id: Int64, trusting: Bool) async throws -> UploadRequestView {
        var query = URLQuery()
        if trusting { query.add("trust", "true") }
        return try await connection.call(.POST, "/v1/upload-requests/\(id)/accept", query: query)
    }

    public func refuseUpload(_ id: Int64) async throws -> UploadRequestView {
        try await connection.call(.POST, "/v1/upload-requests/\(id)/refuse")
    }

    /// Calls `body` with the summary of the given transfers immediately and after each change, until it returns `false`.
    public func watchTransfers(_ ids: ClosedRange<Int64>, _ body: (TransferSummary) async throws -> Bool) async throws {
        var query = URLQuery()
        query.add("first", String(ids.lowerBound))
        query.add("last", String(ids.upperBound))
        try await connection.stream("/v1/transfers/summary", query: query) { message in
            try await body(APIConnection.decode(Array(message.data.utf8)))
        }
    }
}

// The cache of fetched files.
extension HexlistClient {
    /// Requests a page of cached files, newest first.
    public func cachedFiles(limit: Int, after cursor: String? = nil) async throws -> Page<CachedFile> {
        var query = URLQuery()
        query.add("limit", String(limit))
        query.add("after", cursor)
        return try await connection.call(.GET, "/v1/cache", query: query)
    }

    public func cacheSummary() async throws -> CacheSummary { try await connection.call(.GET, "/v1/cache/summary") }

    /// Deletes cached files that no program has open.
    /// - Parameter seconds: minimum time since a file was last used; `nil` deletes files of any age.
    public func clearCache(olderThan seconds: Int64?) async throws -> CacheClearResult {
        var query = URLQuery()
        query.add("olderThanSeconds", seconds.map(String.init))
        return try await connection.call(.POST, "/v1/cache/clear", query: query)
    }

    /// Marks cached files as kept: they are not deleted before their hexes are.
    /// - Parameter files: names or paths of cached files.
    public func keepCached(_ files: [String]) async throws -> [CachedFile] {
        let kept: CacheKeepReply = try await connection.call(.POST, "/v1/cache/keep", body: CacheKeepRequest(files: files).jsonBytes)
        return kept.items
    }
}
