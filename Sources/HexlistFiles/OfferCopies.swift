#if canImport(Glibc)
    internal import Glibc
#endif

/// Copies of offered files, for files that may be changed or deleted during the offer: `FOLDER/<32 digits of the offer's ID>`. Only this
/// user can read them. Calls block.
public struct OfferCopies: Sendable {
    /// Absolute path of the folder, which is created with the first copy.
    public let path: String

    public init(path: String) { self.path = path }

    public func path(of offer: OfferID) -> String { "\(path)/\(offer)" }

    /// Copies a file and makes the copy durable. If the file system supports it, the copy shares the file's blocks (reflink).
    /// - Parameters:
    ///   - minimumFree: bytes that must stay free on the disk.
    ///   - progress: called with the bytes copied so far; returns `false` to cancel.
    /// - Returns: the identity and the SHA-256 of the copy.
    /// - Throws: `changed` if the file changes while it is copied, `diskFull`, `notAllowed`, `cancelled`, `system`. The incomplete copy is
    ///   deleted.
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

    /// Creates a partial file for a copy. The caller appends the bytes.
    /// - Parameter modified: the modification time in nanoseconds since 1970; `nil` for now.
    /// - Throws: `diskFull`, `notAllowed`; `system`.
    public func begin(_ offer: OfferID, size: Int64, modified: Int64? = nil, minimumFree: Int64) throws(FileFault) -> PartFile {
        if mkdir(path, 0o700) != 0, errno != EEXIST { throw FileFault.last }
        let specification = PartFile.Specification(
            name: FileName(offer.description), id: Self.partID, size: size, digest: nil, modified: modified, umask: 0o177,
            minimumFree: minimumFree)
        return try PartFile(folder: path, specification: specification)
    }

    /// Verifies a complete copy, makes it durable, and gives it its final name.
    /// - Returns: the identity and the SHA-256 of the copy.
    /// - Throws: the errors of `PartFile.finish`.
    public func finish(_ part: PartFile, as offer: OfferID) throws -> (identity: FileIdentity, digest: [UInt8]) {
        let digest = part.digest
        _ = try part.finish()
        return (try OfferedFile(path: path(of: offer)).identity, digest)
    }

    /// The ID in the names of partial copies. The name of a partial copy is `.<digits of the offer>.copy.part`.
    private static let partID = "copy"

    public func remove(_ offer: OfferID) { _ = unlink(path(of: offer)) }

    /// Deletes all copies except those of the given offers. Also deletes the partial copies of a process that was killed.
    /// - Parameter offers: returns the offers whose copies stay; `nil` to delete nothing. It is called after the folder was listed, so
    ///   copies that are started later are not deleted.
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
