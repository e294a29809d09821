public import HexlistJSON
import HexlistModel

/// Reads a JSON file: hexes as HexJM, the JSON object of a hex (in an array, one per line, or one after the other as printed by `jq`);
/// bookmarks of Firefox or Chromium (`BrowserJSON`); or the export of a bookmark service (`ServiceJSON`). Other JSON is refused.
public struct JSONFile: Sendable {
    /// The hexes as HexJM, without line breaks.
    public var hexes: [JSONValue] = []
    /// The bookmarks of another program; `nil` if the file has hexes.
    public var bookmarks: FileReading?
    public var skipped: [FileReading.Skip] = []

    public enum Fault: Error, Equatable {
        /// A syntax error, with its line number counted from 1.
        case grammar(String, line: Int)
        /// The file is valid JSON, but it neither contains hexes nor is from a known program.
        case unknown
    }

    /// - Parameters:
    ///   - bytes: UTF-8 without a byte order mark.
    ///   - name: the description of the hex for links outside folders.
    public init(_ bytes: [UInt8], name: String) throws(Fault) {
        let values = try Self.values(bytes)
        var lines = LineNumbers(bytes)
        if let bookmarks = BrowserJSON.bookmarks(values, name: name, &lines) {
            self.bookmarks = bookmarks
            return
        }
        var reading = FileReading()
        for value in values.flatMap({ $0.elements ?? [$0] }) {
            if Self.isHex(value) {
                hexes.append(value.inOneLine)
            } else {
                // A value's bytes are a slice of the file, so their indices are offsets in the file.
                reading.skip(
                    .noHex, String(decoding: value.bytes.prefix(80), as: UTF8.self), line: lines.number(at: value.bytes.startIndex))
            }
        }
        if hexes.isEmpty, !reading.skipped.isEmpty {
            guard let bookmarks = ServiceJSON.read(values, name: name, &lines) else { throw .unknown }
            self.bookmarks = bookmarks
        } else {
            skipped = reading.skipped
        }
    }

    /// Whether a value is a hex. It is if it has `hexDescription`, or `links` whose elements are addresses or objects with `url`. In the
    /// latter case it must have neither `name` nor `title`, which collections of other programs have.
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

    /// Parses the values of a file: a single value, one value per line, or several values separated by white space.
    private static func values(_ bytes: [UInt8]) throws(Fault) -> [JSONValue] {
        var lines = LineNumbers(bytes)
        var values: [JSONValue] = []
        var start = 0
        while let begin = bytes[start...].firstIndex(where: { !isSpace($0) }) {
            let end = end(of: bytes, from: begin)
            do throws(JSONFault) {
                values.append(try JSONValue(parsing: bytes[begin..<end]))
            } catch {
                // If the value is incomplete, the error is reported for the line in which the value begins.
                let offset = begin + (error.offset ?? 0)
                throw .grammar(error.message, line: lines.number(at: offset < end ? offset : begin))
            }
            start = end
        }
        return values
    }

    /// Returns the end of the value that begins at an offset. An object or array ends at its last bracket, or at a line break inside a
    /// string; any other value ends with the line.
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
    /// Returns the value of the last member with this name; `nil` if there is none.
    func member(_ name: String) -> JSONValue? { members?.last { $0.nameBytes.elementsEqual(name.utf8) }?.value }

    /// The value without white space between its tokens; unchanged if it has no line breaks.
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
