public import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistModel
import HexlistStore

/// Starts transfers: of the files to which the links of a hex lead, or of a file or folder of a service.
extension FileTransfers {
    /// Starts to fetch files: the files of a hex, or a file or folder of a service. Of a hex, the request names some links or takes all,
    /// with a folder for each inner hex.
    /// - Throws: `HexlistError`: `notFound` if the hex, a link or the file does not exist; `badRequest` if nothing can be fetched, or the
    ///   destination is invalid; `recentlyFailed` if the same transfer failed repeatedly.
    public func fetch(_ request: TransferRequest) async throws -> TransferStartResult {
        let destination = try FetchDestination(request)
        let mask = request.umask ?? 0o022
        guard (0...0o777).contains(mask) else { throw HexlistError(.badRequest, "`umask` is a number from 0 to 511 (octal 777).") }
        if let hex = request.hex, request.service == nil, request.path == nil { return try await fetch(request, hex, destination, mask) }
        guard let service = request.service, request.hex == nil, request.links == nil else {
            throw HexlistError(.badRequest, "Either `hex`, perhaps with `links`, or `service` and `path`.")
        }
        return try await fetch(request, service, request.path ?? "", destination, mask)
    }

    private func fetch(
        _ request: TransferRequest, _ service: String, _ typed: String, _ destination: FetchDestination, _ mask: Int
    ) async throws -> TransferStartResult {
        guard case .folder(let base) = destination else {
            throw HexlistError(.badRequest, "Files of a service can only be fetched into a folder.", hint: "Name a folder with `--to`.")
        }
        guard let path = SharePath(typed: typed) else {
            throw HexlistError(.badRequest, "\(TerminalText.clean(typed, columns: 200)) is not a path in a service.")
        }
        let found = try await services.named(service)
        if let peer = found as? PeerShares, let seconds = request.timeout {
            guard seconds >= 0, seconds <= LocalAPI.longestWaitSeconds else {
                throw HexlistError(.badRequest, "`timeout` is a number of seconds up to \(Int(LocalAPI.longestWaitSeconds)).")
            }
            // If no session is open after this wait, `FetchTree.read` below throws the reason.
            _ = await fetching.lists.awaitPeer(peer.peer, within: .seconds(seconds), self)
            try Task.checkCancellation()
        }
        let read = try await FetchTree.read(request.force == true ? found.forced : found, path)
        let (tree, present) = try await onFileThread {
            var tree = read
            try FolderCreator.make(Array(tree.folders.dropFirst()), in: base, mask: mask)
            let present = tree.dropPresent(in: base)
            return (tree, present)
        }
        let now = clocks.milliseconds
        let folders = tree.folders.map { ([base == "/" ? "" : base] + $0).joined(separator: "/") }
        var start = try await begin(tree.files.count, force: request.force ?? false) { [tree, id] index in
            let file = tree.files[index]
            // A file of a remote has no peer as its source. Its row has the UUID of this machine instead.
            let (url, peer) =
                switch try tree.source(of: file) {
                case .peer(let link): (link.description, link.peer)
                case .remote(let link): (link.description, id)
                }
            return TransferRow(
                hex: nil, url: url, peer: peer, folder: folders[file.folder].isEmpty ? "/" : folders[file.folder],
                mask: mask, name: file.name, part: BootNonce.random.description, size: file.size, sha256: nil, modified: file.modified,
                createdAt: now)
        }
        (start.present, start.leftOut) = (present, tree.leftOut)
        return start
    }

    private func fetch(_ request: TransferRequest, _ id: Int64, _ destination: FetchDestination, _ mask: Int) async throws
        -> TransferStartResult
    {
        guard let hex = try await store.read({ try $0.hex(id) }) else { throw HexlistError.noHex(id) }
        let content = hex.content
        var plan = FetchPlan(own: self.id)
        if let numbers = request.links {
            for number in numbers {
                guard content.links.indices.contains(number &- 1) else {
                    throw HexlistError(.notFound, "Hex \(id) has no link \(number).", hint: "`hexlist show \(id)` lists them.")
                }
                plan.add(content.links[number - 1], of: content, in: nil)
            }
        } else {
            plan.addAll(of: content)
            if request.folder ?? false { plan.addFolder(of: content) }
        }
        guard !plan.files.isEmpty else {
            throw HexlistError(
                .badRequest,
                plan.isOwn ? "The links of hex \(id) lead to files of this machine." : "No link of hex \(id) leads to a file of a peer.",
                hint: "`hexlist open` opens links to the web.")
        }
        let now = clocks.milliseconds
        var rows = plan.files.map { file in
            TransferRow(
                hex: id, url: file.link.description, peer: file.link.peer, folder: "", mask: mask, name: file.name,
                part: String(BootNonce.random.description), size: file.size, sha256: file.sha256, modified: file.modified, createdAt: now)
        }
        switch destination {
        case .folder(let folder):
            let folders = plan.folders
            // The limit is checked before folders are created on the disk.
            guard plan.files.count <= TransferRow.limit, folders.count <= TransferRow.limit else {
                throw HexlistError(
                    .tooLarge, "Hex \(id) has more than \(TransferRow.limit) files or folders; that is the maximum for one fetch.",
                    hint: "Give the numbers of some of its links.")
            }
            for (index, file) in plan.files.enumerated() {
                rows[index].folder = ([folder == "/" ? "" : folder] + plan.path(of: file.folder)).joined(separator: "/")
            }
            let wanted = rows
            rows = try await onFileThread {
                try FolderCreator.make(folders, in: folder, mask: mask)
                return wanted.filter { !$0.isThere }
            }
        case .place(let place): rows = try placed(rows, in: place, request)
        }
        var start = try await begin(rows, destination, hex: id, force: request.force ?? false, at: now)
        start.present = plan.files.count - rows.count
        start.passedOver = plan.passedOver
        return start
    }

    /// Adds the transfers that are not in the queue yet, and retries the others.
    private func begin(
        _ all: [TransferRow], _ destination: FetchDestination, hex: Int64, force: Bool, at now: Int64
    ) async throws -> TransferStartResult {
        // Several links to the same file need only one transfer.
        var seen: Set<TransferKey> = []
        var rows = all.filter { seen.insert(TransferKey($0)).inserted }
        try checkPauses(of: seen, force: force)
        let pooled = try await completePooled(&rows, destination, hex: hex, at: now)
        var new: [TransferRow] = []
        var known: [Int64] = []
        for row in rows {
            if row.state == .waiting, let running = retryKnown(TransferKey(row), force: force) {
                known.append(running)
            } else {
                new.append(row)
            }
        }
        let added = new.isEmpty ? [] : try await addTransfers(new)
        fetching.add(added.filter { $0.state == .waiting }, pooled: pooled, force: force, self)
        node.notifyWatchers()
        return TransferStartResult(
            first: added.first?.id ?? known.min(), last: added.last?.id ?? known.max(), known: known.count, passedOver: 0)
    }

    /// Maximum number of rows in memory at once while transfers are added.
    private static let rowsAtOnce = 500

    /// Adds those of `count` transfers that are not in the queue yet. A row may take kilobytes, so a row is created only when it is needed.
    /// - Parameter make: creates the row with this index. Called several times for each row, on several threads.
    private func begin(
        _ count: Int, force: Bool, _ make: @escaping @Sendable (Int) throws -> TransferRow
    ) async throws -> TransferStartResult {
        let keys = try await onFileThread { try (0..<count).map { TransferKey(try make($0)) } }
        var seen: Set<TransferKey> = []
        let wanted = keys.indices.filter { seen.insert(keys[$0]).inserted }
        try checkPauses(of: seen, force: force)
        let retried = wanted.map { retryKnown(keys[$0], force: force) }
        let (new, known) = (zip(wanted, retried).filter { $0.1 == nil }.map(\.0), retried.compactMap(\.self))
        guard !new.isEmpty else {
            return TransferStartResult(first: known.min(), last: known.max(), known: known.count, passedOver: 0)
        }
        let ids = try await store.addTransfers(new.count) { try make(new[$0]).checkingLink() }
        for start in stride(from: 0, to: new.count, by: Self.rowsAtOnce) {
            let rows = try await store.read { [id = ids.lowerBound] in
                try $0.transfers((start..<min(start + Self.rowsAtOnce, new.count)).map { id + Int64($0) })
            }
            fetching.add(rows.filter { $0.state == .waiting }, force: force, self)
        }
        node.notifyWatchers()
        return TransferStartResult(first: ids.lowerBound, last: ids.upperBound, known: known.count, passedOver: 0)
    }

    /// Checks that none of these transfers is suspended after repeated failures, unless `force` is set.
    /// - Throws: `HexlistError` `recentlyFailed`.
    private func checkPauses(of keys: Set<TransferKey>, force: Bool) throws {
        guard !force, let until = keys.compactMap({ fetching.pause(of: $0, now: clocks.now) }).max() else { return }
        let seconds = max(1, (until - clocks.now).components.seconds)
        throw HexlistError(
            .recentlyFailed, "This failed several times; it can be started again in \(seconds) s.", hint: "To start it now: --force.")
    }

    /// Retries the transfer with this key, if it is in the queue.
    /// - Returns: the id of the transfer; `nil` if the queue has none with this key.
    private func retryKnown(_ key: TransferKey, force: Bool) -> Int64? {
        guard let running = fetching.known(key) else { return nil }
        _ = fetching.retry(running, force: force, self)
        return running.value
    }

    /// Changes the destination of transfers to a folder of the pool, where files are stored under their SHA-256.
    /// - Throws: `HexlistError` `badRequest` if a link has no digest or no size.
    private func placed(_ rows: [TransferRow], in place: PoolLocation, _ request: TransferRequest) throws -> [TransferRow] {
        try rows.map { row in
            guard let digest = row.sha256, row.size != nil else {
                let numbers = [row.hex.map { "\($0)" } ?? ""] + (request.links ?? []).map { "\($0)" }
                throw HexlistError(
                    .badRequest, "The link to \(row.name) has no size or no SHA-256, so the file cannot be cached.",
                    hint: "`hexlist fetch \(numbers.joined(separator: " "))` fetches it into the current folder.")
            }
            var placed = row
            (placed.place, placed.folder, placed.mask) = (place, pool.folder(place).folder(of: digest), 0o177)
            return placed
        }
    }

    /// Marks those transfers into the pool as done whose files the pool already has.
    /// - Parameter rows: the transfers.
    /// - Returns: the files that are in the pool.
    private func completePooled(
        _ rows: inout [TransferRow], _ destination: FetchDestination, hex: Int64, at now: Int64
    ) async throws -> Set<PooledOrigin> {
        let digests = Array(Set(rows.compactMap(\.sha256)))
        if destination == .place(.kept) {
            try await store.keep(digests, for: hex)
            pool.keepingChanged()
            try await onFileThread { [pool] in try pool.reconcile() }
        }
        let wanted = Dictionary(grouping: rows.filter { $0.sha256 != nil }, by: \.peer).mapValues { Array(Set($0.compactMap(\.sha256))) }
        let pooled = try await onFileThread { [pool] in
            var pooled: [PooledOrigin: PooledFile] = [:]
            for (peer, digests) in wanted {
                for file in try pool.use(digests, from: peer, for: destination.isFolder ? nil : hex, at: now) {
                    pooled[PooledOrigin(sha256: file.sha256, peer: peer)] = file
                }
            }
            return pooled
        }
        for (index, row) in rows.enumerated() where row.place != nil {
            guard let digest = row.sha256, let file = pooled[PooledOrigin(sha256: digest, peer: row.peer)] else { continue }
            rows[index].folder = pool.folder(file.place).folder(of: digest)
            rows[index].place = file.place
            (rows[index].state, rows[index].finalName, rows[index].endedAt) = (.done, file.name, now)
            (rows[index].bytes, rows[index].size) = (file.size, file.size)
        }
        return Set(pooled.keys)
    }

    /// Adds transfers to the store. If the pool has too little space for them, files of the cache are deleted first.
    /// - Throws: `HexlistError` `tooLarge` if they are larger than the pool may become; `storageFull` if too many files of the cache are
    ///   open or being fetched.
    func addTransfers(_ rows: [TransferRow]) async throws -> [TransferRow] {
        let most = configuration.cacheBytes
        let waiting = rows.filter { $0.place == .pool && $0.state == .waiting }
        let bytes = waiting.map { $0.size ?? 0 }.clampedSum
        guard bytes <= most, waiting.count <= PooledFile.limit else {
            let isMany = bytes <= most
            throw HexlistError(
                .tooLarge,
                isMany
                    ? "The cache holds \(PooledFile.limit) files; these are \(waiting.count)."
                    : "The cache holds \(ByteCountText.of(most)); this has \(ByteCountText.of(bytes)).",
                hint: "Fetch into a folder with `--to`, or with `--keep`\(isMany ? "" : "; `files.cacheBytes` sets the size of the cache")."
            )
        }
        // Between `makeRoom` and the next attempt, other transfers may use the space.
        for _ in 0..<3 {
            do {
                return try await store.addTransfers(rows, poolBytes: most)
            } catch let full as PoolFull {
                guard try await onFileThread({ [pool] in try pool.makeRoom(full) }) else { break }
            }
        }
        throw HexlistError(
            .storageFull, "The cache is full: its files are open or being fetched.",
            hint: "Fetch into a folder with `--to`, or with `--keep`. `hexlist transfers` lists the transfers.")
    }
}

extension TransferRow {
    /// Whether the folder has a file with the same name, size and modification time. Blocks.
    var isThere: Bool { FileMatch.exists(HexlistPaths.join(folder, name), size: size, modified: modified) }
}

extension TransferRow {
    /// Returns the row, marked as failed with the reason if its link cannot be fetched.
    fileprivate func checkingLink() -> TransferRow {
        guard RemoteLink(url) == nil, FileLink(url) == nil else { return self }
        var row = self
        (row.state, row.reason, row.error, row.endedAt) = (.failed, Self.badLink, Self.linkFault(url), createdAt)
        return row
    }

    /// Returns the reason why a link cannot be fetched, as a message for users.
    static func linkFault(_ url: String) -> String {
        url.utf8.count > FileLink.maximumBytes
            ? "Its path is too long: the link to it has \(url.utf8.count) bytes, and at most \(FileLink.maximumBytes) can be fetched."
            : "Its link does not lead to a file of a peer."
    }
}
