import HexlistModel

/// What a line of a bulk stream has to be, in one place for the daemon that takes it and the command line that checks it
/// before it sends anything.
public struct BulkLineDecoder: Sendable {
    /// Bytes of one line.
    public static let lineBytes = 1 << 20

    public enum Outcome: Sendable {
        /// White space only: passed over.
        case blank
        case hex(LocalHex)
        case refused(code: String, message: String)
    }

    private let allowsEmpty: Bool
    private var decoder = WrapperDecoder()

    /// - Parameter allowsEmpty: takes a hex without links.
    public init(allowsEmpty: Bool) { self.allowsEmpty = allowsEmpty }

    /// - Parameter line: without its end; `nil` for one longer than `lineBytes`.
    public mutating func decode(_ line: [UInt8]?) -> Outcome {
        guard let line, line.count <= Self.lineBytes else {
            return .refused(code: RefusalCode.tooLarge.rawValue, message: "the line is longer than \(Self.lineBytes) bytes")
        }
        if line.allSatisfy(Self.isSpace) { return .blank }
        switch decoder.decodeHex(line, acceptsLocalNames: true) {
        case .failure(let refusal): return .refused(code: refusal.code.rawValue, message: refusal.message)
        case .success(let hex) where hex.content.links.isEmpty && !allowsEmpty:
            return .refused(code: "noLink", message: "there is no link in it")
        case .success(let hex): return .hex(hex)
        }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A }
}
