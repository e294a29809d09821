import HexlistFormats
import HexlistModel

/// Detects input that was meant for another command, from its first bytes.
enum InputKindCheck: Equatable, Sendable {
    /// The input is HTML or XML: it begins with `<`, but not with a URL in angle brackets.
    case markup
    /// The first line contains a URL and is neither JSON nor CSV.
    case link
    case other

    /// Maximum number of bytes examined.
    private static let bytes = 4_096

    init(_ input: some Sequence<UInt8>) {
        var bytes = Array(input.prefix(Self.bytes))
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes.removeFirst(3) }
        let line = bytes.split { $0 == 0x0A || $0 == 0x0D }.first { $0.contains { $0 != 0x20 && $0 != 0x09 } } ?? []
        let start = line.drop { $0 == 0x20 || $0 == 0x09 }
        switch FileFormat.of(Array(start), name: "") {
        case nil, .html, .opml, .xbel: self = .markup
        case .list: self = FileFormat.list.read(Array(start), name: "")?.forest.linkCount == 0 ? .other : .link
        default: self = .other
        }
    }

    /// Returns the error for HTML or XML given instead of a list of links.
    static func markupError(_ path: String) -> HexlistError {
        HexlistError(
            .badRequest, "\(InputFile.name(path)) is HTML or XML, not a list of links.",
            hint: "To import bookmarks: `hexlist import`.")
    }

    /// The hint that a bulk send prints if lines were refused; `nil` for `other`.
    var bulkHint: String? {
        switch self {
        case .markup: "The input is HTML or XML. To import bookmarks: `hexlist import`."
        case .link: "The first line is a link, not JSON. To send a list of links: `hexlist send --from FILE`."
        case .other: nil
        }
    }
}
