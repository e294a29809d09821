import HexlistFormats
import HexlistModel

/// The first line of an input that has text in it, as far as it shows that the input is meant for another command.
enum FirstLineCheck: Equatable, Sendable {
    /// It begins with `<`, as HTML and XML do, and not with an address in angle brackets.
    case markup
    /// It has an address in it, and is neither JSON nor CSV.
    case link
    case other

    /// The most bytes that are looked at.
    private static let bytes = 4_096

    init(_ input: some Sequence<UInt8>) {
        var bytes = Array(input.prefix(Self.bytes))
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes.removeFirst(3) }
        let line = bytes.split { $0 == 0x0A || $0 == 0x0D }.first { $0.contains { $0 != 0x20 && $0 != 0x09 } } ?? []
        let start = line.drop { $0 == 0x20 || $0 == 0x09 }
        switch FileFormat.of(Array(start), name: "") {
        case nil, .html, .opml: self = .markup
        case .list: self = FileFormat.list.read(Array(start), name: "")?.forest.linkCount == 0 ? .other : .link
        default: self = .other
        }
    }

    /// The error for a file of markup in place of links.
    static func markupError(_ path: String) -> HexlistError {
        HexlistError(
            .badRequest, "\(InputFile.name(path)) begins with `<`, as HTML and XML do, and is no list of links.",
            hint: "`hexlist import` takes bookmarks into My Hexlist.")
    }

    /// A hint for a bulk send of which a line was refused; `nil` if there is none.
    var bulkHint: String? {
        switch self {
        case .markup: "The input begins with `<`, as HTML and XML do: `hexlist import` takes bookmarks into My Hexlist."
        case .link: "The first line has a link and is no JSON: `hexlist send --from FILE` sends a list of links."
        case .other: nil
        }
    }
}
