internal import Crypto

#if canImport(Glibc)
    internal import Glibc
#endif

/// A file that is complete and verified, but still has the name of a partial file. Files are renamed in batches, so that many small files
/// share one sync of the disk.
public struct VerifiedPartFile: Sendable {
    /// The announced properties of the file, and how to save it.
    public let specification: PartFile.Specification
    /// The device number of the file system on which the file is.
    public let device: UInt64
    let inode: UInt64
    /// The folder of the file, which stays open.
    let folder: Descriptor
    /// An instant after the folder was opened, and before the file was written.
    let since: ContinuousClock.Instant

    /// A file to rename in a batch, with the path of its folder.
    public struct Candidate: Sendable {
        /// The path of the folder.
        public var folder: String
        public var file: VerifiedPartFile

        public init(folder: String, file: VerifiedPartFile) { (self.folder, self.file) = (folder, file) }
    }

    /// The content of a small file that is to be written.
    public struct Content: Sendable {
        /// The path of the destination folder.
        public var folder: String
        public var specification: PartFile.Specification
        public var bytes: [UInt8]

        public init(folder: String, specification: PartFile.Specification, bytes: [UInt8]) {
            (self.folder, self.specification, self.bytes) = (folder, specification, bytes)
        }
    }

    /// Writes several small files as partial files. They are not durable yet, and are fetched again after a crash. Blocks.
    /// - Returns: a result for each file. If it is a fault, nothing of the file remains on the disk. Faults are `otherBytes`, `tooShort`,
    ///   `tooLong`, `diskFull`, `partInUse`, and those of opening the folder.
    public static func write(_ contents: [Content]) -> [Result<VerifiedPartFile, FileFault>] {
        // Folders are compared by the bytes of their paths: different paths may be equal as strings (Unicode normalization).
        var folders: [[UInt8]: Result<Folder, FileFault>] = [:]
        return contents.map { content in
            Result { () throws(FileFault) in
                let key = Array(content.folder.utf8)
                let known = folders[key] ?? Result { () throws(FileFault) in try Folder(content.folder) }
                folders[key] = known
                var folder = try known.get()
                try content.specification.checkRoom(folder.free, for: content.specification.size)
                let file = try write(content, in: folder)
                folder.free -= content.specification.size
                folders[key] = .success(folder)
                return file
            }
        }
    }

    /// An open destination folder for several files.
    private struct Folder {
        let descriptor: Descriptor
        let since: ContinuousClock.Instant
        /// Free bytes on the file system when the folder was opened, minus the size of the files written since.
        var free: Int64

        init(_ path: String) throws(FileFault) {
            descriptor = try Descriptor.open(path, O_RDONLY | O_DIRECTORY)
            since = .now
            free = try descriptor.freeBytes()
        }
    }

    private static func write(_ content: Content, in folder: Folder) throws(FileFault) -> VerifiedPartFile {
        let (specification, count) = (content.specification, Int64(content.bytes.count))
        guard count == specification.size else { throw count < specification.size ? .tooShort(count) : .tooLong }
        if let digest = specification.digest, !SHA256.hash(data: content.bytes).elementsEqual(digest) { throw .otherBytes }
        let file: Descriptor
        do throws(FileFault) {
            file = try specification.makePart(in: folder.descriptor)
        } catch {
            // The partial file of an earlier attempt exists.
            guard case .system(let system) = error, system.code == EEXIST else { throw error }
            let part = try PartFile(folder: content.folder, specification: specification)
            part.discard()
            file = try specification.makePart(in: folder.descriptor)
        }
        do throws(FileFault) {
            try content.bytes.withUnsafeBytes { bytes in Result { () throws(FileFault) in try file.write(bytes) } }.get()
            specification.setModeAndTime(of: file)
            let status = try file.status()
            return VerifiedPartFile(
                specification: specification, device: UInt64(status.st_dev), inode: UInt64(status.st_ino), folder: folder.descriptor,
                since: folder.since)
        } catch {
            _ = folder.descriptor.use { unlinkat($0, specification.partName, 0) }
            throw error
        }
    }

    /// Renames files to their final names as one batch. It syncs the file systems, calls `note` with the chosen names, renames the files,
    /// and syncs the folders. A file with a final name is therefore always complete, and after a crash `PartFile.recover` recognises it.
    /// Blocks.
    /// - Parameter note: records the placements durably. `index` is the position of a file in `files`.
    /// - Returns: a result for each file. The fault `noFreeName` means that another program took the name just before the rename; a retry
    ///   may succeed.
    /// - Throws: errors of `note`. No file was renamed then.
    public static func place(
        _ files: [Candidate], note: ([(index: Int, placement: PartFile.Placement)]) throws -> Void
    ) throws -> [Result<PartFile.Placement, FileFault>] {
        var results = [Result<PartFile.Placement, FileFault>](repeating: .failure(.partLost), count: files.count)
        // syncfs(2) is called once per file system, on the folder that was opened first. The kernel reports a write error only to
        // descriptors that were open when it occurred, or if there are none, to the first caller.
        let oldest = Dictionary(files.map { ($0.file.device, $0.file) }) { $0.since <= $1.since ? $0 : $1 }
        let synchronized = oldest.mapValues { file in Result { () throws(FileFault) in try file.folder.synchronizeFileSystem() } }
        var taken: Set<[[UInt8]]> = []
        var placements: [(index: Int, placement: PartFile.Placement)] = []
        for (index, candidate) in files.enumerated() {
            do throws(FileFault) {
                let file = candidate.file
                guard let part = try file.folder.status(of: file.specification.partName), file.isSame(part) else { throw .partLost }
                try synchronized[file.device]?.get()
                let name = try freeName(file, in: candidate.folder, &taken)
                placements.append((index, PartFile.Placement(name: name, device: file.device, inode: file.inode)))
            } catch {
                results[index] = .failure(error)
            }
        }
        guard !placements.isEmpty else { return results }
        try note(placements)
        var renamed: [[UInt8]: Descriptor] = [:]
        for (index, placement) in placements {
            let candidate = files[index]
            do throws(FileFault) {
                let folder = candidate.file.folder
                guard try folder.renameNew(candidate.file.specification.partName, to: placement.name) else { throw .noFreeName }
                renamed[Array(candidate.folder.utf8)] = folder
                results[index] = .success(placement)
            } catch {
                results[index] = .failure(error)
            }
        }
        for (path, folder) in renamed {
            do throws(FileFault) {
                try folder.synchronize()
            } catch {
                for (index, candidate) in files.enumerated() where candidate.folder.utf8.elementsEqual(path) {
                    if case .success = results[index] { results[index] = .failure(error) }
                }
            }
        }
        return results
    }

    private func isSame(_ status: stat) -> Bool { UInt64(status.st_dev) == device && UInt64(status.st_ino) == inode }

    private static func freeName(_ file: VerifiedPartFile, in path: String, _ taken: inout Set<[[UInt8]]>) throws(FileFault) -> String {
        let key = { (name: FileName) in [Array(path.utf8), Array(name.description.utf8)] }
        let name = try file.specification.name.firstFree { [taken] name throws(FileFault) in
            if taken.contains(key(name)) { return true }
            return try file.folder.status(of: name.description) != nil
        }
        guard let name else { throw .noFreeName }
        taken.insert(key(name))
        return name.description
    }
}
