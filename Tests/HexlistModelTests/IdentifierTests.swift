import HexlistModel
import Testing

@Suite("UUIDs, fingerprints, boot nonces")
struct IdentifierTests {
    @Test(
        "exactly the 36 bytes of RFC 9562's text form are accepted",
        arguments: ["0b3d2c1a-1111-4222-8333-444455556666", "0B3D2C1A-1111-4222-8333-444455556666"])
    func uuid(text: String) {
        #expect(UUIDBytes(text)?.description == "0B3D2C1A-1111-4222-8333-444455556666")
        #expect(UUIDBytes(text).flatMap { UUIDBytes(bytes: $0.bytes) } == UUIDBytes(text))
    }

    @Test(
        "other forms are refused",
        arguments: [
            "", "42", "0B3D2C1A-1111-4222-8333-444455556666\0evil", "0B3D2C1A-1111-4222-8333-44445555666",
            "0B3D2C1A11114222833344445555666600-0",
            "{0B3D2C1A-1111-4222-8333-4444555566}", "0B3D2C1A-1111-4222-8333-44445555666G", "0B3D2C1A 1111 4222 8333 444455556666",
        ])
    func noUUID(text: String) { #expect(UUIDBytes(text) == nil) }

    @Test("a peer's UUID is the first 16 bytes of its fingerprint, with version 8 and the variant")
    func peerID() throws {
        let fingerprint = try #require(Fingerprint(bytes: [UInt8](repeating: 0xFF, count: 32)))
        #expect(fingerprint.peerID.description == "FFFFFFFF-FFFF-8FFF-BFFF-FFFFFFFFFFFF")
        let zeros = try #require(Fingerprint(bytes: [UInt8](repeating: 0, count: 32)))
        #expect(zeros.peerID.description == "00000000-0000-8000-8000-000000000000")
        #expect(Fingerprint(fingerprint.description) == fingerprint)
        #expect(Fingerprint(bytes: [UInt8](repeating: 0, count: 31)) == nil)
    }

    @Test("a message id is a UUIDv7: its milliseconds, version and variant")
    func messageID() {
        let id = MessageID(milliseconds: 0x0123_4567_89AB, random: .max, .max)
        #expect(id.description == "01234567-89AB-7FFF-BFFF-FFFFFFFFFFFF")
    }

    @Test("a random message id is a UUIDv4: its version and variant")
    func randomMessageID() {
        let (id, other) = (MessageID.random(), MessageID.random())
        #expect(id.uuid.bytes[6] >> 4 == 4 && id.uuid.bytes[8] >> 6 == 2)
        #expect(id != other)
    }

    @Test("a boot nonce is written as 16 digits and read again", arguments: [0, 1, 0xABCD, UInt64.max])
    func boot(value: UInt64) {
        let text = BootNonce(value).description
        #expect(text.utf8.count == 16)
        #expect(BootNonce(text) == BootNonce(value))
        #expect(BootNonce(text + "0") == nil)
    }
}

@Suite("Instance names and text for display")
struct TextTests {
    @Test(
        "an instance name is cut between scalars and has at most 63 bytes", arguments: ["desk", String(repeating: "é", count: 60), "👩🏽‍💻👩🏽‍💻👩🏽‍💻👩🏽‍💻👩🏽‍💻"])
    func instance(name: String) {
        let peer = PeerID(UUIDBytes(high: 0x0123_4567_89AB_CDEF, low: 0))
        let instance = PeerName.instance(displayName: name, peer: peer)
        #expect(instance.utf8.count <= 63)
        #expect(instance.hasSuffix(" [01234567]"))
        #expect(
            name.hasPrefix(PeerName.display(instance: instance))
                || name.unicodeScalars.starts(with: PeerName.display(instance: instance).unicodeScalars))
    }

    @Test(
        "an instance name of another form is shown unchanged", arguments: ["desk", "desk [0123456]", "desk [0123456G]", "[01234567]", ""])
    func foreign(name: String) { #expect(PeerName.display(instance: name) == name) }

    @Test(
        "characters that control a terminal are replaced; those that scripts need are kept",
        arguments: [
            ("\u{1B}[31mred\u{7}", "\u{FFFD}[31mred\u{FFFD}"), ("a\r\nb\tc", "a  b c"), ("evil\u{202E}txt", "evil\u{FFFD}txt"),
            ("\u{9B}2J", "\u{FFFD}2J"), ("zero\u{200B}width", "zero\u{FFFD}width"), ("עברית و العربية", "עברית و العربية"),
            ("👩🏽‍💻", "👩🏽‍💻"), ("می\u{200C}خواهم", "می\u{200C}خواهم"), ("tag\u{E0041}", "tag\u{FFFD}"), ("line\u{2028}", "line\u{FFFD}"),
        ])
    func clean(text: String, shown: String) {
        #expect(Array(TerminalText.clean(text).utf8) == Array(shown.utf8))
    }

    @Test("a limit in columns bounds the work, even for a million combining marks")
    func columns() {
        #expect(TerminalText.clean("abcdef", columns: 4) == "abc…")
        let marks = "a" + String(repeating: "\u{301}", count: 1_000_000)
        #expect(TerminalText.clean(marks, columns: 10).utf8.count <= 160)
    }
}

@Suite("Slices of a hex")
struct HexContentTests {
    @Test("a slice outside its buffer is empty and does not trap")
    func outside() {
        let content = HexContent(frame: [1, 2, 3])
        #expect(content.withBytes(of: TextSlice(frame: 1..<3)) { Array($0) } == [2, 3])
        #expect(content.withBytes(of: TextSlice(frame: 2..<9)) { $0.count } == 0)
        #expect(content.withBytes(of: TextSlice(arena: 0..<1)) { $0.count } == 0)
    }

    @Test("added texts are stored in the arena")
    func arena() {
        var content = HexContent()
        let (one, two) = (content.add("eins"), content.add("zwei"))
        #expect(content.string(one) == "eins")
        #expect(content.string(two) == "zwei")
        content.links = [LinkContent(url: one, linkDescription: two, service: .empty)]
        #expect(content.byteCount == 8)
    }
}
