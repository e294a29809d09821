import Crypto
import HexlistAPI
import HexlistFiles
import HexlistFormats
import HexlistJSON
import HexlistLocalSend
import HexlistModel
import HexlistStore

/// The content of a hex in the form in which it is sent to a LocalSend device: one text, or files.
struct DeviceSendContent: Sendable {
    enum Body: Sendable {
        case bytes([UInt8])
        case offer(OfferRow)
    }

    /// The files of the `prepare-upload` request. A text is a single file with the text as its preview; a device may request the upload of
    /// that file nevertheless.
    private(set) var files: [(file: DeviceFile, body: Body)] = []
    /// The number of links to files that the device cannot fetch, such as those of other peers.
    private(set) var unreachable = 0

    enum Fault: Error, Equatable {
        /// The body is not the JSON of a hex.
        case invalid
        /// A file is no longer offered to the device.
        case notOffered(String)
    }

    /// - Parameters:
    ///   - hex: a row of the outbox.
    ///   - own: this machine.
    ///   - offer: returns an offer of this machine to the device; `nil` if there is none.
    init(_ hex: OutgoingHex, own: PeerID, offer: (OfferID) throws -> OfferRow?) throws {
        guard let json = try? JSONValue(parsing: Array(hex.body)) else { throw Fault.invalid }
        var tree = HexTree()
        tree.append(json)
        guard !tree.hexes.isEmpty else { throw Fault.invalid }
        var offers: [(hex: Int, row: OfferRow)] = []
        for index in tree.hexes.indices {
            var others: [HexTree.Link] = []
            for link in tree.hexes[index].links {
                guard let file = FileLink(link.url) else {
                    others.append(link)
                    continue
                }
                guard file.peer == own, case .offer(let id, let name) = file.target else {
                    unreachable += 1
                    others.append(link)
                    continue
                }
                guard let row = try offer(id) else { throw Fault.notOffered(name) }
                offers.append((index, row))
            }
            tree.hexes[index].links = others
        }
        let ids = DeviceFileIDs(hex.messageID)
        let hasLinks = tree.linkCount > 0
        if offers.isEmpty {
            let text = DeviceMessageText.text(of: tree)
            if text.utf8.count <= LocalSendLimits.previewBytes {
                add(Array(text.utf8), id: ids[0], name: "\(ids[0]).txt", type: "text/plain", preview: text)
            } else {
                add(BookmarkHTML.write(tree), id: ids[0], name: Self.name(of: tree), type: "text/html")
            }
            return
        }
        for (hexIndex, row) in offers {
            files.append(
                (
                    DeviceFile(
                        id: ids[files.count], fileName: Self.path(of: row, in: hexIndex, of: tree), size: row.size,
                        fileType: row.mediaType ?? "application/octet-stream", sha256: row.sha256,
                        modified: Timestamp(milliseconds: row.modified).description), .offer(row)
                ))
        }
        // Without links, no bookmark file is needed.
        if hasLinks { add(BookmarkHTML.write(tree), id: ids[files.count], name: "links.html", type: "text/html") }
    }

    private mutating func add(_ bytes: [UInt8], id: String, name: String, type: String, preview: String? = nil) {
        let digest = Array(SHA256.hash(data: bytes))
        files.append(
            (
                DeviceFile(id: id, fileName: name, size: Int64(bytes.count), fileType: type, sha256: digest, preview: preview),
                .bytes(bytes)
            ))
    }

    /// The name of the HTML bookmark file of a hex whose text is longer than `previewBytes`.
    private static func name(of tree: HexTree) -> String {
        let title = tree.hexes[0].description.utf8.split(separator: UInt8(ascii: "\n")).first.map { String(Substring($0)) } ?? ""
        return FileName(HexSubject.isBlank(title) ? "links" : PeerName.cut(title, bytes: 100)).description + ".html"
    }

    /// The path of a file for the device, such as `photos/2026/a.jpg`. Inner hexes are the folders. The top hex is a folder too if the user
    /// sent a single folder: then the local path of the file contains the hex's description as a folder name.
    private static func path(of row: OfferRow, in index: Int, of tree: HexTree) -> String {
        var folders: [String] = []
        var hex = tree.hexes[index]
        while let parent = hex.parent {
            folders.insert(FileName(hex.description).description, at: 0)
            hex = tree.hexes[parent]
        }
        let inside = (folders + [FileName(row.name).description]).joined(separator: "/")
        let whole = "\(FileName(hex.description).description)/\(inside)"
        return !hex.description.isEmpty && row.path.utf8.suffix(whole.utf8.count + 1).elementsEqual("/\(whole)".utf8) ? whole : inside
    }
}

/// The file IDs in the `prepare-upload` request of one hex. They are derived from the message ID, so they are the same on each attempt.
private struct DeviceFileIDs {
    private let message: [UInt8]

    init(_ message: MessageID) { self.message = Array("\(message)".utf8) }

    subscript(_ index: Int) -> String {
        let digest = Array(SHA256.hash(data: message + Array(" file \(index)".utf8)).prefix(16))
        return (UUIDBytes(bytes: digest) ?? .nil).with(version: 8).description
    }
}

/// Converts a hex without files to the text of a LocalSend message.
enum DeviceMessageText {
    /// Returns the description, a blank line, and each link with its description on a line before it. Inner hexes follow under their
    /// descriptions. If the hex has one link and no other text, returns only the address, so that a phone offers to open it.
    static func text(of tree: HexTree) -> String {
        let top = tree.hexes[0]
        if tree.hexes.count == 1, top.links.count == 1 {
            let link = top.links[0]
            let isRepeated = top.description.utf8.elementsEqual(link.title.utf8) || top.description.utf8.elementsEqual(link.url.utf8)
            return HexSubject.isBlank(top.description) || isRepeated ? link.url : "\(top.description)\n\n\(link.url)"
        }
        return tree.hexes.map { hex in
            let links = hex.links.map { link in
                let hasTitle = !HexSubject.isBlank(link.title) && !link.title.utf8.elementsEqual(link.url.utf8)
                return hasTitle ? "\(link.title)\n\(link.url)" : link.url
            }
            return ([hex.description] + (links.isEmpty ? [] : [links.joined(separator: "\n")])).filter { !HexSubject.isBlank($0) }
                .joined(separator: "\n\n")
        }.filter { !$0.isEmpty }.joined(separator: "\n\n")
    }
}
