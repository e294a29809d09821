import HexlistAPI
import HexlistFiles
import HexlistJSON
import HexlistLocalSend
import HexlistModel
import HexlistStore

/// Builds a hex from the files of one upload session. Its links identify the stored files by their SHA-256 digests. Folders in a file name,
/// such as `a` in `a/b.jpg`, become nested hexes.
struct UploadedFilesHexBuilder {
    private struct Folder {
        var title: FileName
        var folders: [Int] = []
        var files: [Int] = []
    }

    /// Maximum number of nested hexes of one upload session; further files are links of the top hex.
    private static let folderLimit = 500

    private let rows: [ArrivalRow]
    private let paths: [[FileName]]
    /// The folders, each after its parent; the first one is the top hex.
    private var tree: [Folder]

    /// - Parameter rows: the files of one session, at least one.
    init(_ rows: [ArrivalRow]) {
        self.rows = rows
        paths = rows.map { DeviceFile(id: "", fileName: $0.name, size: 0, fileType: "").path }
        let title = rows.count == 1 ? paths[0].last ?? FileName("") : FileName("\(rows.count) files")
        tree = [Folder(title: title)]
        for (index, path) in paths.enumerated() {
            var folder = 0
            for title in path.dropLast() { folder = addFolder(title, in: folder) }
            tree[folder].files.append(index)
        }
    }

    /// Returns the index of a folder in `tree`. A folder that does not exist is added.
    private mutating func addFolder(_ title: FileName, in parent: Int) -> Int {
        if let known = tree[parent].folders.first(where: { tree[$0].title == title }) { return known }
        guard tree.count <= Self.folderLimit else { return parent }
        tree.append(Folder(title: title))
        tree[parent].folders.append(tree.count - 1)
        return tree.count - 1
    }

    /// - Parameter makeOffer: makes a random ID for each link.
    func hex(from sender: PeerID, name: String, makeOffer: () -> OfferID) -> IncomingHex {
        var content = HexContent()
        content.setSender(sender, name: name)
        content.hexDescription = content.add(tree[0].title.description)
        content.links = tree[0].files.map { link(to: $0, sender, makeOffer(), &content) }
        // Adds the nested hexes level by level, so that each hex follows its parent and the children of one hex are consecutive.
        var waiting: [(folder: Int, child: Int?)] = [(0, nil)]
        var next = 0
        while next < waiting.count {
            let (folder, parent) = waiting[next]
            next += 1
            for index in tree[folder].folders {
                var child = ChildContent(parent: parent)
                child.hexDescription = content.add(tree[index].title.description)
                let first = content.childLinks.count
                for file in tree[index].files { content.childLinks.append(link(to: file, sender, makeOffer(), &content)) }
                child.links = first..<content.childLinks.count
                waiting.append((index, content.add(child: child)))
            }
        }
        return IncomingHex(content: content, messageID: nil, weight: content.weight(frame: 0))
    }

    private func link(to index: Int, _ sender: PeerID, _ offer: OfferID, _ content: inout HexContent) -> LinkContent {
        let row = rows[index]
        return content.link(
            toFile: paths[index].last ?? FileName(""), size: row.size, sha256: row.sha256, mediaType: row.mediaType, modified: row.modified,
            of: sender, offer)
    }
}

extension HexContent {
    /// Makes a link to a file that arrived with this hex.
    /// - Parameters:
    ///   - modified: milliseconds since 1970.
    ///   - offer: a random ID.
    mutating func link(
        toFile name: FileName, size: Int64, sha256: [UInt8], mediaType: String?, modified: Int64?, of sender: PeerID, _ offer: OfferID
    ) -> LinkContent {
        var extra = JSONWriter(wireCapacity: 256)
        extra.object {
            $0.member("size", size)
            $0.member("sha256", Hexadecimal.encode(sha256).lowercased())
            if let mediaType { $0.member("mediaType", mediaType) }
            if let modified { $0.member("modified", Timestamp(milliseconds: modified).description) }
        }
        return LinkContent(
            url: add(FileLink(peer: sender, target: .offer(offer, name: name.description)).description),
            linkDescription: add(name.description), service: add(Service.unknown.rawValue), extra: add(bytes: extra.bytes))
    }
}
