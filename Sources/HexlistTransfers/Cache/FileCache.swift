public import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistModel
import HexlistStore
import Logging
import NIOCore

/// The cache of fetched files, with the operations of the local API.
public struct FileCache: Sendable {
    let transfers: FileTransfers
    private var store: HexStore { transfers.store }
    private var pool: FilePool { transfers.pool }

    /// Returns a page of cached files, the newest first.
    /// - Parameter before: the cursor that the previous page returned.
    public func page(before: Int64?, limit: Int) async throws -> (rows: [(id: Int64, file: CachedFile)], next: Int64?) {
        let page = try await store.read { try $0.pooledPage(before: before, limit: limit) }
        return (page.items.map { ($0.id, view($0)) }, page.next)
    }

    public func summary() async throws -> CacheSummary {
        let folder = transfers.offers.copies.path
        let most = await transfers.configuration.cacheBytes
        let (sums, copies) = try await store.read { (try $0.poolSums(), try $0.offers(in: folder)) }
        return CacheSummary(
            files: sums.files, bytes: sums.bytes, most: most, coming: sums.comingBytes,
            kept: sums.keptFiles, keptBytes: sums.keptBytes, copies: copies.isEmpty ? nil : copies.count,
            copyBytes: copies.isEmpty ? nil : copies.reduce(0) { $0 + $1.size })
    }

    /// Deletes files of the cache that are not open.
    /// - Parameter seconds: only files that were unused for this time are deleted; `nil` to delete all.
    public func clear(olderThan seconds: Int64?) async throws -> CacheClearResult {
        let before = seconds.map { transfers.clocks.milliseconds &- $0 &* 1_000 } ?? .max
        let cleared = try await transfers.onFileThread { [pool] in try pool.clear(usedBefore: before) }
        transfers.node.notifyWatchers()
        return CacheClearResult(removed: cleared.removed, bytes: cleared.bytes, inUse: cleared.inUse)
    }

    /// Turns files of the cache into kept files, which stay until their hexes are deleted.
    /// - Parameter names: the names or paths of the files.
    /// - Throws: `HexlistError`: `notFound`, `ambiguous`, `gone`. None of the files is then changed.
    public func keep(_ names: [String]) async throws -> [CachedFile] {
        let files = try await cached(names)
        let hexes = try await store.read { try $0.locations(of: files.compactMap(\.hex)) }
        for file in files where file.place == .pool {
            guard let hex = file.hex, hexes[hex] != nil else {
                throw HexlistError(
                    .gone,
                    "The hex that \(TerminalText.clean(file.name, columns: 200)) was fetched for is deleted, so the file cannot be kept for it.",
                    hint: "Copy the file: \(TerminalText.clean(pool.path(of: file), columns: 1_000))")
            }
        }
        for file in files where file.place == .pool {
            if let hex = file.hex { try await store.keep([file.sha256], for: hex) }
        }
        pool.keepingChanged()
        try await transfers.onFileThread { [pool] in try pool.reconcile() }
        transfers.node.notifyWatchers()
        return try await store.read { reader in try reader.pooled(files.map(\.sha256)) }.map(view)
    }

    private func cached(_ names: [String]) async throws -> [PooledFile] {
        var found: [[PooledFile]] = names.map { _ in [] }
        var before: Int64?
        repeat {
            let page = try await store.read { [before] in try $0.pooledPage(before: before, limit: 1_000) }
            for file in page.items {
                let path = pool.path(of: file)
                for (index, name) in names.enumerated()
                where PeerTextComparison.areEqual(file.name, name) || PeerTextComparison.areEqual(path, name) {
                    found[index].append(file)
                }
            }
            before = page.next
        } while before != nil
        return try zip(names, found).map { name, files in
            let shown = TerminalText.clean(name, columns: 200)
            guard let file = files.first else {
                throw HexlistError(.notFound, "There is no file \(shown) in the cache.", hint: "`hexlist cache` lists the files.")
            }
            guard files.count == 1 else {
                throw HexlistError(
                    .ambiguous, "\(files.count) files in the cache have the name \(shown).",
                    hint: "Give the path of one; `hexlist cache --json` prints it.")
            }
            return file
        }
    }

    private func view(_ file: PooledFile) -> CachedFile {
        CachedFile(
            file: file.name, path: pool.path(of: file), size: file.size,
            sha256: String(decoding: Hexadecimal.encode(file.sha256).utf8.map(ASCII.lowercased), as: UTF8.self), kept: file.place == .kept,
            hex: file.hex, usedAt: Timestamp(milliseconds: file.usedAt))
    }

    // MARK: Maintenance

    /// Moves files between the folders of the cache and of kept files, as their rows say, and deletes kept files whose hexes were deleted.
    func reconcile() {
        let result = transfers.transport.fileThreads.run(on: transfers.eventLoop) { [pool] in try pool.reconcile() }
        report(result, "kept files could not be put in order")
    }

    /// Performs the hourly maintenance of the pool.
    func tidy(_ configuration: TransfersConfiguration) {
        let tidied = transfers.transport.fileThreads.run(on: transfers.eventLoop) { [pool] in
            try pool.tidy(unusedFor: configuration.cacheDays, most: configuration.cacheBytes)
        }
        report(tidied, "the cache could not be put in order")
    }

    private func report(_ work: EventLoopFuture<Void>, _ fault: Logger.Message) {
        work.whenComplete { [weak transfers] result in
            guard let transfers else { return }
            if case .failure(let error) = result, !(error is ChannelError) {
                transfers.logger.warning(fault, metadata: ["error": "\(error)"])
            }
            transfers.node.notifyWatchers()
        }
    }
}
