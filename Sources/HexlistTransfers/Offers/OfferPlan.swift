import HexlistAPI
import HexlistFiles
import HexlistJSON
import HexlistModel
import HexlistStore
import HexlistWire

#if canImport(Glibc)
    import Glibc
#endif

/// The files and folders that one request offers, and the hex with links to them.
struct OfferPlan {
    /// Maximum number of files. Their links fit into one frame for a trusted peer.
    static let maximumFiles = 3_000

    private struct File {
        var path: String
        var name: String
        /// The index in `folders`; `nil` for a file that is placed directly in the hex, because it was named itself, or is directly in the
        /// only named folder.
        var folder: Int?
        /// The identity of a file that was found in a folder. It must be the same when the file is opened, because a part of the path may
        /// have been replaced by a symbolic link. `nil` for other files.
        var identity: FileIdentity?
        /// The file to which a link of a hex leads; `nil` for a file that the user named. If its digest is not the announced one, `row`
        /// stays `nil`.
        var found: Found?
        /// The offer of the file; `nil` until it is made.
        var row: OfferRow?
    }

    /// A file on this machine to which a link leads. If `isTemporary`, the file may be deleted at any time, so a copy is offered.
    struct Found {
        var path: String
        var name: String
        var digest: [UInt8]?
        var isTemporary: Bool
    }

    /// The folder of copies, and the choice of the files to copy. Files that may be deleted at any time are always copied.
    struct Copies {
        var folder: OfferCopies
        /// Bytes that must stay free on the disk.
        var minimumFree: Int64
        /// Maximum total bytes of files that are copied although the user requested no copies. 0 to copy only files that may be deleted at
        /// any time.
        var below: Int64 = 0
        /// Whether all files are copied, however large they are.
        var isForAll: Bool
    }

    private struct Folder {
        var name: String
        var parent: Int?
        /// Whether the hex has an inner hex for the folder even if none of its files is offered. `false` if the folder could not be read.
        var isSent: Bool
    }

    private var files: [File] = []
    private var folders: [Folder] = []
    /// The description of the hex: the name of the folder, if a single folder was named; otherwise empty.
    private var title = ""
    private(set) var skipped = FolderWalk.Skipped()
    /// The offers for which copies were made.
    private(set) var copied: [OfferID] = []

    var rows: [OfferRow] { files.compactMap(\.row) }

    /// The offer of each file, in order; `nil` if the file could not be read or has another digest than announced.
    var foundRows: [OfferRow?] { files.map(\.row) }

    /// The path and the name of each file, in order.
    var paths: [(path: String, name: String)] { files.map { ($0.path, $0.name) } }

    /// Creates a plan for files that were found on this machine.
    /// - Throws: `HexlistError` `badRequest` if there are too many files.
    init(_ found: [Found]) throws {
        guard found.count <= Self.maximumFiles else { throw Self.tooMany }
        files = found.map { File(path: $0.path, name: $0.name, found: $0) }
    }

    /// Creates a plan for files and folders that the user named. Only names and metadata are read.
    init(_ paths: [String], protecting folders: [String]) throws {
        let protected = ProtectedFolders(folders)
        for path in paths {
            do {
                if try Self.isFolder(path) {
                    try add(folder: path, isOnly: paths.count == 1, protecting: protected)
                } else {
                    try protected.check(path)
                    files.append(File(path: path, name: Self.name(of: path)))
                }
            } catch let fault as FileFault {
                throw Self.refused(path, fault)
            }
            guard files.count <= Self.maximumFiles else { throw Self.tooMany }
        }
        try checkAny(files.isEmpty)
    }

    private func checkAny(_ isEmpty: Bool) throws(HexlistError) {
        guard isEmpty else { return }
        throw HexlistError(
            .badRequest, "There is no file to send there.",
            hint: skipped.total > 0 ? "Skipped: \(SkippedEntries(skipped).text)." : nil)
    }

    private mutating func add(folder path: String, isOnly: Bool, protecting protected: ProtectedFolders) throws {
        // If several folders were named, each becomes an inner hex, which takes one level more than a single folder.
        let levels = ProtocolLimits.levels - (isOnly ? 0 : 1)
        let walk = try FolderWalk(path: path, maximumFiles: Self.maximumFiles - files.count, maximumLevels: levels, protected: protected)
        skipped.add(walk.skipped)
        let base = folders.count
        // The first folder of the walk is the named one. If it is the only named folder, it becomes the hex itself and has no index.
        let place = { (folder: Int) -> Int? in isOnly ? (folder == 0 ? nil : base + folder - 1) : base + folder }
        if isOnly { title = walk.folders[0].name }
        for (index, folder) in walk.folders.enumerated() {
            if index > 0 || !isOnly {
                folders.append(Folder(name: folder.name, parent: folder.parent.flatMap(place), isSent: index == 0 || folder.isRead))
            }
            for file in folder.files {
                files.append(File(path: file.path, name: file.name, folder: place(index), identity: file.identity))
            }
        }
    }

    private static var tooMany: HexlistError {
        HexlistError(
            .badRequest, "A hex has at most \(maximumFiles) files; there are more.", hint: "Send fewer, or put them into an archive.")
    }

    static func refused(_ path: String, _ fault: FileFault) -> HexlistError {
        if case .tooManyFiles = fault { return tooMany }
        let code = fault == .diskFull ? HexlistError.Code.storageFull : .badRequest
        return HexlistError(code, "\(TerminalText.clean(path, columns: 300)) \(fault).", hint: "Nothing was sent.")
    }

    private static func isFolder(_ path: String) throws(FileFault) -> Bool {
        do throws(FileFault) {
            _ = try OfferedFile(path: path)
            return false
        } catch {
            guard case .notRegular = error, isDirectory(path) else { throw error }
            return true
        }
    }

    private static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    private static func name(of path: String) -> String {
        path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(decoding: $0, as: UTF8.self) } ?? "files"
    }

    /// Reads the files, and makes the copies.
    ///
    /// A file in a folder that can no longer be read is skipped and counted. A file that was named itself causes an error.
    ///
    /// - Parameters:
    ///   - known: returns the present offer of a file with this path and identity; `nil` if there is none.
    ///   - progress: called while bytes are read; returns `false` to cancel.
    mutating func read(
        known: (_ path: String, _ identity: String) throws -> OfferRow?, ends: Int64, copies: Copies, progress: (OfferProgress) -> Bool
    ) throws {
        var opened: [FileIdentity?] = []
        for file in files {
            do throws(FileFault) {
                opened.append(try OfferedFile(path: file.path, remembered: file.identity).identity)
            } catch {
                opened.append(nil)
                try leaveOut(file, error)
            }
        }
        var step = OfferProgress(files: files.count, bytes: 0, size: opened.compactMap { $0?.size }.clampedSum)
        var hasRoom = copies.below > 0
        for index in files.indices {
            guard let identity = opened[index] else { continue }
            let wanted = files[index]
            let mustCopy = copies.isForAll || wanted.found?.isTemporary ?? false
            let isCopy = mustCopy || (step.size <= copies.below && hasRoom)
            if !isCopy, var row = try known(wanted.path, identity.description) {
                row.ends = ends
                if wanted.found?.digest.map({ $0 == row.sha256 }) ?? true { files[index].row = row }
                step.bytes = step.bytes.addingClamped(identity.size)
                continue
            }
            let before = step.bytes
            do {
                func advance(_ bytes: Int64) -> Bool {
                    step.bytes = before.addingClamped(bytes)
                    return progress(step)
                }
                var row: OfferRow
                do {
                    row = try readOne(wanted, identity, isCopy ? copies : nil, progress: advance)
                } catch let fault as FileFault where fault == .diskFull && !mustCopy {
                    hasRoom = false
                    row = try readOne(wanted, identity, nil, progress: advance)
                }
                row.ends = ends
                if wanted.found?.digest.map({ $0 == row.sha256 }) ?? true {
                    files[index].row = row
                } else if isCopy, let id = copied.popLast() {
                    copies.folder.remove(id)
                }
            } catch let fault as FileFault {
                guard fault != .cancelled else { throw CancellationError() }
                guard fault != .diskFull else { throw Self.refused(wanted.path, fault) }
                try leaveOut(wanted, fault)
            }
        }
        if files.allSatisfy({ $0.found == nil }) { try checkAny(rows.isEmpty) }
    }

    /// Counts a file as skipped.
    /// - Throws: the fault, if the user named the file itself, or if the fault concerns this machine rather than the file.
    private mutating func leaveOut(_ file: File, _ fault: FileFault) throws {
        guard file.found == nil else { return }
        guard file.identity != nil else { throw Self.refused(file.path, fault) }
        do throws(FileFault) { try skipped.add(fault, file.path) } catch { throw Self.refused(file.path, error) }
    }

    /// - Parameter copies: the folder for the copy; `nil` to offer the file itself.
    private mutating func readOne(
        _ wanted: File, _ identity: FileIdentity, _ copies: Copies?, progress: (Int64) -> Bool
    ) throws -> OfferRow {
        let id = OfferID.random
        let file = try OfferedFile(path: wanted.path, remembered: identity)
        var row = OfferRow(
            id: id.bytes, path: wanted.path, identity: identity.description, name: wanted.name, size: identity.size, sha256: [],
            mediaType: MediaType.of(wanted.name), modified: identity.modified / 1_000_000, ends: 0)
        if let copies {
            let copy = try copies.folder.add(file, as: id, minimumFree: copies.minimumFree, progress: progress)
            copied.append(id)
            (row.path, row.identity, row.sha256) = (copies.folder.path(of: id), copy.identity.description, copy.digest)
        } else {
            row.sha256 = try FileDigest.sha256(of: file, progress: progress)
        }
        return row
    }

    /// Returns the hex, with a link for each file, and an inner hex for each folder.
    func content(own: PeerID) -> HexContent {
        var hex = HexContent()
        hex.hexDescription = hex.add(title)
        if !title.isEmpty { hex.extra = hex.add(bytes: FolderMember.json(title)) }
        let filesOf = Dictionary(grouping: files, by: \.folder)
        hex.links = Self.links(to: filesOf[nil] ?? [], own, &hex)
        // Inner hexes are added level by level, so that those of one folder follow each other.
        let inside = Dictionary(grouping: foldersToSend) { folders[$0].parent }
        var places: [Int: Int] = [:]
        var level: [Int?] = [nil]
        while !level.isEmpty {
            var next: [Int?] = []
            for parent in level {
                for index in inside[parent] ?? [] {
                    var child = ChildContent(parent: parent.flatMap { places[$0] })
                    child.hexDescription = hex.add(folders[index].name)
                    child.extra = hex.add(bytes: FolderMember.json(folders[index].name))
                    let links = Self.links(to: filesOf[index] ?? [], own, &hex)
                    child.links = hex.childLinks.count..<(hex.childLinks.count + links.count)
                    hex.childLinks += links
                    places[index] = hex.add(child: child)
                    next.append(index)
                }
            }
            level = next
        }
        return hex
    }

    /// The indices of the folders that become inner hexes: those that were read, and those that contain offered files at any depth.
    private var foldersToSend: [Int] {
        var isSent = folders.map(\.isSent)
        for file in files where file.row != nil {
            if let folder = file.folder { isSent[folder] = true }
        }
        // A folder comes after the one that contains it. In reverse order, sub-folders come first.
        for index in folders.indices.reversed() where isSent[index] {
            if let parent = folders[index].parent { isSent[parent] = true }
        }
        return folders.indices.filter { isSent[$0] }
    }

    private static func links(to files: [File], _ own: PeerID, _ hex: inout HexContent) -> [LinkContent] {
        files.compactMap { file in file.row.flatMap { link(to: $0, own, &hex) } }
    }

    /// Returns a link to an offer of this machine.
    static func link(to row: OfferRow, _ own: PeerID, _ hex: inout HexContent) -> LinkContent? {
        guard let offer = OfferID(bytes: row.id) else { return nil }
        let link = FileLink(peer: own, target: .offer(offer, name: row.name))
        var extra = JSONWriter(wireCapacity: 256)
        extra.object {
            $0.member("size", row.size)
            $0.member("sha256", Hexadecimal.encode(row.sha256).lowercased())
            if let type = row.mediaType { $0.member("mediaType", type) }
            $0.member("modified", Timestamp(milliseconds: row.modified).description)
        }
        return LinkContent(
            url: hex.add(link.description), linkDescription: hex.add(row.name), service: hex.add(Service.unknown.rawValue),
            extra: hex.add(bytes: extra.bytes))
    }
}

extension SkippedEntries {
    init(_ skipped: FolderWalk.Skipped) {
        let count = { (cause: FolderWalk.Cause) in skipped.counts[cause] ?? 0 }
        self.init(
            hidden: count(.hidden), links: count(.link), special: count(.special), names: count(.name), notAllowed: count(.notAllowed),
            changed: count(.changed), failed: count(.failed), paths: skipped.paths)
    }
}
