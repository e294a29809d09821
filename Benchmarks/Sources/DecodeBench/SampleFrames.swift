/// Store frames of about 1 kB as peers send them: 5 links, 15 % of the texts with UTF-8 or escapes. The generator is seeded, so that every
/// run has the same frames.
struct SampleFrames {
    /// The style in which the JSON is printed.
    enum Style: String {
        /// Without white space, as this project and most libraries print.
        case compact
        /// With a space after `:` and `,`, and every scalar beyond ASCII escaped, as Python's `json` prints by default.
        case python
    }

    private static let words = [
        "archive", "basket", "canopy", "delta", "ember", "field", "garden", "harbour", "island", "journal", "kettle", "lantern",
        "meadow", "notes", "orchard", "paper", "quarry", "river", "summer", "timber", "umbrella", "valley", "window", "yellow",
    ]
    private static let odd = ["Zoë", "山田 太郎", "naïve café", "עברית", "😀 smile", "a \"quoted\" word", "two\nlines", "back\\slash", "Ærø"]
    private static let services = ["Dropbox", "GoogleDrive", "Box", "Unknown"]

    private var state: UInt64
    private let style: Style

    init(style: Style, seed: UInt64 = 1) {
        self.style = style
        state = seed
    }

    mutating func next(_ number: Int) -> [UInt8] {
        let links = (0..<5).map { _ in
            object([
                ("url", string("https://\(word()).example.org/\(word())/\(word())-\(word())-\(below(100_000)).html?ref=\(word())")),
                ("linkDescription", string(text(words: 4))),
                ("service", string(Self.services[below(Self.services.count)])),
            ])
        }
        let hex = object([
            ("senderUUID", string(uuid())), ("senderName", string(text(words: 2))), ("hexDescription", string(text(words: 6))),
            ("hexColor", string("#3366CC")), ("links", "[" + links.joined(separator: separator) + "]"),
        ])
        let wrapper = object([
            ("versionID", string("1.0.0")), ("operationType", string("Store")), ("jmObjectType", string("Hex")),
            ("messageID", string(uuid())), ("sequence", String(number)), ("jmObject", hex),
        ])
        return Array(wrapper.utf8)
    }

    private var separator: String {
        switch style {
        case .compact: ","
        case .python: ", "
        }
    }

    private func object(_ members: [(String, String)]) -> String {
        let colon = style == .compact ? "\":" : "\": "
        return "{" + members.map { "\"" + $0 + colon + $1 }.joined(separator: separator) + "}"
    }

    /// A text of words; in 15 of 100 texts one of them is not plain.
    private mutating func text(words count: Int) -> String {
        var words = (0..<count).map { _ in word() }
        if below(100) < 15 { words[below(count)] = Self.odd[below(Self.odd.count)] }
        return words.joined(separator: " ")
    }

    private mutating func uuid() -> String {
        let digits = Array("0123456789ABCDEF")
        let groups = [8, 4, 4, 4, 12].map { count in String((0..<count).map { _ in digits[below(16)] }) }
        return groups.joined(separator: "-")
    }

    private mutating func word() -> String { Self.words[below(Self.words.count)] }

    /// A random number below `bound`, from the SplitMix64 generator.
    private mutating func below(_ bound: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return Int((mixed ^ mixed >> 31) % UInt64(bound))
    }

    private func string(_ text: String) -> String {
        var json = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": json += "\\\""
            case "\\": json += "\\\\"
            case "\n": json += "\\n"
            default:
                if style == .compact || scalar.isASCII {
                    json.unicodeScalars.append(scalar)
                } else {
                    for unit in UTF16.encode(scalar) ?? .init() { json += "\\u" + hex(unit) }
                }
            }
        }
        return json + "\""
    }

    private func hex(_ unit: UInt16) -> String {
        let digits = String(unit, radix: 16)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }
}
