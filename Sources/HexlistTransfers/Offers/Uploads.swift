import HexlistFiles
import HexlistModel
import Synchronization

/// The files that are handed over now (`POST /v1/uploads`), and the bounds of all copies on offer.
final class Uploads: Sendable {
    /// Bytes of one file.
    static let largest: Int64 = 4 << 30
    /// Files at a time; a page hands over one after the other.
    static let atOnce = 2
    /// The copies on offer, those of `send --copy` with them, beside which one more is taken: bytes, with its own, and their number.
    static let bytesTogether: Int64 = 16 << 30
    static let filesTogether = 2_000
    /// Milliseconds for which a copy stays whose hex was not sent.
    static let unsentTime: Int64 = 3_600_000

    /// The sizes of the files whose copies are being made, by their offers.
    private let underWay = Mutex([OfferID: Int64]())

    /// The offers whose copies are being made.
    var offers: Set<OfferID> { underWay.withLock { Set($0.keys) } }

    /// Takes a place for a file, which `end` gives back.
    /// - Parameter known: the sizes of the copies that are on offer.
    /// - Throws: `tooLarge`, `storageFull`; `recentlyFailed` if there are too many uploads.
    func begin(_ offer: OfferID, size: Int64, known: [Int64]) throws(HexlistError) {
        guard size <= Self.largest else {
            throw HexlistError(
                .tooLarge, "A file of at most \(Self.largest >> 30) GiB can be handed over.",
                hint: "`hexlist send` offers any, where it lies.")
        }
        try underWay.withLock { underWay throws(HexlistError) in
            guard underWay.count < Self.atOnce else {
                throw HexlistError(
                    .recentlyFailed, "\(Self.atOnce) files are being handed over already.", hint: "Try again when they are here.")
            }
            let bytes = (known + underWay.values + [size]).clampedSum
            guard bytes <= Self.bytesTogether, known.count + underWay.count < Self.filesTogether else {
                throw HexlistError(
                    .storageFull,
                    "The copies of files that are on offer have \(Self.bytesTogether >> 30) GiB, or are \(Self.filesTogether).",
                    hint: "Those of a hex go when it is taken back in the outbox, and 30 days after it was delivered.")
            }
            underWay[offer] = size
        }
    }

    func end(_ offer: OfferID) { underWay.withLock { _ = $0.removeValue(forKey: offer) } }
}
