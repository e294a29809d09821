import HexlistJSON
import HexlistModel

/// Decodes one line of a bulk stream. Shared by the daemon, which stores the lines, and the command line, which validates them first.
public struct BulkLineDecoder: Sendable {
    public static let lineBytes = 1 << 20

    public enum LineResult: Sendable {
        /// The line has only white space, and is to be skipped.
        case blank
        case hex(LocalHex)
        case refused(code: String, message: String)
    }

    private let allowsEmpty: Bool
    private var decoder = WrapperDecoder()

    /// - Parameter allowsEmpty: whether a hex without links is valid.
    public init(allowsEmpty: Bool) { self.allowsEmpty = allowsEmpty }

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

    /// Returns a hint if a member of a hex without links has nearly the name of the list of links; otherwise an empty string.
    private static func hint(_ content: HexContent) -> String {
        guard let name = content.memberNames(of: content.extra).first(where: { NearestName.likely($0, among: ["links"]) != nil })
        else { return "" }
        return "; did you mean `links` instead of `\(TerminalText.clean(name, columns: 40))`?"
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A }
}
