#if canImport(Glibc)
    internal import Glibc
#endif

/// Copies of files that are on offer, made where the file itself need not stay as it is: `FOLDER/<32 digits of the offer>`, for this user only.
/// Calls block, and come one after another.
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
        if mkdir(path, 0o700) != 0, errno != EEXIST { throw FileFault.last }
        let goal = PartFile.Goal(
            name: FileName(offer.description), id: "copy", size: source.size, digest: nil, modified: source.identity.modified,
            umask: 0o177, minimumFree: minimumFree)
        let part = try PartFile(folder: path, goal: goal)
        do {
            try part.fill(from: source, progress: progress)
            let digest = part.digest
            _ = try part.finish()
            return (try OfferedFile(path: path(of: offer)).identity, digest)
        } catch {
            part.discard()
            throw error
        }
    }

    public func remove(_ offer: OfferID) { _ = unlink(path(of: offer)) }

    /// Deletes all copies but those of some offers, and what a kill left of one that was being made.
    public func removeAll(but offers: Set<OfferID>) {
        guard let folder = try? Descriptor.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW) else { return }
        var names: [String] = []
        try? folder.entries { name, _ in
            let name = String(decoding: name, as: UTF8.self)
            if OfferID(name).map({ !offers.contains($0) }) ?? name.hasSuffix(".part") { names.append(name) }
            return true
        }
        for name in names { _ = folder.use { unlinkat($0, name, 0) } }
    }
}
