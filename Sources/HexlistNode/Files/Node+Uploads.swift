public import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistJSON
public import HexlistModel
import HexlistStore
import HexlistWire
public import NIOCore

/// Files that are handed over in pieces, by who cannot say where they are: a page in a browser.
extension Node {
    /// Keeps a copy of a file that comes in pieces, and offers it to peers. The copy goes with the offer: after an hour where no hex with the link
    /// was sent.
    /// - Parameters:
    ///   - name: of anybody; it becomes one that a file can have.
    ///   - size: bytes. A file of another length is refused.
    /// - Returns: a hex with the link to the file alone.
    /// - Throws: `HexlistError` `tooLarge`, `storageFull`, `recentlyFailed`, `badRequest`; what the pieces throw. Then nothing is left of it.
    public func upload(
        _ name: String, size: Int64, to peers: [PeerID], _ pieces: some AsyncSequence<ByteBuffer, any Error> & Sendable
    ) async throws -> OfferResult {
        _ = try recipients(peers)
        let name = FileName(name).description
        let (store, copies, uploads, offer) = (store, offerCopies, uploads, OfferID.random)
        let minimumFree = Int64(configuration.limits.diskReserveBytes)
        try uploads.begin(offer, size: size, known: try await store.read { try $0.offers(in: copies.path).map { $0.size } })
        defer { uploads.end(offer) }
        do {
            let part = try await onFileThread { try copies.begin(offer, size: size, minimumFree: minimumFree) }
            do {
                for try await piece in pieces {
                    try await onFileThread { try piece.withUnsafeReadableBytes { try part.append($0) } }
                }
                let row = try await onFileThread {
                    let now = self.clocks.milliseconds
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
                hex.links = OfferPlan.link(to: row, id, &hex).map { [$0] } ?? []
                let json = try? JSONValue(parsing: HexEncoder.encode(hex))
                return OfferResult(hex: json ?? .emptyObject, files: 1, size: size, leftOut: 0)
            } catch {
                // Where the threads have ended, this one does it.
                do { try await onFileThread { part.discard() } } catch { part.discard() }
                throw error
            }
        } catch let fault as FileFault {
            throw OfferPlan.refused(name, fault)
        }
    }
}
