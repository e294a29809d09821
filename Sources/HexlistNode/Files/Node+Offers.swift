internal import Dispatch
public import HexlistAPI
import HexlistFiles
import HexlistJSON
public import HexlistModel
import HexlistStore
import HexlistWire
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// Files of this machine that peers may fetch.
extension Node {
    /// Days for which an offer stays whose hex is not delivered: as long as one waits in the outbox by default, and as long again.
    private static let offerDays: Int64 = 60

    /// Reads files and offers them to peers. An unchanged file that is on offer already is not read again, and keeps its link.
    /// - Parameters:
    ///   - paths: absolute paths of files and folders.
    ///   - folders: folders of which nothing is offered, nor what contains them.
    ///   - progress: called from another thread, as bytes are read.
    /// - Returns: the hex to be sent: its links are the files, the hexes inside it the folders.
    /// - Throws: `HexlistError` `badRequest` for what cannot be offered; then nothing is.
    public func offer(
        _ paths: [String], to peers: [PeerID], protecting folders: [String], progress: @escaping @Sendable (OfferProgress) -> Void
    ) async throws -> OfferResult {
        _ = try recipients(peers)
        let cancellation = Cancellation()
        let store = store
        let now = Timestamp.now.milliseconds
        let plan = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                Self.offers.async {
                    continuation.resume(
                        with: Result {
                            var plan = try OfferPlan(paths, protecting: folders)
                            try plan.read(
                                known: { path, identity in
                                    try store.readSync { try $0.offer(ofPath: path, identity: identity, at: now) }
                                }, ends: now + Self.offerDays * 86_400_000
                            ) { step in
                                progress(step)
                                return !cancellation.isCancelled.withLock { $0 }
                            }
                            return plan
                        })
                }
            }
        } onCancel: {
            cancellation.isCancelled.withLock { $0 = true }
        }
        try await store.offer(plan.rows, to: peers)
        let json = try? JSONValue(parsing: HexEncoder.encode(plan.content(own: id)))
        return OfferResult(
            hex: json ?? .emptyObject, files: plan.rows.count, size: plan.rows.map(\.size).clampedSum, leftOut: plan.leftOut)
    }

    /// The one thread on which files to be offered are read: one request after the other.
    private static let offers = DispatchQueue(label: "hexlist.offers")
}

/// Tells the thread that reads files that nobody waits for it any more.
private final class Cancellation: Sendable {
    let isCancelled = Mutex(false)
}

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
        var row: OfferRow?
    }

    private struct Folder {
        var name: String
        var parent: Int?
    }

    private var files: [File] = []
    private var folders: [Folder] = []
    /// The description of the hex: the name of the folder, where one alone was named.
    private var title = ""
    private(set) var leftOut = 0

    var rows: [OfferRow] { files.compactMap(\.row) }

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
        guard !files.isEmpty else {
            throw HexlistError(.badRequest, "There is no file to send in what was named.", hint: "Hidden files are left out.")
        }
    }

    private mutating func add(folder path: String, isOnly: Bool, protecting protected: ProtectedFolders) throws {
        // Beside others it is one level further down.
        let levels = ProtocolLimits.levels - (isOnly ? 0 : 1)
        let walk = try FolderWalk(path: path, maximumFiles: Self.most - files.count, maximumLevels: levels, protected: protected)
        let skipped = walk.skipped
        leftOut += skipped.hidden + skipped.links + skipped.special + skipped.unreadable
        let base = folders.count
        // The first folder of the walk is the one that was named; alone it is the hex itself.
        let place = { (folder: Int) -> Int? in isOnly ? (folder == 0 ? nil : base + folder - 1) : base + folder }
        if isOnly { title = walk.folders[0].name }
        for (index, folder) in walk.folders.enumerated() {
            if index > 0 || !isOnly { folders.append(Folder(name: folder.name, parent: folder.parent.flatMap(place))) }
            for file in folder.files {
                files.append(File(path: file.path, name: file.name, folder: place(index), identity: file.identity))
            }
        }
    }

    private static var tooMany: HexlistError {
        HexlistError(
            .badRequest, "One hex has at most \(most) files; there are more.", hint: "Send fewer, or an archive of them.")
    }

    private static func refused(_ path: String, _ fault: FileFault) -> HexlistError {
        if case .tooManyFiles = fault { return tooMany }
        return HexlistError(.badRequest, "\(TerminalText.clean(path, columns: 300)) \(fault).", hint: "Nothing was sent.")
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

    /// Reads the files.
    /// - Parameters:
    ///   - known: the offer of a file with this identity, if there is one.
    ///   - progress: `false` ends it.
    mutating func read(
        known: (_ path: String, _ identity: String) throws -> OfferRow?, ends: Int64, progress: (OfferProgress) -> Bool
    ) throws {
        let opened = try files.map { file in
            do throws(FileFault) { return try OfferedFile(path: file.path, remembered: file.identity).identity } catch {
                throw Self.refused(file.path, error)
            }
        }
        var step = OfferProgress(files: files.count, bytes: 0, size: opened.map(\.size).clampedSum)
        for index in files.indices {
            let (wanted, identity) = (files[index], opened[index])
            let path = wanted.path
            if var row = try known(path, identity.description) {
                row.ends = ends
                files[index].row = row
                step.bytes = step.bytes.addingClamped(identity.size)
                continue
            }
            let before = step.bytes
            do throws(FileFault) {
                let file = try OfferedFile(path: path, remembered: identity)
                let digest = try FileDigest.sha256(of: file) { bytes in
                    step.bytes = before + bytes
                    return progress(step)
                }
                files[index].row = OfferRow(
                    id: OfferID.random.bytes, path: path, identity: identity.description, name: wanted.name, size: identity.size,
                    sha256: digest,
                    mediaType: MediaType.of(wanted.name), modified: identity.modified / 1_000_000, ends: ends)
            } catch {
                if case .cancelled = error { throw CancellationError() }
                throw Self.refused(path, error)
            }
        }
    }

    /// The hex: a link for each file, a hex inside for each folder.
    func content(own: PeerID) -> HexContent {
        var hex = HexContent()
        hex.hexDescription = hex.add(title)
        hex.links = links(in: nil, own, &hex)
        // Level by level, those of one folder together.
        var places: [Int: Int] = [:]
        var level: [Int?] = [nil]
        while !level.isEmpty {
            var next: [Int?] = []
            for parent in level {
                for (index, folder) in folders.enumerated() where folder.parent == parent {
                    var child = ChildContent(parent: parent.flatMap { places[$0] })
                    child.hexDescription = hex.add(folder.name)
                    let links = links(in: index, own, &hex)
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

    private func links(in folder: Int?, _ own: PeerID, _ hex: inout HexContent) -> [LinkContent] {
        files.filter { $0.folder == folder }.compactMap { file in
            guard let row = file.row, let offer = OfferID(bytes: row.id) else { return nil }
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
}
