import HexlistJSON
import HexlistModel

/// Decodes one line of a bulk send: a hex as JSON. The command line validates lines with it before the daemon stores them.
public struct BulkLineDecoder: Sendable {
    /// Maximum bytes of a line, without its line break.
    public static let lineBytes = 1 << 20

    public enum LineResult: Sendable {
        /// The line has only white space. It is skipped.
        case blank
        case hex(LocalHex)
        /// The line is not a valid hex. `code` is a `RefusalCode`; `message` is for the user.
        case refused(code: String, message: String)
    }

    private let allowsEmpty: Bool
    private var decoder = WrapperDecoder()

    /// - Parameter allowsEmpty: whether a hex without links is valid.
    public init(allowsEmpty: Bool) { self.allowsEmpty = allowsEmpty }

    /// Decodes a line.
    /// - Parameter line: the line without its line break; `nil` if it is longer than `lineBytes`.
    public mutating func decode(_ line: [UInt8]?) -> LineResult {
        guard let line, line.count <= Self.lineBytes else {
            return .refused(code: RefusalCode.tooLarge.rawValue, message: "the line is longer than \(Self.lineBytes) bytes")
        }
        if line.allSatisfy(Self.isSpace) { return .blank }
        switch decoder.decodeHex(line, acceptsLocalNames: true) {
        case .failure(let refusal): return .refused(code: refusal.code.rawValue, message: refusal.message)
        case .success(let hex) where hex.content.allLinkCount == 0 && !allowsEmpty:
            return .refused(code: "noLink", message: "there is no link in it" + Self.hint(hex.content))
        case .success(let hex): return .hex(hex)
        }
    }

    /// Returns a hint for the user if a hex without links has a member with nearly the name `links`; otherwise an empty string.
    private static func hint(_ content: HexContent) -> String {
        guard let name = content.memberNames(of: content.extra).first(where: { NearestName.likely($0, among: ["links"]) != nil })
        else { return "" }
        return "; did you mean `links` instead of `\(TerminalText.clean(name, columns: 40))`?"
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A }
}
