#if canImport(Glibc)
    internal import Glibc
#endif

/// Copies of files that are on offer, made where the file itself need not stay as it is: `FOLDER/<32 digits of the offer>`, for this user only.
/// Calls block.
public struct OfferCopies: Sendable {
    /// Absolute; made with the first copy.
    public let path: String

    public init(path: String) { self.path = path }

    public func path(of offer: OfferID) -> String { "\(path)/\(offer)" }

    /// Copies a file, with the same blocks where the file system can, and makes it durable.
    /// - Parameters:
    ///   - minimumFree: bytes that are to stay free on the disk.
    ///   - progress: called with the bytes copied so far; `false` ends it.
    /// - Returns: the copy as it is, and its SHA-256.
    /// - Throws: `changed` if the file changes meanwhile, `diskFull`, `notAllowed`, `cancelled`; `system`. Then nothing is left of it.
    public func add(
        _ source: OfferedFile, as offer: OfferID, minimumFree: Int64, progress: (_ bytes: Int64) -> Bool
    ) throws -> (identity: FileIdentity, digest: [UInt8]) {
        let part = try begin(offer, size: source.size, modified: source.identity.modified, minimumFree: minimumFree)
        do {
            try part.fill(from: source, progress: progress)
            return try finish(part, as: offer)
        } catch {
            part.discard()
            throw error
        }
    }

    /// Begins a copy that is written in pieces.
    /// - Parameter modified: nanoseconds since 1970; `nil` for now.
    /// - Throws: `diskFull`, `notAllowed`; `system`.
    public func begin(_ offer: OfferID, size: Int64, modified: Int64? = nil, minimumFree: Int64) throws(FileFault) -> PartFile {
        if mkdir(path, 0o700) != 0, errno != EEXIST { throw FileFault.last }
        let goal = PartFile.Goal(
            name: FileName(offer.description), id: Self.partID, size: size, digest: nil, modified: modified, umask: 0o177,
            minimumFree: minimumFree)
        return try PartFile(folder: path, goal: goal)
    }

    /// Makes a whole copy durable and gives it its name.
    /// - Returns: the copy as it is, and its SHA-256.
    /// - Throws: as `PartFile.finish`.
    public func finish(_ part: PartFile, as offer: OfferID) throws -> (identity: FileIdentity, digest: [UInt8]) {
        let digest = part.digest
        _ = try part.finish()
        return (try OfferedFile(path: path(of: offer)).identity, digest)
    }

    /// The id in the name of a copy that is being made (`PartFile.Goal.id`), behind the digits of its offer.
    private static let partID = "copy"

    public func remove(_ offer: OfferID) { _ = unlink(path(of: offer)) }

    /// Deletes all copies but those of some offers, and what a kill left of one that was being made.
    /// - Parameter offers: called once it is known which copies there are; `nil` where nothing is to be deleted. A copy that is begun later
    ///   is not looked at.
    public func removeAll(but offers: () -> Set<OfferID>?) {
        guard let folder = try? Descriptor.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW) else { return }
        var found: [(name: String, offer: OfferID?)] = []
        try? folder.entries { name, _ in
            let name = String(decoding: name, as: UTF8.self)
            if name.hasSuffix(".part") {
                found.append((name, OfferID(String(name.dropFirst().prefix { $0 != "." }))))
            } else if let offer = OfferID(name) {
                found.append((name, offer))
            }
            return true
        }
        guard !found.isEmpty, let kept = offers() else { return }
        for (name, offer) in found where offer.map({ !kept.contains($0) }) ?? true { _ = folder.use { unlinkat($0, name, 0) } }
    }
}
