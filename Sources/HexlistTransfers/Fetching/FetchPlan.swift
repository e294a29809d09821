import HexlistAPI
import HexlistFiles
import HexlistJSON
import HexlistModel

/// The files to which the links of a hex lead, and the folders to create for its inner hexes.
struct FetchPlan {
    struct File {
        var link: FileLink
        var name: String
        var size: Int64?
        var sha256: [UInt8]?
        /// Modification time in milliseconds since 1970.
        var modified: Int64?
        /// The index in `HexContent.children` of the inner hex with the link; `nil` if the link is in the outermost hex.
        var folder: Int?
    }

    private let own: PeerID?
    private(set) var files: [File] = []
    /// Number of links that do not lead to a file of a peer.
    private(set) var passedOver = 0
    /// Whether a link leads to a file of this machine, and was skipped for that reason.
    private(set) var isOwn = false
    /// The path of the folder for each inner hex, in the order of `HexContent.children`.
    private var paths: [[String]] = []
    /// The path of the folder for the outermost hex: a folder that was sent, or the one of `addFolder`. Empty if its files are placed
    /// directly in the destination.
    private var base: [String] = []
    /// The paths of the folders that were sent. They are created even if they contain no files.
    private var sent: [[String]] = []

    /// - Parameter own: the UUID of this machine, to skip links to its files; `nil` to include them.
    init(own: PeerID?) { self.own = own }

    mutating func addAll(of content: HexContent) {
        if let folder = FolderMember.folder(content.extra, of: content) {
            base = [FileName(folder).description]
            sent.append(base)
        }
        for link in content.links { add(link, of: content, in: nil) }
        for (index, child) in content.children.enumerated() {
            let folder = FolderMember.folder(child.extra, of: content)
            let name = FileName(folder ?? content.string(child.hexDescription)).description
            paths.append((child.parent.map { paths[$0] } ?? base) + [name])
            if folder != nil { sent.append(paths[index]) }
            for link in content.childLinks[child.links] { add(link, of: content, in: index) }
        }
    }

    /// Adds a folder with the name of the hex around all files, if otherwise several files would be directly in the destination. Not needed
    /// if the hex is a folder that was sent.
    mutating func addFolder(of content: HexContent) {
        guard base.isEmpty, files.count(where: { $0.folder == nil }) > 1 else { return }
        let description = content.string(content.hexDescription)
        let subject = HexSubject.of(description: description, linkDescription: files.first?.name ?? "", url: "")
        base = [FileName(String(subject.prefix { !$0.isNewline })).description]
        (paths, sent) = (paths.map { base + $0 }, sent.map { base + $0 })
    }

    mutating func add(_ content: LinkContent, of hex: HexContent, in folder: Int?) {
        guard content.url.count <= FileLink.maximumBytes, let link = FileLink(hex.string(content.url)), link.peer != own else {
            if content.url.count <= FileLink.maximumBytes, FileLink(hex.string(content.url))?.peer == own { isOwn = true }
            passedOver += 1
            return
        }
        let name =
            switch link.target {
            case .offer(_, let name): name
            case .share(let share, let path): path.names.last ?? share
            }
        var file = File(link: link, name: FileName(name).description, folder: folder)
        if !content.extra.isEmpty, let members = (try? JSONValue(parsing: hex.string(content.extra)))?.members {
            for member in members {
                let isNamed = { (name: String) in member.nameBytes.elementsEqual(name.utf8) }
                if isNamed("size"), let size = member.value.integer, size >= 0 {
                    file.size = size
                } else if isNamed("sha256"), let text = member.value.string, text.utf8.count == 64 {
                    file.sha256 = Hexadecimal.decode(text)
                } else if isNamed("modified"), let time = member.value.string.flatMap({ Timestamp($0) }) {
                    file.modified = time.milliseconds
                }
            }
        }
        files.append(file)
    }

    /// Returns the path of the folder for files, as names.
    /// - Parameter folder: the index of the inner hex; `nil` for the outermost hex.
    func path(of folder: Int?) -> [String] { folder.map { paths[$0] } ?? base }

    /// The folders to create: those of files, and those that were sent. Each folder comes after the one that contains it.
    var folders: [[String]] {
        var seen: Set<[[UInt8]]> = []
        var folders: [[String]] = []
        for path in sent + files.map({ self.path(of: $0.folder) }) {
            for count in 1...max(1, path.count) where count <= path.count {
                let part = Array(path.prefix(count))
                if seen.insert(part.map { Array($0.utf8) }).inserted { folders.append(part) }
            }
        }
        return folders
    }
}
