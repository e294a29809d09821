import HexlistFormats
import HexlistJSON
import HexlistModel

/// The contents of an imported file: bookmarks or links from another program, or hexes from `hexlist export`.
struct BookmarkFile {
    /// The hexes of the file, each as a HexJM.
    var lines: [JSONValue]
    /// Whether the hexes were made from folders of bookmarks. Such a hex extends an existing hex of the same name.
    var hasFolders = true
    /// Number of entries of the file that are not links.
    var skipped: Int

    /// - Parameter name: the name of the file. A hex with links that are in no folder gets it as its description.
    /// - Throws: `badRequest` if the format is unknown, or there are no links.
    init(_ file: [UInt8], name: String) throws(HexlistError) {
        let shown = TerminalText.clean(name, columns: 60)
        let bytes: [UInt8]
        do throws(DecodedText.Fault) {
            bytes = try DecodedText(file).bytes
        } catch {
            throw HexlistError(.badRequest, "\(shown) is not a text file in a known encoding.")
        }
        let stem = String(name.split(separator: ".").first ?? "Imported")
        let reading: FileReading?
        switch FileFormat.of(bytes, name: name) {
        case nil: throw Self.unknown(shown)
        case .json, .ndjson:
            let json: JSONFile
            do throws(JSONFile.Fault) {
                json = try JSONFile(bytes, name: stem)
            } catch {
                throw Self.unknown(shown)
            }
            guard json.bookmarks == nil else {
                reading = json.bookmarks
                break
            }
            (lines, hasFolders, skipped) = (json.hexes, false, json.skipped.reduce(0) { $0 + $1.count })
            return
        case let format?: reading = format.read(bytes, name: stem)
        }
        guard let reading else { throw Self.unknown(shown) }
        guard reading.forest.linkCount > 0 else { throw HexlistError(.badRequest, "\(shown) contains no links.") }
        (lines, skipped) = (reading.forest.divided(), reading.skipped.reduce(0) { $0 + $1.count })
    }

    private static func unknown(_ name: String) -> HexlistError {
        HexlistError(
            .badRequest, "\(name) is not a list of links that Hexlist knows.",
            hint: "Supported are bookmarks (HTML), OPML, XBEL, CSV, Markdown, JSON and lists of links.")
    }
}
