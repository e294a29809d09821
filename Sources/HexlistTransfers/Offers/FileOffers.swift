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

/// The files of this machine that peers may fetch because a hex has a link to each.
public struct FileOffers: Sendable {
    let transfers: FileTransfers
    private var store: HexStore { transfers.store }

    /// Reads files and offers them to peers. An unchanged file that is on offer already is not read again, and keeps its link.
    /// - Parameters:
    ///   - paths: absolute paths of files and folders.
    ///   - copying: whether copies are offered, which stay as they are until the offers end.
    ///   - folders: folders of which nothing is offered, nor what contains them.
    ///   - progress: called from another thread, as bytes are read.
    /// - Returns: the hex to be sent: its links are the files, the hexes inside it the folders.
    /// - Throws: `HexlistError` `badRequest` for a file that cannot be offered, `storageFull` if there is no room for a copy; then nothing is
    ///   offered.
    public func offer(
        _ paths: [String], to peers: [PeerID], copying: Bool = false, protecting folders: [String],
        progress: @escaping @Sendable (OfferProgress) -> Void
    ) async throws -> OfferResult {
        let plan = try await offer(to: peers, copying: copying, progress) { try OfferPlan(paths, protecting: folders) }
        let json = try? JSONValue(parsing: HexEncoder.encode(plan.content(own: transfers.id)))
        return OfferResult(
            hex: json ?? .emptyObject, files: plan.rows.count, size: plan.rows.map(\.size).clampedSum, leftOut: plan.skipped.total,
            leftOutBy: plan.skipped.total > 0 ? OfferLeftOut(plan.skipped) : nil)
    }

    /// Offers the local copies of files that the links of a hex lead to: unchanged fetched files, files of the cache and kept ones (as
    /// copies, since they may be deleted), and own files that are on offer.
    /// - Returns: the hex with links to these. Links to other files stay what they are, and are left out of the count.
    /// - Throws: as the other; `notFound` for a hex that is not there.
    public func reoffer(
        _ hex: Int64, to peers: [PeerID], copying: Bool = false, protecting folders: [String],
        progress: @escaping @Sendable (OfferProgress) -> Void
    ) async throws -> OfferResult {
        guard var content = try await store.read({ try $0.hex(hex) })?.content else { throw HexlistError.noHex(hex) }
        let search = OwnCopies(of: content, store: store, pool: transfers.pool, copies: copies, own: transfers.id, protecting: folders)
        guard !search.isEmpty else {
            throw HexlistError(.badRequest, "No link of hex \(hex) leads to a file of a peer.", hint: "Send it without `--reoffer`.")
        }
        let plan = try await offer(to: peers, copying: copying, progress) {
            guard let plan = try search.plan() else {
                throw HexlistError(
                    .badRequest, "None of the files that the links of hex \(hex) lead to is here as it was fetched.",
                    hint: "`hexlist fetch \(hex)` fetches them.")
            }
            return plan
        }
        let left = search.replaceLinks(of: &content, plan)
        let json = try? JSONValue(parsing: HexEncoder.encode(content))
        return OfferResult(
            hex: json ?? .emptyObject, files: plan.rows.count, size: plan.rows.map(\.size).clampedSum, leftOut: left)
    }

    /// - Parameter look: finds what there is to offer; called on another thread.
    private func offer(
        to peers: [PeerID], copying: Bool, _ progress: @escaping @Sendable (OfferProgress) -> Void,
        _ look: @escaping @Sendable () throws -> OfferPlan
    ) async throws -> OfferPlan {
        let minimumFree = try await transfers.minimumFree(sendingTo: peers)
        let cancellation = Cancellation()
        let (store, copies) = (store, copies)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                Self.queue.async {
                    continuation.resume(
                        with: Result {
                            var plan = try look()
                            do {
                                try plan.read(
                                    known: { path, identity in
                                        try store.readSync { try $0.offer(ofPath: path, identity: identity) }
                                    }, ends: store.clock.now + OfferRow.waitingTime,
                                    copies: OfferPlan.Copies(folder: copies, minimumFree: minimumFree, isForAll: copying)
                                ) { step in
                                    progress(step)
                                    return !cancellation.isCancelled.withLock { $0 }
                                }
                                try store.offerSync(plan.rows, to: peers)
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

    /// Why files on offer cannot be sent as they were offered; `nil` for each that can.
    /// - Parameter files: the path and the identity that each was offered with.
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

    /// The copies that were made of files to be offered; beside the store.
    var copies: OfferCopies {
        OfferCopies(path: HexlistPaths.join(HexlistPaths.folder(of: store.path), "offers"))
    }

    /// Deletes the copies whose offers ended, and partial ones of an earlier process.
    public func tidyCopies() {
        let (store, copies, uploads) = (store, copies, transfers.uploads)
        // After the copies in progress, so that they are on offer by then.
        Self.queue.async {
            copies.removeAll {
                // In this order: an upload is on offer before it is no longer under way.
                let underWay = uploads.offers
                // If the store is closed, the next start does it.
                guard let known = try? store.readSync({ try $0.offers(in: copies.path) }) else { return nil }
                return underWay.union(known.compactMap { OfferID(bytes: $0.id) })
            }
        }
    }

    /// The one thread on which files to be offered are read: one request after the other.
    static let queue = DispatchQueue(label: "hexlist.offers")

    /// Keeps a copy of a file that comes in pieces, and offers it to peers. The copy is deleted with the offer: after an hour unless a hex
    /// with the link was sent.
    /// - Parameters:
    ///   - name: of anybody; it becomes one that a file can have.
    ///   - size: bytes. A file of another length is refused.
    /// - Returns: a hex with the link to the file alone.
    /// - Throws: `HexlistError` `tooLarge`, `storageFull`, `recentlyFailed`, `badRequest`; errors of `pieces`. Then no copy is left.
    public func upload(
        _ name: String, size: Int64, to peers: [PeerID], _ pieces: some AsyncSequence<ByteBuffer, any Error> & Sendable
    ) async throws -> OfferResult {
        let minimumFree = try await transfers.minimumFree(sendingTo: peers)
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
                return OfferResult(hex: json ?? .emptyObject, files: 1, size: size, leftOut: 0)
            } catch {
                // If the threads have ended, this one does it.
                do { try await transfers.onFileThread { part.discard() } } catch { part.discard() }
                throw error
            }
        } catch let fault as FileFault {
            throw OfferPlan.refused(name, fault)
        }
    }
}

/// Ends the reading of files on another thread, because its caller has gone.
private final class Cancellation: Sendable {
    let isCancelled = Mutex(false)
}

extension FileTransfers {
    /// The bytes that stay free on the disk.
    /// - Throws: `HexlistError` unless a hex can be sent to all of these peers.
    fileprivate func minimumFree(sendingTo peers: [PeerID]) throws -> Int64 {
        try node.checkRecipients(peers)
        return configuration.minimumFree
    }
}
