internal import Dispatch
public import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistJSON
public import HexlistModel
import HexlistStore
import HexlistWire
public import NIOCore
import Synchronization

/// The choice of the offered files that are copied. A copy does not change during the offer.
public enum OfferCopyPolicy: Sendable {
    case never, always
    /// All files are copied, if together they have at most `files.copyBelow` bytes, and the disk has enough space.
    case ifSmall
}

/// Those who may fetch offered files.
public enum OfferAudience: Sendable {
    case peers([PeerID])
    /// The user's other machines, and the members of a shared hex, as long as My Hexlist shows links to the files.
    /// - Parameter hex: the hex that gets the links; `nil` for a new hex at the top level.
    case mine(hex: Int64?)
}

/// The files of this machine that peers may fetch, because a hex that was sent to them, or a list that they exchange, links to the files.
public struct FileOffers: Sendable {
    let transfers: FileTransfers
    private var store: HexStore { transfers.store }

    /// Reads files, and offers them. A file that is already offered and has not changed is not read again, and has the same link.
    /// - Parameters:
    ///   - paths: absolute paths of files and folders.
    ///   - copying: the files to offer as copies.
    ///   - folders: protected folders. They cannot be offered, nor can files inside them, nor folders that contain them.
    ///   - progress: called on another thread while bytes are read.
    /// - Returns: the hex to send or to add to My Hexlist. It has links to the files, and inner hexes for the folders.
    /// - Throws: `HexlistError` `badRequest` if a file cannot be offered; `storageFull` if there is no space for a copy; for My Hexlist the
    ///   errors of `StoreReader.checkCanAddFiles`. No file is offered then.
    public func offer(
        _ paths: [String], for audience: OfferAudience, copying: OfferCopyPolicy = .never, protecting folders: [String],
        progress: @escaping @Sendable (OfferProgress) -> Void
    ) async throws -> OfferResult {
        let plan = try await offer(for: audience, copying: copying, progress) { try OfferPlan(paths, protecting: folders) }
        let json = try? JSONValue(parsing: HexEncoder.encode(plan.content(own: transfers.id)))
        return OfferResult(
            hex: json ?? .emptyObject, files: plan.rows.count, size: plan.rows.map(\.size).clampedSum, leftOut: plan.skipped.total,
            leftOutBy: plan.skipped.total > 0 ? SkippedEntries(plan.skipped) : nil, copied: plan.copied.count)
    }

    /// Offers the files to which the links of a hex lead, if this machine has them: fetched files that have not changed, files of the pool,
    /// and own files that are offered already. Files of the pool are copied, because they may be deleted.
    /// - Returns: the hex, with links to these offers. Links to files that this machine does not have stay unchanged, and are counted in
    ///   `leftOut`.
    /// - Throws: the errors of `offer`; `notFound` if the hex does not exist.
    public func reoffer(
        _ hex: Int64, to peers: [PeerID], copying: OfferCopyPolicy = .never, protecting folders: [String],
        progress: @escaping @Sendable (OfferProgress) -> Void
    ) async throws -> OfferResult {
        guard var content = try await store.read({ try $0.hex(hex) })?.content else { throw HexlistError.noHex(hex) }
        let search = LocalCopies(of: content, store: store, pool: transfers.pool, copies: copies, own: transfers.id, protecting: folders)
        guard !search.isEmpty else {
            throw HexlistError(.badRequest, "No link of hex \(hex) leads to a file of a peer.", hint: "Send it without `--reoffer`.")
        }
        let plan = try await offer(for: .peers(peers), copying: copying, progress) {
            guard let plan = try search.plan() else {
                throw HexlistError(
                    .badRequest, "This machine has none of the files of hex \(hex) unchanged.",
                    hint: "To fetch them: `hexlist fetch \(hex)`.")
            }
            return plan
        }
        let left = search.replaceLinks(of: &content, plan)
        let json = try? JSONValue(parsing: HexEncoder.encode(content))
        return OfferResult(
            hex: json ?? .emptyObject, files: plan.rows.count, size: plan.rows.map(\.size).clampedSum, leftOut: left,
            copied: plan.copied.count)
    }

    /// - Parameter makePlan: finds the files to offer. Called on another thread.
    private func offer(
        for audience: OfferAudience, copying: OfferCopyPolicy, _ progress: @escaping @Sendable (OfferProgress) -> Void,
        _ makePlan: @escaping @Sendable () throws -> OfferPlan
    ) async throws -> OfferPlan {
        // Checked before files are read, which may take long.
        switch audience {
        case .peers(let peers): try await transfers.checkRecipients(peers)
        case .mine(let hex?): try await store.read { try $0.checkCanAddFiles(to: hex) }
        case .mine(nil): break
        }
        let (minimumFree, smallBytes) = await transfers.copyLimits
        let below = copying == .ifSmall ? smallBytes : 0
        let cancellation = Cancellation()
        let (store, copies) = (store, copies)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                Self.queue.async {
                    continuation.resume(
                        with: Result {
                            var plan = try makePlan()
                            do {
                                try plan.read(
                                    known: { path, identity in
                                        try store.readSync { try $0.offer(ofPath: path, identity: identity) }
                                    }, ends: store.clock.now + OfferRow.waitingTime,
                                    copies: OfferPlan.Copies(
                                        folder: copies, minimumFree: minimumFree, below: below, isForAll: copying == .always)
                                ) { step in
                                    progress(step)
                                    return !cancellation.isCancelled.withLock { $0 }
                                }
                                switch audience {
                                case .peers(let peers): try store.offerSync(plan.rows, to: peers)
                                case .mine(let hex): try store.offerSync(plan.rows, toListOf: hex)
                                }
                            } catch {
                                for copy in plan.copied { copies.remove(copy) }
                                throw error
                            }
                            return plan
                        })
                }
            }
        } onCancel: {
            cancellation.isCancelled.withLock { $0 = true }
        }
    }

    /// Returns for each offered file the reason why it can no longer be sent; `nil` if it can be sent.
    /// - Parameter files: the path of each file, and its identity when it was offered.
    public func problems(of files: [(path: String, identity: String)]) async throws -> [OfferProblem?] {
        try await transfers.onFileThread {
            files.map { file in
                do throws(FileFault) {
                    _ = try OfferedFile(offered: file.path, file.identity)
                    return nil
                } catch {
                    return OfferProblem(error)
                }
            }
        }
    }

    /// The folder of the copies of offered files, beside the store.
    var copies: OfferCopies {
        OfferCopies(path: HexlistPaths.join(HexlistPaths.folder(of: store.path), "offers"))
    }

    /// Deletes the copies whose offers have ended, and the partial copies of earlier processes.
    public func tidyCopies() {
        let (store, copies, uploads) = (store, copies, transfers.uploads)
        // The queue is serial, so copies in progress are complete, and their offers are stored, before this runs.
        Self.queue.async {
            copies.removeAll {
                // The order of these two reads matters: an upload is stored as an offer before it is removed from `uploads`.
                let underWay = uploads.offers
                // If the store is closed, the copies are deleted after the next start.
                guard let known = try? store.readSync({ try $0.offers(in: copies.path) }) else { return nil }
                return underWay.union(known.compactMap { OfferID(bytes: $0.id) })
            }
        }
    }

    /// The serial queue on which files to be offered are read, for one request at a time.
    static let queue = DispatchQueue(label: "hexlist.offers")

    /// Stores an uploaded file as a copy, and offers it to peers. The copy is deleted when the offer ends: after an hour, unless a hex with
    /// the link is sent before.
    /// - Parameters:
    ///   - name: untrusted text, of which a safe file name is made.
    ///   - size: the length in bytes. The upload fails if the file has another length.
    /// - Returns: a hex with one link, which leads to the file.
    /// - Throws: `HexlistError` `tooLarge`, `storageFull`, `recentlyFailed`, `badRequest`; errors of `pieces`. The copy is then deleted.
    public func upload(
        _ name: String, size: Int64, to peers: [PeerID], _ pieces: some AsyncSequence<ByteBuffer, any Error> & Sendable
    ) async throws -> OfferResult {
        try await transfers.checkRecipients(peers)
        let minimumFree = await transfers.copyLimits.minimumFree
        let name = FileName(name).description
        let (store, copies, uploads, offer) = (store, copies, transfers.uploads, OfferID.random)
        try uploads.begin(offer, size: size, known: try await store.read { try $0.offers(in: copies.path).map { $0.size } })
        defer { uploads.end(offer) }
        do {
            let part = try await transfers.onFileThread { try copies.begin(offer, size: size, minimumFree: minimumFree) }
            do {
                for try await piece in pieces {
                    try await transfers.onFileThread { try piece.withUnsafeReadableBytes { try part.append($0) } }
                }
                let row = try await transfers.onFileThread {
                    let now = transfers.clocks.milliseconds
                    let (identity, digest) = try copies.finish(part, as: offer)
                    let row = OfferRow(
                        id: offer.bytes, path: copies.path(of: offer), identity: identity.description, name: name, size: size,
                        sha256: digest,
                        mediaType: MediaType.of(name), modified: now, ends: store.clock.now + Uploads.unsentTime)
                    do {
                        try store.offerSync([row], to: peers)
                    } catch {
                        copies.remove(offer)
                        throw error
                    }
                    return row
                }
                var hex = HexContent()
                hex.links = OfferPlan.link(to: row, transfers.id, &hex).map { [$0] } ?? []
                let json = try? JSONValue(parsing: HexEncoder.encode(hex))
                return OfferResult(hex: json ?? .emptyObject, files: 1, size: size, leftOut: 0, copied: 1)
            } catch {
                // If the file threads were stopped already, this thread deletes the partial copy.
                do { try await transfers.onFileThread { part.discard() } } catch { part.discard() }
                throw error
            }
        } catch let fault as FileFault {
            throw OfferPlan.refused(name, fault)
        }
    }
}

/// A flag by which a cancelled caller stops the reading of files on another thread.
private final class Cancellation: Sendable {
    let isCancelled = Mutex(false)
}

extension FileTransfers {
    /// - Throws: `HexlistError` if hexes cannot be sent to all of these peers.
    fileprivate func checkRecipients(_ peers: [PeerID]) throws { try node.checkRecipients(peers) }

    /// The number of bytes that must stay free on the disk, and the total size up to which files are copied by default.
    fileprivate var copyLimits: (minimumFree: Int64, smallBytes: Int64) { (configuration.minimumFree, configuration.copyBelow) }
}
