public import HexlistJSON
import HexlistModel

/// A file of JSON: hexes as HexJM, in an array, one a line, or one after the other as `jq` prints them; or the bookmarks of Firefox, Chromium
/// or Pinboard. JSON of other programs is not read: an object without `links` would be a hex without a name.
public struct JSONFile: Sendable {
    /// Hexes as HexJM, each in one line of JSON.
    public var hexes: [JSONValue] = []
    /// Bookmarks of another program; `nil` for hexes.
    public var bookmarks: FileReading?
    public var skipped: [FileReading.Skip] = []

    public enum Fault: Error, Equatable {
        /// - `line`: the line of the file that the fault is in.
        case grammar(String, line: Int)
        /// JSON of a program that is not read.
        case program(String)
        /// JSON in which nothing is a hex.
        case unknown
    }

    /// - Parameters:
    ///   - bytes: UTF-8 without a byte order mark.
    ///   - name: the description for a hex of links outside any folder.
    public init(_ bytes: [UInt8], name: String) throws(Fault) {
        let values = try Self.values(bytes)
        var lines = LineNumbers(bytes)
        if let bookmarks = ForeignJSON.bookmarks(values, name: name, &lines) {
            self.bookmarks = bookmarks
            return
        }
        var reading = FileReading()
        for value in values.flatMap({ $0.elements ?? [$0] }) {
            if Self.isHex(value) {
                hexes.append(value.inOneLine)
            } else {
                // Values are parts of the file, so that their offsets are those in it.
                reading.skip(
                    .noHex, String(decoding: value.bytes.prefix(80), as: UTF8.self), line: lines.number(at: value.bytes.startIndex))
            }
        }
        skipped = reading.skipped
        guard hexes.isEmpty, !skipped.isEmpty else { return }
        throw ForeignJSON.program(values).map { .program($0) } ?? .unknown
    }

    /// Whether a value is a hex: it has a description as Hexlist names it, or links, each an address or an object with one, and no name as
    /// collections of other programs have.
    private static func isHex(_ value: JSONValue) -> Bool {
        guard let members = value.members else { return false }
        func last(_ name: String) -> JSONValue? { members.last { $0.nameBytes.elementsEqual(name.utf8) }?.value }
        guard let links = last("links") else { return last("hexDescription")?.string != nil }
        guard let elements = links.elements else { return false }
        if last("hexDescription") != nil { return true }
        return last("name") == nil && last("title") == nil
            && elements.allSatisfy { $0.string != nil || $0.member("url")?.string != nil }
    }

    // MARK: Values one after the other

    /// The values of a file: one, one a line, or several with white space between them.
    private static func values(_ bytes: [UInt8]) throws(Fault) -> [JSONValue] {
        var lines = LineNumbers(bytes)
        var values: [JSONValue] = []
        var start = 0
        while let begin = bytes[start...].firstIndex(where: { !isSpace($0) }) {
            let end = end(of: bytes, from: begin)
            do throws(JSONFault) {
                values.append(try JSONValue(parsing: bytes[begin..<end]))
            } catch {
                // A value that ends too early is named by its first line.
                let offset = begin + (error.offset ?? 0)
                throw .grammar(error.message, line: lines.number(at: offset < end ? offset : begin))
            }
            start = end
        }
        return values
    }

    /// The end of the value that begins at an offset: of an object or array behind its last bracket, of others at a line end; if a line ends
    /// in a string, that line.
    private static func end(of bytes: [UInt8], from start: Int) -> Int {
        guard bytes[start] == UInt8(ascii: "{") || bytes[start] == UInt8(ascii: "[") else {
            return bytes[start...].firstIndex { $0 == 0x0A || $0 == 0x0D } ?? bytes.count
        }
        var depth = 0
        var isInString = false
        var at = start
        while at < bytes.count {
            let byte = bytes[at]
            at += 1
            switch byte {
            case UInt8(ascii: "\""): isInString.toggle()
            case UInt8(ascii: "\\") where isInString: at += 1
            case 0x0A where isInString, 0x0D where isInString: return at - 1
            case UInt8(ascii: "{") where !isInString, UInt8(ascii: "[") where !isInString: depth += 1
            case UInt8(ascii: "}") where !isInString, UInt8(ascii: "]") where !isInString:
                depth -= 1
                if depth == 0 { return at }
            default: break
            }
        }
        return bytes.count
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }
}

extension JSONValue {
    /// The value of a member, the last of its name.
    func member(_ name: String) -> JSONValue? { members?.last { $0.nameBytes.elementsEqual(name.utf8) }?.value }

    /// The same value without white space between its parts.
    var inOneLine: JSONValue {
        guard bytes.contains(where: { $0 == 0x0A || $0 == 0x0D }) else { return self }
        var line: [UInt8] = []
        line.reserveCapacity(bytes.count)
        var (isInString, isEscaped) = (false, false)
        for byte in bytes {
            if isInString {
                isInString = isEscaped || byte != UInt8(ascii: "\"")
                isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
            } else if MarkupScanner.isSpace(byte) {
                continue
            } else if byte == UInt8(ascii: "\"") {
                isInString = true
            }
            line.append(byte)
        }
        return (try? JSONValue(parsing: line)) ?? self
    }
}
