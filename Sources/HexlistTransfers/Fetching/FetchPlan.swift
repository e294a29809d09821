import HexlistAPI
import HexlistFiles
import HexlistJSON
import HexlistModel

/// The files that the links of a hex lead to, and the folders that the hexes inside it become.
struct FetchPlan {
    struct File {
        var link: FileLink
        var name: String
        var size: Int64?
        var sha256: [UInt8]?
        /// Milliseconds since 1970.
        var modified: Int64?
        /// The index in `children` of the hex it is in; `nil` for the hex itself.
        var folder: Int?
    }

    private let own: PeerID?
    private(set) var files: [File] = []
    /// Links that lead to no file of a peer.
    private(set) var passedOver = 0
    /// Whether a link to a file of this machine was passed over.
    private(set) var isOwn = false
    /// The path of each hex inside, in the order of `HexContent.children`.
    private var paths: [[String]] = []

    /// - Parameter own: the peer whose links are skipped; `nil` for none.
    init(own: PeerID?) { self.own = own }

    mutating func addAll(of content: HexContent) {
        for link in content.links { add(link, of: content, in: nil) }
        for (index, child) in content.children.enumerated() {
            let name = FileName(content.string(child.hexDescription)).description
            paths.append((child.parent.map { paths[$0] } ?? []) + [name])
            for link in content.childLinks[child.links] { add(link, of: content, in: index) }
        }
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

    /// The names of the folders on the way to a file.
    func path(of folder: Int?) -> [String] { folder.map { paths[$0] } ?? [] }

    /// The folders that files go to, each behind the one it is in.
    var folders: [[String]] {
        var seen: Set<[[UInt8]]> = []
        var folders: [[String]] = []
        for file in files {
            let path = path(of: file.folder)
            for count in 1...max(1, path.count) where count <= path.count {
                let part = Array(path.prefix(count))
                if seen.insert(part.map { Array($0.utf8) }).inserted { folders.append(part) }
            }
        }
        return folders
    }
}
