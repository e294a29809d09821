import HexlistAPI
import HexlistFiles
import HexlistJSON
import HexlistModel
import HexlistStore
import HexlistWire

#if canImport(Glibc)
    import Glibc
#endif

/// The files and folders of one request, on their way to be a hex.
struct OfferPlan {
    /// The most files: their links fit into the frame of a trusted peer.
    static let most = 3_000

    private struct File {
        var path: String
        var name: String
        /// The index in `folders`; `nil` for one that was named itself, or lies in the only folder that was named.
        var folder: Int?
        /// The file that was found in a folder: on another way to it there may be a link by now.
        var identity: FileIdentity?
        /// The digest it must have, and whether it may be deleted at any time, so that a copy is offered; of a file that links of a hex lead
        /// to. A file with another digest has no row.
        var found: Found?
        var row: OfferRow?
    }

    /// A file on this machine that a link refers to.
    struct Found {
        var path: String
        var name: String
        var digest: [UInt8]?
        var mayGo: Bool
    }

    /// The folder of copies, and the files that are copied.
    struct Copies {
        var folder: OfferCopies
        /// Bytes that stay free on the disk.
        var minimumFree: Int64
        var isForAll: Bool
    }

    private struct Folder {
        var name: String
        var parent: Int?
        /// Whether the user named it, so that it is in the hex even if none of it is offered.
        var isNamed: Bool
    }

    private var files: [File] = []
    private var folders: [Folder] = []
    /// The description of the hex: the name of the folder, if only one was named.
    private var title = ""
    private(set) var skipped = FolderWalk.Skipped()
    /// The offers of which copies were made.
    private(set) var copied: [OfferID] = []

    var rows: [OfferRow] { files.compactMap(\.row) }

    /// The offer of each file that was found, in their order; `nil` for one that was not what it should be.
    var foundRows: [OfferRow?] { files.map(\.row) }

    /// - Throws: `HexlistError` `badRequest` for too many.
    init(_ found: [Found]) throws {
        guard found.count <= Self.most else { throw Self.tooMany }
        files = found.map { File(path: $0.path, name: $0.name, found: $0) }
    }

    /// Looks what there is; reads no file.
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
            guard files.count <= Self.most else { throw Self.tooMany }
        }
        try checkAny(files.isEmpty)
    }

    private func checkAny(_ isEmpty: Bool) throws(HexlistError) {
        guard isEmpty else { return }
        throw HexlistError(
            .badRequest, "There is no file to send in what was named.",
            hint: skipped.total > 0 ? "Left out: \(OfferLeftOut(skipped).text)." : nil)
    }

    private mutating func add(folder path: String, isOnly: Bool, protecting protected: ProtectedFolders) throws {
        // Beside others it is one level further down.
        let levels = ProtocolLimits.levels - (isOnly ? 0 : 1)
        let walk = try FolderWalk(path: path, maximumFiles: Self.most - files.count, maximumLevels: levels, protected: protected)
        skipped.add(walk.skipped)
        let base = folders.count
        // The first folder of the walk is the one that was named; alone it is the hex itself.
        let place = { (folder: Int) -> Int? in isOnly ? (folder == 0 ? nil : base + folder - 1) : base + folder }
        if isOnly { title = walk.folders[0].name }
        for (index, folder) in walk.folders.enumerated() {
            if index > 0 || !isOnly { folders.append(Folder(name: folder.name, parent: folder.parent.flatMap(place), isNamed: index == 0)) }
            for file in folder.files {
                files.append(File(path: file.path, name: file.name, folder: place(index), identity: file.identity))
            }
        }
    }

    private static var tooMany: HexlistError {
        HexlistError(
            .badRequest, "One hex has at most \(most) files; there are more.", hint: "Send fewer, or an archive of them.")
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

    /// Reads the files, and copies those of which copies are to be offered.
    /// - Parameters:
    ///   - known: the offer of a file with this identity, if there is one.
    ///   - progress: `false` ends it.
    ///
    /// A file of a folder that cannot be read any more is left out and counted; one that was named itself is a fault.
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
        for index in files.indices {
            guard let identity = opened[index] else { continue }
            let wanted = files[index]
            let isCopy = copies.isForAll || wanted.found?.mayGo ?? false
            if !isCopy, var row = try known(wanted.path, identity.description) {
                row.ends = ends
                if wanted.found?.digest.map({ $0 == row.sha256 }) ?? true { files[index].row = row }
                step.bytes = step.bytes.addingClamped(identity.size)
                continue
            }
            let before = step.bytes
            do {
                var row = try readOne(wanted, identity, isCopy ? copies : nil) { bytes in
                    step.bytes = before.addingClamped(bytes)
                    return progress(step)
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

    /// - Throws: the fault of a file that was named itself, or one that says nothing of the file.
    private mutating func leaveOut(_ file: File, _ fault: FileFault) throws {
        guard file.found == nil else { return }
        guard file.identity != nil else { throw Self.refused(file.path, fault) }
        do throws(FileFault) { try skipped.add(fault, file.path) } catch { throw Self.refused(file.path, error) }
    }

    /// - Parameter copies: `nil` if the file itself is offered.
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

    /// The hex: a link for each file, a hex inside for each folder that has one, in itself or in a folder of it.
    func content(own: PeerID) -> HexContent {
        var hex = HexContent()
        hex.hexDescription = hex.add(title)
        let filesOf = Dictionary(grouping: files, by: \.folder)
        hex.links = Self.links(to: filesOf[nil] ?? [], own, &hex)
        // Level by level, those of one folder together.
        let inside = Dictionary(grouping: foldersToSend) { folders[$0].parent }
        var places: [Int: Int] = [:]
        var level: [Int?] = [nil]
        while !level.isEmpty {
            var next: [Int?] = []
            for parent in level {
                for index in inside[parent] ?? [] {
                    var child = ChildContent(parent: parent.flatMap { places[$0] })
                    child.hexDescription = hex.add(folders[index].name)
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

    /// The indices of the folders that become hexes inside: those with an offered file in them or further down, and those that were named.
    private var foldersToSend: [Int] {
        var isSent = folders.map(\.isNamed)
        for file in files where file.row != nil {
            if let folder = file.folder { isSent[folder] = true }
        }
        // A folder stands behind the one it is in.
        for index in folders.indices.reversed() where isSent[index] {
            if let parent = folders[index].parent { isSent[parent] = true }
        }
        return folders.indices.filter { isSent[$0] }
    }

    private static func links(to files: [File], _ own: PeerID, _ hex: inout HexContent) -> [LinkContent] {
        files.compactMap { file in file.row.flatMap { link(to: $0, own, &hex) } }
    }

    /// A link to an offer of this machine.
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

extension OfferLeftOut {
    init(_ skipped: FolderWalk.Skipped) {
        let count = { (cause: FolderWalk.Cause) in skipped.counts[cause] ?? 0 }
        self.init(
            hidden: count(.hidden), links: count(.link), special: count(.special), names: count(.name), notAllowed: count(.notAllowed),
            changed: count(.changed), failed: count(.failed), empty: count(.empty), paths: skipped.paths)
    }
}
