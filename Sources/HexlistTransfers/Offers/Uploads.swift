import HexlistFiles
import HexlistModel
import Synchronization

/// The uploads in progress (`POST /v1/uploads`), and the limits for all copies of offered files.
final class Uploads: Sendable {
    /// Maximum bytes of an uploaded file.
    static let largest: Int64 = 4 << 30
    /// Maximum number of uploads at the same time. A page uploads its files one after the other.
    static let atOnce = 2
    /// Maximum bytes of all copies, including those of `send --copy` and the upload that begins.
    static let bytesTogether: Int64 = 16 << 30
    /// Maximum number of all copies.
    static let filesTogether = 2_000
    /// Milliseconds after which a copy is deleted, if no hex with a link to it was sent.
    static let unsentTime: Int64 = 3_600_000

    /// The sizes of the files that are being uploaded.
    private let inProgress = Mutex([OfferID: Int64]())

    /// The offers of the uploads in progress.
    var offers: Set<OfferID> { inProgress.withLock { Set($0.keys) } }

    /// Reserves space for an upload, until `end` is called.
    /// - Parameter known: the sizes of the existing copies, in bytes.
    /// - Throws: `tooLarge`, `storageFull`; `recentlyFailed` if too many uploads are in progress.
    func begin(_ offer: OfferID, size: Int64, known: [Int64]) throws(HexlistError) {
        guard size <= Self.largest else {
            throw HexlistError(
                .tooLarge, "An uploaded file has at most \(Self.largest >> 30) GiB.",
                hint: "`hexlist send` can offer files of any size.")
        }
        try inProgress.withLock { inProgress throws(HexlistError) in
            guard inProgress.count < Self.atOnce else {
                throw HexlistError(
                    .recentlyFailed, "\(Self.atOnce) files are already being uploaded.", hint: "Try again when they are complete.")
            }
            let bytes = (known + inProgress.values + [size]).clampedSum
            guard bytes <= Self.bytesTogether, known.count + inProgress.count < Self.filesTogether else {
                throw HexlistError(
                    .storageFull,
                    "The copies of sent files have reached the limit of \(Self.bytesTogether >> 30) GiB or \(Self.filesTogether) files.",
                    hint: "Cancel some in the outbox. They are deleted 30 days after the delivery in any case.")
            }
            inProgress[offer] = size
        }
    }

    func end(_ offer: OfferID) { inProgress.withLock { _ = $0.removeValue(forKey: offer) } }
}
