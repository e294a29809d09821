public import HexlistJSON
import HexlistModel

/// A file of JSON: hexes as HexJM, in an array, one a line, or one after the other as `jq` prints them; the bookmarks of Firefox and Chromium
/// (`BrowserJSON`); or the export of a service that keeps links (`ServiceJSON`). Other JSON is refused.
public struct JSONFile: Sendable {
    /// Hexes as HexJM without line breaks.
    public var hexes: [JSONValue] = []
    /// The bookmarks of another program; `nil` for a file of hexes.
    public var bookmarks: FileReading?
    public var skipped: [FileReading.Skip] = []

    public enum Fault: Error, Equatable {
        /// - `line`: the line of the fault.
        case grammar(String, line: Int)
        /// JSON in which nothing is a hex, of a program that is not known.
        case unknown
    }

    /// - Parameters:
    ///   - bytes: UTF-8 without a byte order mark.
    ///   - name: the description of the hex for links in no folder.
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
                // Offsets of values are offsets in the file.
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

    /// Whether a value is a hex: it has `hexDescription`, or it has `links` that are addresses or objects with a `url` and has neither `name`
    /// nor `title` as collections of other programs do.
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

    /// The values of a file: one value, one value a line, or several separated by white space.
    private static func values(_ bytes: [UInt8]) throws(Fault) -> [JSONValue] {
        var lines = LineNumbers(bytes)
        var values: [JSONValue] = []
        var start = 0
        while let begin = bytes[start...].firstIndex(where: { !isSpace($0) }) {
            let end = end(of: bytes, from: begin)
            do throws(JSONFault) {
                values.append(try JSONValue(parsing: bytes[begin..<end]))
            } catch {
                // An incomplete value is reported with its first line.
                let offset = begin + (error.offset ?? 0)
                throw .grammar(error.message, line: lines.number(at: offset < end ? offset : begin))
            }
            start = end
        }
        return values
    }

    /// The end of the value that begins at an offset: after the last bracket of an object or array, at the line end for other values and for a
    /// line break in a string.
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
    /// The value of the last member of a name.
    func member(_ name: String) -> JSONValue? { members?.last { $0.nameBytes.elementsEqual(name.utf8) }?.value }

    /// The value without white space between its parts.
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
