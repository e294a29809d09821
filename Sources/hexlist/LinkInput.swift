import Glibc
import HexlistAPI
import HexlistFormats
import HexlistJSON
import HexlistModel

/// A link as the user types it: `URL` or `URL description`.
struct LinkInput: JSONEncodable {
    var url: String
    var description: String
    /// The service that created the link; `nil` if none is known.
    var service: String?

    init(url: String, description: String, service: String?) { (self.url, self.description, self.service) = (url, description, service) }

    /// Splits a text at the first white space into URL and description. Returns `nil` if the text is blank.
    init?(_ text: String) {
        let trimmed = text.drop(while: \.isWhitespace)
        guard !trimmed.isEmpty else { return nil }
        url = String(trimmed.prefix { !$0.isWhitespace })
        var rest = trimmed.drop { !$0.isWhitespace }.drop(while: \.isWhitespace)
        while rest.last?.isWhitespace == true { rest.removeLast() }
        description = String(rest)
    }

    /// Returns the links in each line of a text (`LinkLine`). With `raw` the whole text is one link.
    static func all(_ text: some StringProtocol, _ check: TypedLinkCheck) -> [LinkInput] {
        guard check != .raw else { return LinkInput(String(text)).map { [$0] } ?? [] }
        return text.split(whereSeparator: \.isNewline).flatMap { LinkLine.parts($0) }
            .map { LinkInput(url: $0.url, description: $0.description, service: nil) }
    }

    func write(to json: inout JSONWriter) {
        json.object {
            $0.member("url", url)
            if !description.isEmpty { $0.member("linkDescription", description) }
            $0.member("service", service)
        }
    }

    /// Reads a file and returns the links in each line (`LinkLine`). Skips blank lines and lines that begin with `#`.
    /// - Parameter path: a file, or `-` for standard input.
    static func read(from path: String, _ check: TypedLinkCheck) throws -> [LinkInput] {
        try read(lines: text(of: path, check), check, name: InputFile.name(path))
    }

    /// Returns the text of a file or of standard input.
    /// - Throws: `HexlistError` for HTML and XML, unless `check` is `raw`.
    static func text(of path: String, _ check: TypedLinkCheck) throws -> String {
        let text = String(decoding: try ImportedFile.text(InputFile.read(path, limit: LocalAPI.bodyBytes), path).bytes, as: UTF8.self)
        if check != .raw, InputKindCheck(text.utf8) == .markup { throw InputKindCheck.markupError(path) }
        return text
    }

    /// Returns the checked links in each line of a text.
    /// - Parameter name: the source of the text, for error messages.
    static func read(lines text: String, _ check: TypedLinkCheck, name: String) throws -> [LinkInput] {
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        return try lines.enumerated().flatMap { number, line in
            let links = all(line, check)
            guard links.first?.url.hasPrefix("#") == false else { return [] as [LinkInput] }
            return try links.map { try check.checked($0, from: "\(name), line \(number + 1)") }
        }
    }

    /// Reads the links from arguments that may only contain links.
    static func read(_ arguments: [String], _ check: TypedLinkCheck) throws -> [LinkInput] {
        try arguments.flatMap { try all($0, check).map { try check.checked($0) } }
    }
}

/// A hex typed by the user. Encoded as a HexJM.
struct HexInput: JSONEncodable {
    var description: String
    var color: String
    var links: [LinkInput]

    func write(to json: inout JSONWriter) {
        json.object {
            $0.member("hexDescription", description)
            $0.member("hexColor", color)
            $0.member("links", links)
        }
    }
}

/// Reads input files and standard input.
enum InputFile {
    /// Reads a whole file.
    /// - Parameters:
    ///   - path: a file, or `-` for standard input.
    ///   - limit: maximum bytes; a larger file is an error.
    static func read(_ path: String, limit: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        try stream(path) { chunk in
            guard bytes.count + chunk.count <= limit else {
                throw HexlistError(.badRequest, "\(name(path)) is larger than \(ByteCountText.of(Int64(limit))).", hint: "Split it.")
            }
            bytes += chunk
        }
        return bytes
    }

    /// Reads a file and calls `body` with each chunk.
    static func stream(_ path: String, _ body: (ArraySlice<UInt8>) throws -> Void) throws {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(path) }
        defer { if path != "-" { close(descriptor) } }
        while true {
            let piece = try piece(descriptor, bytes: 1 << 16, path: path)
            guard !piece.isEmpty else { return }
            try body(piece[...])
        }
    }

    /// Reads the available bytes. Blocks until there is at least one; returns an empty array at the end of the file.
    static func piece(_ descriptor: CInt, bytes: Int, path: String) throws -> [UInt8] {
        var fault: CInt = 0
        let piece = [UInt8](unsafeUninitializedCapacity: bytes) { buffer, count in
            var result = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            while result < 0, errno == EINTR { result = Glibc.read(descriptor, buffer.baseAddress, buffer.count) }
            if result < 0 { fault = errno }
            count = max(0, result)
        }
        guard fault == 0 else {
            errno = fault
            throw unreadable(path)
        }
        return piece
    }

    /// The name of the file as shown in messages.
    static func name(_ path: String) -> String { path == "-" ? "Standard input" : path }

    /// Returns the error for a file that cannot be read, with the reason from `errno`.
    static func unreadable(_ path: String) -> HexlistError {
        HexlistError(.badRequest, "\(name(path)) cannot be read (\(String(cString: strerror(errno)))).")
    }
}
