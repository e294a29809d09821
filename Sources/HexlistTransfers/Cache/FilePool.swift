import HexlistAPI
import HexlistFiles
import HexlistModel
import HexlistStore
import Synchronization

/// The fetched files that this machine stores under their digest. Files of the cache (`PoolLocation.pool`) are deleted by age, and when
/// space is needed; kept files are deleted with their hexes. Calls block, so they run on the file threads.
///
/// The row in the store is changed before the file is moved. If the process ends in between, the next `tidy` moves the file, and deletes
/// files that have no row.
final class FilePool: Sendable {
    private let store: HexStore
    private let cache: DigestFolder
    private let kept: DigestFolder
    /// Whether kept files may exist. If not, deleting hexes needs no cleanup.
    private let mayHaveKeptFiles = Mutex(true)
    /// Held while files are changed, so that only one change runs at a time.
    private let changeLock = Mutex(())

    /// - Parameter cacheFolder: the folder of the cache; `nil` for a folder beside the store.
    init(_ store: HexStore, cacheFolder: String?) {
        self.store = store
        let beside = HexlistPaths.folder(of: store.path)
        cache = DigestFolder(path: cacheFolder ?? HexlistPaths.join(beside, "cache"))
        kept = DigestFolder(path: HexlistPaths.join(beside, "files"))
        arrivals = ArrivalFolder(path: HexlistPaths.join(beside, "arrivals"))
        guestArrivals = ArrivalFolder(path: HexlistPaths.join(beside, "guests"))
    }

    var hasKeptFiles: Bool { mayHaveKeptFiles.withLock { $0 } }

    func folder(_ place: PoolLocation) -> DigestFolder { place == .pool ? cache : kept }

    func path(of file: PooledFile) -> String { folder(file.place).path(of: file.sha256, name: file.name) }

    // MARK: Reading files

    /// Returns the identity of the file that a transfer stored in the pool, in its text form.
    /// - Parameter name: the name of the file.
    func identity(of row: TransferRow, name: String) -> String? {
        guard let place = row.place, let digest = row.sha256 else { return nil }
        return folder(place).open(digest, name: name)?.identity.description
    }

    /// Opens the file with this digest; `nil` if it is missing or has changed.
    /// - Parameter peer: only a file that this peer has sent is opened; `nil` to open a file of any peer.
    func open(_ digest: [UInt8], from peer: PeerID? = nil) -> (OfferedFile, PooledFile)? {
        guard let row = try? store.readSync({ try $0.pooled([digest], from: peer) }).first, let file = content(of: row) else { return nil }
        return (file, row)
    }

    /// Opens the file of a row; `nil` if it is missing or has changed.
    private func content(of row: PooledFile) -> OfferedFile? {
        guard let file = folder(row.place).open(row.sha256, name: row.name),
            FileIdentity(row.identity)?.hasSameContent(as: file.identity) ?? false
        else { return nil }
        return file
    }

    /// Returns those files with these digests that a peer has sent, and records that they are used now. Files that have changed are
    /// deleted.
    func use(_ digests: [[UInt8]], from peer: PeerID, for hex: Int64?, at now: Int64) throws -> [PooledFile] {
        var files: [PooledFile] = []
        for row in try store.readSync({ try $0.pooled(digests, from: peer) }) {
            if content(of: row) != nil { files.append(row) } else { drop(row) }
        }
        if !files.isEmpty { try store.usePooled(files.map(\.id), for: hex, at: now) }
        return files
    }

    /// Deletes a file of the pool, and its row.
    func drop(_ file: PooledFile) {
        folder(file.place).remove(file.sha256)
        try? store.dropPooled([file.id])
    }

    // MARK: Arrivals

    /// The folder of files that LocalSend devices send, until their hex is stored.
    let arrivals: ArrivalFolder
    /// The folder of files that guests and drop tokens upload, until their hex is stored.
    let guestArrivals: ArrivalFolder

    /// Turns arrived files into kept files, and stores their hex.
    /// - Parameters:
    ///   - folder: the folder in which the files have arrived. Their sessions are deleted from it.
    ///   - storing: stores the hex with these files. Returns the id of the hex; `nil` if the hex was refused.
    /// - Returns: the id of the hex; `nil` if it was refused, in which case the files are deleted.
    /// - Throws: an error if a file cannot be moved or the store fails. A later call with the same files may succeed.
    func adopt(_ arrived: [ArrivedFile], from folder: ArrivalFolder, storing: ([ArrivalInPool]) throws -> Int64?) throws -> Int64? {
        let hex = try changeLock.withLock { _ in
            var files: [[UInt8]: ArrivalInPool] = [:]
            for file in arrived where files[file.sha256] == nil { files[file.sha256] = try adopt(file, from: folder) }
            if !files.isEmpty { keepingChanged() }
            return try storing(Array(files.values))
        }
        for session in Set(arrived.map(\.session)) { folder.remove(session) }
        if hex == nil { try reconcile() }
        return hex
    }

    /// Whether an arrived file exists, in its folder or in the pool. It may be missing after a backup was restored.
    func hasFile(_ file: ArrivedFile, in folder: ArrivalFolder) -> Bool {
        folder.contains(file.file, of: file.session) || kept.open(file.sha256, name: Self.name(of: file)) != nil || open(file.sha256) != nil
    }

    private static func name(of file: ArrivedFile) -> String {
        FileName(bytes: file.name.utf8.split(separator: UInt8(ascii: "/")).last.map(Array.init) ?? []).description
    }

    /// Moves an arrived file to the kept files, unless the pool already has the file, or an earlier attempt has moved it.
    private func adopt(_ file: ArrivedFile, from folder: ArrivalFolder) throws -> ArrivalInPool {
        if let known = try store.readSync({ try $0.pooled([file.sha256]) }).first, content(of: known) != nil {
            return ArrivalInPool(sha256: file.sha256, name: known.name, size: known.size, identity: nil)
        }
        let name = Self.name(of: file)
        if kept.open(file.sha256, name: name) == nil {
            try kept.add(file.sha256, name: name, moving: folder.path(of: file.session, name: file.file))
        }
        guard let moved = kept.open(file.sha256, name: name), moved.size == file.size else { throw FileFault.notFound }
        return ArrivalInPool(sha256: file.sha256, name: name, size: file.size, identity: moved.identity.description)
    }

    /// Records that kept files may exist, so that deleting hexes needs a cleanup.
    func keepingChanged() { mayHaveKeptFiles.withLock { $0 = true } }

    // MARK: Freeing space

    /// Number of files that are read from the store and examined at once.
    private static let chunk = 256

    /// Deletes files of the cache, the least recently used first, until there is enough space. Open files are skipped.
    /// - Parameter wanted: the bytes and the number of files to free.
    /// - Returns: whether enough was freed.
    func makeRoom(_ wanted: PoolFull) throws -> Bool {
        try changeLock.withLock { _ in
            var rest = wanted
            try removeUnused { file in
                rest.bytes -= file.size
                rest.files -= 1
                return rest.bytes > 0 || rest.files > 0
            }
            return rest.bytes <= 0 && rest.files <= 0
        }
    }

    /// Deletes files of the cache that are not open.
    /// - Parameters:
    ///   - days: only files that were unused for this number of days are deleted, counted by the store's `StoreOpenTimeClock`; `nil` for any time.
    ///   - before: only files that were last used before this time are deleted, in milliseconds since 1970.
    func clear(unusedFor days: Int? = nil, usedBefore before: Int64 = .max) throws -> (removed: Int, bytes: Int64, inUse: Int) {
        try changeLock.withLock { _ in
            var (removed, bytes) = (0, Int64(0))
            let inUse = try removeUnused(for: days, usedBefore: before) { file in
                removed += 1
                bytes += file.size
                return true
            }
            return (removed, bytes, inUse)
        }
    }

    /// Deletes unused files of the cache, the least recently used first.
    /// - Parameter removed: called after each deleted file; returns `false` to stop.
    /// - Returns: the number of files that were not deleted because they are open.
    @discardableResult
    private func removeUnused(for days: Int? = nil, usedBefore before: Int64 = .max, _ removed: (PooledFile) -> Bool) throws -> Int {
        var inUse: Set<Int64> = []
        var goesOn = true
        while goesOn {
            let files = try store.readSync { [inUse] in
                try $0.leastUsedPooled(unusedFor: days, usedBefore: before, limit: Self.chunk + inUse.count)
            }
            .filter { !inUse.contains($0.id) }
            guard !files.isEmpty else { break }
            var gone: [Int64] = []
            for file in files where goesOn {
                guard cache.removeUnused(file.sha256, name: file.name) else {
                    inUse.insert(file.id)
                    continue
                }
                gone.append(file.id)
                goesOn = removed(file)
            }
            try store.dropPooled(gone)
        }
        return inUse.count
    }

    // MARK: Maintenance

    /// Makes rows and folders of the pool agree with the hexes: files of hexes that keep them become kept files, and kept files of deleted
    /// hexes are deleted.
    func reconcile() throws {
        try changeLock.withLock { _ in
            for file in try store.readSync({ try $0.misplacedPooled() }) {
                switch file.place {
                case .pool:
                    try store.placePooled(file.id, .kept, identity: file.identity)
                    var moved = file
                    moved.place = .kept
                    try putInPlace(moved)
                case .kept: drop(file)
                }
            }
            var keeps = try store.readSync { try $0.keepsFiles() }
            if keeps {
                try store.dropKept()
                keeps = try store.readSync { try $0.keepsFiles() }
            }
            mayHaveKeptFiles.withLock { $0 = keeps }
        }
    }

    /// Moves a file to the folder that its row names, unless it is there already.
    private func putInPlace(_ file: PooledFile) throws {
        guard folder(file.place).open(file.sha256, name: file.name) == nil else { return }
        let other: PoolLocation = file.place == .pool ? .kept : .pool
        try folder(other).move(file.sha256, name: file.name, to: folder(file.place))
        guard let identity = folder(file.place).open(file.sha256, name: file.name)?.identity else { return }
        try store.placePooled(file.id, file.place, identity: identity.description)
    }

    /// Performs the maintenance of the pool, at the start and hourly: completes interrupted moves, deletes files by age and size, and
    /// deletes files without a row.
    /// - Parameters:
    ///   - days: files of the cache are deleted if they were unused for more days than this.
    ///   - bytes: maximum size of the cache.
    func tidy(unusedFor days: Int, most bytes: Int64) throws {
        try reconcile()
        try changeLock.withLock { _ in
            var before: Int64?
            repeat {
                let page = try store.readSync { [before] in try $0.pooledPage(before: before, limit: 1_000) }
                for file in page.items where content(of: file) == nil {
                    do {
                        try putInPlace(file)
                    } catch let error as HexlistError {
                        throw error  // the store failed, so it is unknown whether the file is needed
                    } catch {
                        drop(file)
                        continue
                    }
                    let row = try store.readSync { try $0.pooled([file.sha256]) }.first
                    if row.flatMap(content(of:)) == nil { drop(file) }
                }
                before = page.next
            } while before != nil
            for place in PoolLocation.allCases {
                let there = folder(place).digests()  // listed before the rows are read: a file that is added in between then has a row
                let known = try store.readSync { try $0.digests(in: place) }
                for digest in there where !known.contains(digest) { folder(place).remove(digest) }
            }
        }
        _ = try clear(unusedFor: days)
        let sums = try store.readSync { try $0.poolSums() }
        let excess = sums.bytes + sums.comingBytes - bytes
        if excess > 0 { _ = try makeRoom(PoolFull(bytes: excess, files: 0)) }
    }
}
