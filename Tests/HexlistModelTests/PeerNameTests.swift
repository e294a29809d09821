import Testing

@testable import HexlistModel

/// A text that counts the characters read from it.
private struct Counted: Sequence, IteratorProtocol {
    final class Count { var value = 0 }

    var rest: String.UnicodeScalarView.Iterator
    let count: Count

    mutating func next() -> Unicode.Scalar? {
        count.value += 1
        return rest.next()
    }
}

@Suite("Names of peers") struct PeerNameTests {
    static let bob = PeerID(UUIDBytes(high: 0x0C6F_1B22_0000_8000, low: 0x8000_0000_0000_0001))

    @Test(
        "equal names",
        arguments: [
            ("Bob", "bOB"), ("Bob", "  Bob\t"), ("Bob's  desk", "bob's desk"), ("ÄRGER", "ärger"), ("straße", "STRASSE"),
            ("\u{212A}arl", "karl"), ("Σίσυφος", "ΣΊΣΥΦΟΣ"), ("e\u{301}va", "\u{C9}va"), ("a;b`", "A\u{37E}B\u{1FEF}"),
            ("\u{1F82}", "\u{3B1}\u{313}\u{300}\u{345}"), ("\u{AC01}", "\u{1100}\u{1161}\u{11A8}"), ("B\u{200D}o\u{FE0F}b", "bob"),
            ("B\u{202E}ob", "bob"),
        ]) func same(one: String, other: String)
    {
        #expect(NormalizedName(one) == NormalizedName(other) && NormalizedName(one) != nil)
        #expect(NormalizedName(one)?.isKey(of: other) == true && NormalizedName(other)?.isKey(of: one) == true)
    }

    @Test(
        "different names",
        arguments: [
            ("Bob", "Bo"), ("Bob", "B ob"), ("Bob", "\u{412}ob"), ("Eva", "Éva"), ("a", "ⓐ"), ("", "x"), ("Bob", "Bob\u{301}"),
            ("Bob", "Bob x"),
        ])
    func different(one: String, other: String) {
        #expect(NormalizedName(one) != NormalizedName(other))
        #expect(NormalizedName(one)?.isKey(of: other) != true && NormalizedName(other)?.isKey(of: one) != true)
    }

    @Test("invalid names", arguments: ["", " \t\n", "\u{200D}\u{2066}", String(repeating: "x", count: 257)])
    func nothing(text: String) {
        #expect(NormalizedName(text) == nil)
    }

    @Test("each scalar is folded by its case mappings")
    func folding() {
        let wrong = (UInt32(0x80)...0x10_FFFF).lazy.compactMap(Unicode.Scalar.init).filter { scalar in
            guard !scalar.properties.isWhitespace, !scalar.properties.isDefaultIgnorableCodePoint else { return false }
            let upper = scalar.properties.uppercaseMapping
            guard upper.unicodeScalars.count != 1 || upper.unicodeScalars.first != scalar || scalar.properties.changesWhenLowercased else {
                return false
            }
            let folded = upper.unicodeScalars.map(\.properties.lowercaseMapping).joined()
            return NormalizedName(String(scalar))?.text.unicodeScalars.elementsEqual(folded.unicodeScalars) != true
        }
        #expect(Array(wrong) == [])
    }

    @Test("a name that is slow to fold is read only while it may still match")
    func work() throws {
        let slow = String(repeating: "\u{390}", count: 120)
        for (text, most) in [("bob", 1), (String(repeating: "b", count: 200), 1), ("größe", 9), ("ΐ bob", 10), ("b\u{390}", 6)] {
            let count = Counted.Count()
            let key = try #require(NormalizedName(text))
            #expect(!key.isKey(of: Counted(rest: slow.unicodeScalars.makeIterator(), count: count)))
            #expect(count.value <= most, "\(text): \(count.value)")
        }
    }

    @Test(
        "the alias made from a name",
        arguments: [
            ("Bob", "Bob"), ("  Bob\u{202E}  the \n builder ", "Bob the builder"), ("", "peer 0C6F1B22"),
            ("\u{1B}\u{7}\u{200B}", "peer 0C6F1B22"),
            // Names that are in use, in upper or lower case.
            ("Taken", "Taken 0C6F1B22"), ("TAKEN", "TAKEN 0C6F1B22"), ("ta\u{200D}ken", "ta\u{200D}ken 0C6F1B22"),
            ("\u{200D}\u{200D}", "peer 0C6F1B22"), ("twice", "twice 0C6F1B22 2"),
            // Taken names, and names that look like another peer's label.
            ("cafe", "cafe 0C6F1B22"), ("0c6f1b22", "0c6f1b22 0C6F1B22"),
            ("7AF30000-0000-8000-8000-000000000001", "7AF30000-0000-8000-8000-000000000001 0C6F1B22"),
            ("Bob 7af30000", "Bob 7af30000 0C6F1B22"), ("Bob (Stranger)", "Bob (Stranger) 0C6F1B22"), ("Bob 0C6F1B22", "Bob 0C6F1B22"),
            ("cafeteria", "cafeteria"), ("ace", "ace"), ("Größe 中文 👩‍👩‍👧", "Größe 中文 👩‍👩‍👧"),
            (String(repeating: "é", count: 40), String(repeating: "é", count: 26) + " 0C6F1B22"),
        ]) func made(name: String, alias: String)
    {
        let taken: Set = [NormalizedName("taken"), NormalizedName("twice"), NormalizedName("Twice 0c6f1b22")]
        let made = PeerAlias.made(of: name, for: Self.bob) { taken.contains($0) }
        #expect(made.utf8.elementsEqual(alias.utf8), "\(made)")
        #expect(PeerAlias.fault(made, of: Self.bob) == nil)
    }

    @Test(
        "invalid aliases",
        arguments: [
            "", String(repeating: "x", count: 257), "a\u{1B}b", "\u{202E}x", "\u{200D}", "dead", "0C6F", "0C6F1B22-0000",
            "0C6F1B22-0000-8000-8000-000000000001", "Bob 7AF30000", "bob (trusted)", "(blocked)",
        ]) func noAlias(text: String)
    {
        #expect(PeerAlias.fault(text, of: Self.bob) != nil)
    }

    @Test("valid aliases", arguments: ["Bob", "abc", "Größe/ 100%", "dead-beef", "Bob 0c6f1b22", "7AF30000 x", "face it"])
    func mayBeAlias(text: String) {
        #expect(PeerAlias.fault(text, of: Self.bob) == nil)
    }

    @Test func labels() {
        func label(_ name: String, _ alias: String? = nil, _ trust: Trust = .stranger) -> PeerDisplayName {
            PeerDisplayName(Self.bob, name: name, alias: alias, trust: trust)
        }
        #expect(label("Bob").text() == "Bob 0C6F1B22 (stranger)")
        #expect(label("Robert", "Bob", .trusted).text() == "Bob")
        #expect(label("Robert", "Bob", .blocked).text() == "Bob (blocked)")
        #expect(label("Bob", nil, .trusted).text() == "Bob 0C6F1B22")
        #expect(label("").text() == "0C6F1B22 (stranger)")
        #expect(label("Bob").text(.named) == "Bob 0C6F1B22")
        #expect(label("Bob", "Bob", .blocked).text(.named) == "Bob")
        #expect(label("Bob", "Bob", .trusted).text(.full) == "Bob 0C6F1B22 (trusted)")
        #expect(label("Bob", "Bob 0C6F1B22", .trusted).text(.full) == "Bob 0C6F1B22 (trusted)")
        #expect(label("Bob").text(.whole) == "Bob \(Self.bob) (stranger)")
        #expect(PeerDisplayName(uuid: nil, name: "Bob", alias: nil, trust: "stranger").text() == "Bob (stranger)")
        #expect(PeerDisplayName(uuid: Self.bob.description, name: "", alias: nil, trust: "").text() == "0C6F1B22")
        // For any name, the part that distinguishes the peer comes last.
        for name in [
            "Bob" + String(repeating: " ", count: 200), String(repeating: "Bob (trusted) ", count: 20), "Bob\u{1B}[2K\r", "Bob\u{202E}\n\n",
        ] {
            let text = label(name).text(columns: 44)
            #expect(text.hasPrefix("Bob") && text.hasSuffix(" 0C6F1B22 (stranger)") && text.count <= 44, "\(text)")
            #expect(TerminalText.clean(text) == text)
        }
        // Two aliases with the same beginning stay different.
        #expect(label("", String(repeating: "long ", count: 20), .trusted).text(columns: 44).hasSuffix("… 0C6F1B22"))
    }
}
