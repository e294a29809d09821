import HexlistAPI
import HexlistFormats
import HexlistModel

/// Separates the arguments of `send` and `mine add` into links and descriptive text.
struct TypedText {
    var links: [LinkInput] = []
    /// The words that are not links. They become the description of the hex.
    var text = ""

    /// Parses the arguments. Each is a link, `URL description`, or a text that contains links (`LinkText`). The argument `-` stands for the
    /// content of standard input: a list of links as for `--from`, or a text. With `raw` each argument is one link.
    /// - Throws: `HexlistError` for a bare host, for a word after a link that looks like an unquoted description, and for a text over 64
    ///   KiB.
    init(_ arguments: [String], _ check: TypedLinkCheck) throws {
        for (number, argument) in arguments.enumerated() {
            if argument == "-" { try addInput(check) } else { try add(argument, check, before: arguments[(number + 1)...]) }
        }
        guard text.utf8.count <= ProtocolLimits.stringBytes else {
            throw HexlistError(
                .badRequest, "The text is longer than \(ProtocolLimits.stringBytes >> 10) KiB.", hint: "Send it as a file.")
        }
    }

    /// Returns the description given by its option, followed by the text of the arguments.
    func description(_ given: String) -> String { [given, text].filter { !$0.isEmpty }.joined(separator: "\n") }

    private mutating func add(_ argument: String, _ check: TypedLinkCheck, before following: ArraySlice<String>) throws {
        guard let first = LinkInput(argument) else { return }
        if check == .raw { return links.append(first) }
        let (word, isWord) = (first.url, first.description.isEmpty)
        switch LinkTextKind(word) {
        case .bareHost where isWord || Self.isHost(word):
            links += try LinkInput.all(argument, check).map { try check.checked($0) }
        case .link where isWord && !word.contains("://"):
            links.append(try check.checked(first))
        case .bareHost, .link, .other:
            let found = LinkText(argument)
            if found.links.isEmpty, !links.isEmpty { _ = try check.checked(first, after: links.last, before: following) }
            try add(found, check)
        }
    }

    /// Whether the first word of an argument with several words is probably a host. It is not in `3.5 percent`, `12:30 lunch` and `[done]
    /// it`.
    private static func isHost(_ word: String) -> Bool {
        if word.hasPrefix("[") { return word.utf8.count { $0 == UInt8(ascii: ":") } > 1 }
        let host = word.prefix { !"/?#:".contains($0) }
        let labels = host.split(separator: ".")
        let isPort = word.dropFirst(host.count).first == ":" && word.dropFirst(host.count + 1).prefix(while: \.isNumber).count > 3
        return isPort || labels.count == 4 || labels.count > 1 && labels.last?.first?.isLetter == true
    }

    private mutating func addInput(_ check: TypedLinkCheck) throws {
        let input = try LinkInput.text(of: "-", check)
        let words = input.split(whereSeparator: \.isNewline).compactMap { LinkInput(String($0))?.url }.filter { !$0.hasPrefix("#") }
        if check == .raw || words.allSatisfy({ LinkTextKind($0) != .other }) {
            links += try LinkInput.read(lines: input, check, name: InputFile.name("-"))
        } else {
            try add(LinkText(input), check)
        }
    }

    private mutating func add(_ found: LinkText, _ check: TypedLinkCheck) throws {
        links += try found.links.map { try check.checked(LinkInput(url: $0.url, description: $0.title, service: nil)) }
        let rest = found.description
        guard !rest.isEmpty else { return }
        // Each unquoted word is a separate argument, so words are joined with spaces; texts with several lines are joined with line breaks.
        let hasLines = text.contains("\n") || rest.contains("\n")
        text += text.isEmpty ? rest : (hasLines ? "\n" : " ") + rest
    }
}
