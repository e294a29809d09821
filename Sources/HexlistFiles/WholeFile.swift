internal import Crypto

#if canImport(Glibc)
    internal import Glibc
#endif

/// A partial file with all its bytes, checked, that waits for its name: it gets it together with others, so that many small files cost one
/// wait for the disk and not one each.
public struct WholeFile: Sendable {
    public let goal: PartFile.Goal
    let device: UInt64
    let inode: UInt64

    /// One of several that are placed together.
    public struct Candidate: Sendable {
        /// The folder it is in.
        public var folder: String
        public var file: WholeFile

        public init(folder: String, file: WholeFile) { (self.folder, self.file) = (folder, file) }
    }

    /// A small file that is here as a whole, to be written.
    public struct Content: Sendable {
        /// The folder it goes to.
        public var folder: String
        public var goal: PartFile.Goal
        public var bytes: [UInt8]

        public init(folder: String, goal: PartFile.Goal, bytes: [UInt8]) { (self.folder, self.goal, self.bytes) = (folder, goal, bytes) }
    }

    /// Writes several small files, each as the partial file it is until it gets its name. Nothing of them is durable yet; what a crash leaves of
    /// one is fetched again. Blocks.
    /// - Returns: a result for each. Of a file with a fault nothing is left: `otherBytes`, `tooShort`, `tooLong`, `diskFull`, `partTaken`, and
    ///   those of its folder.
    public static func write(_ contents: [Content]) -> [Result<WholeFile, FileFault>] {
        var folders: [String: Result<Descriptor, FileFault>] = [:]
        var rooms: [String: Int64] = [:]
        return contents.map { content in
            Result { () throws(FileFault) in
                let folder = try opened(content.folder, &folders)
                var room: Int64
                if let known = rooms[content.folder] { room = known } else { room = try folder.freeBytes() }
                room = room.subtractingReportingOverflow(content.goal.size).partialValue
                rooms[content.folder] = room
                guard content.goal.size == 0 || room >= content.goal.minimumFree else { throw .diskFull }
                return try write(content, in: folder)
            }
        }
    }

    private static func write(_ content: Content, in folder: Descriptor) throws(FileFault) -> WholeFile {
        let (goal, count) = (content.goal, Int64(content.bytes.count))
        guard count == goal.size else { throw count < goal.size ? .tooShort(count) : .tooLong }
        if let digest = goal.digest, !SHA256.hash(data: content.bytes).elementsEqual(digest) { throw .otherBytes }
        let name = goal.partName
        let file: Descriptor
        do throws(FileFault) {
            file = try Descriptor.open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600, in: folder)
        } catch {
            // Something is left of an attempt before.
            guard case .system(let system) = error, system.code == EEXIST else { throw error }
            let part = try PartFile(folder: content.folder, goal: goal)
            part.discard()
            file = try Descriptor.open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600, in: folder)
        }
        do throws(FileFault) {
            try content.bytes.withUnsafeBytes { bytes in Result { () throws(FileFault) in try file.write(bytes) } }.get()
            goal.setModeAndTime(of: file)
            let status = try file.status()
            return WholeFile(goal: goal, device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
        } catch {
            _ = folder.use { unlinkat($0, name, 0) }
            throw error
        }
    }

    /// Gives files their names: all that is written is made durable, then `note` is told which name each is to get, then they are renamed, and
    /// their folders made durable. So a name stands for a whole file whenever the machine stops, and after a crash `PartFile.adopt` knows it
    /// again. Blocks.
    /// - Parameter note: records the placements, by the index of the file, durably.
    /// - Returns: a result for each file. `noFreeName` where another took its name in the last moment: it can be tried again.
    /// - Throws: what `note` throws; then nothing was renamed.
    public static func place(
        _ files: [Candidate], note: ([(index: Int, placement: PartFile.Placement)]) throws -> Void
    ) throws -> [Result<PartFile.Placement, FileFault>] {
        var results = [Result<PartFile.Placement, FileFault>](repeating: .failure(.partLost), count: files.count)
        var folders: [String: Result<Descriptor, FileFault>] = [:]
        var (synchronized, taken): ([UInt64: Result<Void, FileFault>], Set<[String]>) = ([:], [])
        var placements: [(index: Int, placement: PartFile.Placement)] = []
        for (index, candidate) in files.enumerated() {
            do throws(FileFault) {
                let folder = try opened(candidate.folder, &folders)
                let file = candidate.file
                guard let part = try folder.status(of: file.goal.partName), file.isSame(part) else { throw .partLost }
                // All of one file system at once, with the first of its files.
                if synchronized[file.device] == nil {
                    synchronized[file.device] = Result { () throws(FileFault) in try folder.synchronizeFileSystem() }
                }
                try synchronized[file.device]?.get()
                let name = try freeName(file, in: folder, path: candidate.folder, &taken)
                placements.append((index, PartFile.Placement(name: name, device: file.device, inode: file.inode)))
            } catch {
                results[index] = .failure(error)
            }
        }
        guard !placements.isEmpty else { return results }
        try note(placements)
        var renamed: Set<String> = []
        for (index, placement) in placements {
            let candidate = files[index]
            do throws(FileFault) {
                let folder = try opened(candidate.folder, &folders)
                guard try folder.renameNew(candidate.file.goal.partName, to: placement.name) else { throw .noFreeName }
                renamed.insert(candidate.folder)
                results[index] = .success(placement)
            } catch {
                results[index] = .failure(error)
            }
        }
        for path in renamed {
            do throws(FileFault) {
                try opened(path, &folders).synchronize()
            } catch {
                for (index, candidate) in files.enumerated() where candidate.folder.utf8.elementsEqual(path.utf8) {
                    if case .success = results[index] { results[index] = .failure(error) }
                }
            }
        }
        return results
    }

    private func isSame(_ status: stat) -> Bool { UInt64(status.st_dev) == device && UInt64(status.st_ino) == inode }

    private static func opened(_ path: String, _ folders: inout [String: Result<Descriptor, FileFault>]) throws(FileFault) -> Descriptor {
        if let known = folders[path] { return try known.get() }
        let folder = Result { () throws(FileFault) in try Descriptor.open(path, O_RDONLY | O_DIRECTORY) }
        folders[path] = folder
        return try folder.get()
    }

    private static func freeName(
        _ file: WholeFile, in folder: Descriptor, path: String, _ taken: inout Set<[String]>
    ) throws(FileFault) -> String {
        for number in 1...PartFile.mostNames {
            let name = file.goal.name.numbered(number).description
            guard try folder.status(of: name) == nil, taken.insert([path, name]).inserted else { continue }
            return name
        }
        throw .noFreeName
    }
}
