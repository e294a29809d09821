import Crypto
import HexlistAPI
import HexlistEnvelope
import HexlistJSON
import HexlistModel
import Testing

@testable import hexlist

@Suite("Notifications") struct NotificationTests {
    private static let ada = PeerID(UUIDBytes(high: 0x1A2B_3C4D_0000_8000, low: 0x8000_0000_0000_0002))
    private static let bob = PeerID(UUIDBytes(high: 0x2A2B_3C4D_0000_8000, low: 0x8000_0000_0000_0002))

    private static func received(_ number: Int64, _ subject: String, from peer: PeerID = ada, alias: String = "Ada") -> EventJSON {
        EventJSON(
            number: number, at: Timestamp(milliseconds: 0), type: "hex.received", peer: peer,
            tag: PeerSummary(name: "n", alias: alias, trust: .trusted), hex: number, subject: subject)
    }

    @Test("one hex: sender and subject, without markup") func one() {
        let text = NotificationText(hexes: [Self.received(1, "<b>a</b> & \u{202E}b\n--c")])
        #expect(text?.summary == "Ada")
        #expect(text?.body == "&lt;b&gt;a&lt;/b&gt; &amp; \u{FFFD}b --c")
    }

    @Test("markup with a combining mark after it is removed too") func combined() {
        #expect(NotificationText(hexes: [Self.received(1, "<\u{301}b>x</b> &\u{301}lt;")])?.body.contains("<") == false)
        #expect(NotificationText(hexes: [Self.received(1, "&\u{301}")])?.body == "&amp;\u{301}")
    }

    @Test("the button that opens a link shows the real host") func button() throws {
        let text = try #require(NotificationText(hexes: [Self.received(1, "https://mybank.example/login")]))
        #expect(
            NotifySend.arguments(text, [.open("evil.example"), .markAsRead]) == [
                "--app-name=Hexlist", "--action=open=Open evil.example", "--action=read=Mark as read", "--", "Ada",
                "https://mybank.example/login",
            ])
        #expect(
            NotifySend.arguments(text, []) == ["--app-name=Hexlist", "--", "Ada", "https://mybank.example/login"])
        let long = NotificationText.opens("mybank.example." + String(repeating: "a.", count: 60) + "evil.example")
        #expect(long.hasPrefix("Open …") && long.hasSuffix(".evil.example") && long.count == 45)
        #expect(NotificationText.opens("[2001:db8::1]") == "Open [2001:db8::1]")
        #expect(NotificationText.opens("a\u{202E}\nb") == "Open a\u{FFFD} b")
    }

    private static func hex(
        _ urls: [String], opens: String? = nil, location: String = "inbox", inside: [String]? = nil
    ) throws -> HexJSON {
        let json = """
            {"id":1,"location":"\(location)","senderUUID":"","senderName":"","description":"","color":"","linkCount":1,"unread":true,
            "receivedAt":"2026-01-01T00:00:00.000Z","links":[]}
            """
        var hex = try HexJSON(jsonBytes: Array(json.utf8))
        func links(_ urls: [String]) throws -> [LinkJSON] {
            try urls.map { url in
                let target = opens.map { #","opens":"\#($0)""# } ?? ""
                let json = #"{"url":"\#(url)","linkDescription":"","service":"Unknown"\#(target)}"#
                return try LinkJSON(jsonBytes: Array(json.utf8))
            }
        }
        hex.links = try links(urls)
        hex.children = try inside.map {
            [InnerHexJSON(id: 2, senderUUID: "", senderName: "", description: "", color: "", links: try links($0))]
        }
        return hex
    }

    @Test("buttons: open one link, save files, accept one request") func buttons() throws {
        let file = "hexlist://\(Self.ada)/0123456789abcdef0123456789abcdef/a.pdf"
        let web = try Self.hex(["https://a.example/"], opens: "a.example")
        let files = try Self.hex([file], inside: [file, "https://a.example/"])
        let cases: [(NotifiedHexKind, HexJSON?, isDownloading: Bool, [String])] = [
            (.received, web, false, ["Open a.example", "Mark as read"]), (.received, nil, false, ["Mark as read"]),
            (.received, try Self.hex(["https://a.example/", "https://a.example/"], opens: "a.example"), false, ["Mark as read"]),
            (.received, try Self.hex([file]), false, ["Save file", "Mark as read"]),
            (.received, files, false, ["Save 2 files", "Mark as read"]), (.received, files, true, ["Mark as read"]),
            (.held, try Self.hex(["https://a.example/"], opens: "a.example", location: "held"), false, ["Accept"]),
            (.held, try Self.hex([file], location: "held"), false, ["Accept"]), (.held, nil, false, []), (.held, web, false, []),
        ]
        for (hexes, hex, isDownloading, labels) in cases {
            #expect(NotifyCommand.buttons(hexes, hex, isDownloading: isDownloading).map(\.label) == labels)
        }
    }

    @Test("the range of events that a notification reports") func range() {
        let range = NotifiedRange(hexes: .held, numbers: 5...9)
        #expect(range.text == "hex.held:5-9" && NotifiedRange(argument: range.text) == range)
        for text in ["", "5-9", "hex.held", "hex.held:9-5", "hex.held:0-1", "hex.lost:1-2", "hex.held:1-2-3", "hex.held:x-2"] {
            #expect(NotifiedRange(argument: text) == nil, "\(text)")
        }
    }

    @Test("requests name their sender as one") func requests() {
        var one = Self.received(1, "Look")
        one.type = "hex.held"
        one.tag = PeerSummary(name: "cyd", alias: nil, trust: .stranger)
        let text = NotificationText(hexes: [one])
        #expect(text?.summary == "Request from cyd 1A2B3C4D (stranger)" && text?.body == "Look")
        #expect(NotificationText(hexes: [one, one])?.summary == "2 requests from cyd 1A2B3C4D (stranger)")
    }

    @Test("saving files is reported with their number and the folder") func saving() {
        func text(_ first: Int64?, _ last: Int64?) -> String {
            let start = TransferStartResult(first: first, last: last, known: 0, passedOver: 0)
            return NotificationText(saving: start, from: "Ada", to: "/home/a/Down & load").body
        }
        #expect(text(3, 3) == "Saving 1 file to /home/a/Down &amp; load" && text(3, 5) == "Saving 3 files to /home/a/Down &amp; load")
        #expect(text(nil, nil) == "The files are in /home/a/Down &amp; load already")
    }

    @Test("several hexes make one notification of the newest four") func many() {
        let events = (1...7).map { Self.received(Int64($0), "s\($0)") }
        #expect(NotificationText(hexes: events)?.summary == "7 hexes from Ada")
        #expect(NotificationText(hexes: events)?.body == "s4\ns5\ns6\ns7\nand 3 more")
        let mixed = [Self.received(1, "s1"), Self.received(2, "s2", from: Self.bob, alias: "Bob")]
        #expect(NotificationText(hexes: mixed)?.summary == "2 hexes from 2 peers")
        #expect(NotificationText(hexes: mixed)?.body == "Ada: s1\nBob: s2")
        #expect(NotificationText(hexes: []) == nil)
    }

    @Test("requests of devices, pairing requests and identity conflicts") func others() throws {
        func event(_ type: String, _ tag: PeerSummary?) -> EventJSON {
            EventJSON(number: 1, at: Timestamp(milliseconds: 0), type: type, peer: Self.ada, tag: tag)
        }
        let tag = PeerSummary(name: "cyd", alias: nil, trust: .stranger)
        #expect(NotificationText(event("pairing.requested", tag))?.summary == "cyd 1A2B3C4D wants to pair")
        #expect(NotificationText(event("conflict.identity", nil))?.summary == "Another machine uses the identity of this one")
        #expect(NotificationText(event("conflict.identity", tag))?.summary == "Two machines use the identity of cyd 1A2B3C4D")
        #expect(NotificationText(event("peer.up", tag)) == nil)
        var asked = event("device.asked", tag)
        asked.data = try JSONValue(parsing: Array(#"{"bytes":"12000000","files":"3","name":"cyd","request":"4"}"#.utf8))
        let text = try #require(NotificationText(asked))
        #expect(text.summary == "cyd 1A2B3C4D wants to send you 3 files (11.4 MiB)")
        #expect(text.body.contains("`hexlist transfers accept 4`"))
    }
}

@Suite("Cards on the command line") struct PeerCardTests {
    @Test("`peer add` reads a card; a damaged one is refused with advice, another text is a URI") func cards() throws {
        let card = try Card(
            of: IdentitySigner(P256.Signing.PrivateKey()), sealingKey: SealingPrivateKey(seed: Array(repeating: 1, count: 32)))
        #expect(try PeerAddCommand.card(card.text) == card)
        #expect(try PeerAddCommand.card("hexlist://peer/AA") == nil)
        for damaged in [String(card.text.dropLast()), String(card.text.dropLast(4)) + "AAAA", "hexlist-card-1:"] {
            let error = #expect(throws: HexlistError.self) { try PeerAddCommand.card(damaged) }
            #expect(error?.code == .badRequest && error?.hint?.contains("hexlist id --card") == true)
        }
    }
}

@Suite("URIs of peers") struct PeerURITests {
    // swift-format-ignore: NeverForceUnwrap
    private static let fingerprint = Fingerprint(bytes: [UInt8](repeating: 0xAB, count: 32))!

    @Test("a URI is unchanged by writing and reading") func roundTrip() throws {
        let uris = [
            PeerURI(fingerprint: Self.fingerprint),
            PeerURI(fingerprint: Self.fingerprint, name: "Ada's “PC” & more=1%", addresses: ["192.168.1.5:24391", "[fe80::1%eth0]:24391"]),
            PeerURI(fingerprint: Self.fingerprint, name: "日本\n"),
        ]
        for uri in uris { #expect(try PeerURI(uri.text) == uri) }
        #expect(uris[0].text == "hexlist://peer/" + String(repeating: "AB", count: 32))
        #expect(uris[1].text.hasSuffix("&address=192.168.1.5:24391&address=[fe80::1%25eth0]:24391"))
    }

    @Test("unknown members are ignored, and the length is bounded") func tolerant() throws {
        let start = "HEXLIST://peer/" + String(repeating: "AB", count: 32)
        #expect(try PeerURI(start + "?later=1&name=x").name == "x")
        let many = start + "?" + (1...20).map { "address=h\($0):1" }.joined(separator: "&")
        #expect(try PeerURI(many).addresses.count == 8)
        #expect(try PeerURI(start + "?name=" + String(repeating: "x", count: 1_000)).name.utf8.count == ProtocolLimits.nameBytes)
    }

    @Test(
        "an invalid peer URI is refused with a reason",
        arguments: [
            ("", "begin"), ("https://peer/ab", "begin"), ("hexlist://peer/ab", "64"), ("hexlist://hex/1", "begin"),
            ("hexlist://peer/" + String(repeating: "g", count: 64), "something else"),
            ("hexlist://peer/" + String(repeating: "é", count: 32), "something else"),
            ("hexlist://peer/" + String(repeating: "ab", count: 31), "it has 62."),
            ("hexlist://peer/" + String(repeating: "ab", count: 32) + "?name", "name"),
            ("hexlist://peer/" + String(repeating: "ab", count: 32) + "?name=%zz", "name=%zz"),
            ("hexlist://peer/" + String(repeating: "ab", count: 32) + "?name=%ff", "name=%ff"),
            ("hexlist://peer/" + String(repeating: "ab", count: 5_000), "begin"),
        ]) func refused(text: String, word: String)
    {
        let error = #expect(throws: HexlistError.self) { try PeerURI(text) }
        #expect(error?.code == .badRequest && error?.message.contains(word) ?? false, "\(error?.message ?? "")")
    }
}

@Suite("Adding a peer by its URI") struct PeerAddTests {
    // swift-format-ignore: NeverForceUnwrap
    private static let uri = PeerURI(
        fingerprint: Fingerprint(bytes: [UInt8](repeating: 0xAB, count: 32))!, name: "Bob", addresses: ["10.0.0.9:24391"])

    private static func known(_ alias: String?, _ trust: Trust) -> PeerView {
        PeerView(
            uuid: uri.fingerprint.peerID, name: "ada", alias: alias, state: .away, trust: trust, fingerprint: uri.fingerprint)
    }

    @Test("the prompt shows the alias, name and trust of a known key") func lines() {
        let stranger = PeerAddCommand.lines(Self.uri, nil)
        #expect(stranger.first == "peer         Bob ABABABAB (stranger)" && stranger.last == "address      10.0.0.9:24391")
        #expect(!stranger.contains { $0.hasPrefix("known here") })
        let trusted = PeerAddCommand.lines(Self.uri, Self.known("Alice", .trusted))
        #expect(trusted[1] == "known here   as Alice, trusted" && !trusted[0].contains("stranger"))
        #expect(PeerAddCommand.lines(Self.uri, Self.known(nil, .stranger))[1] == "known here   as ada, stranger")
    }

    @Test("an existing alias stays unless a new one is given") func alias() {
        let plain = Self.uri
        #expect(PeerAddCommand.alias(nil, plain, nil) == "Bob")
        #expect(PeerAddCommand.alias(nil, plain, Self.known(nil, .stranger)) == "Bob")
        #expect(PeerAddCommand.alias(nil, plain, Self.known("Alice", .trusted)) == nil)
        #expect(PeerAddCommand.alias("Carol", plain, Self.known("Alice", .trusted)) == "Carol")
        #expect(PeerAddCommand.alias(nil, PeerURI(fingerprint: plain.fingerprint), nil) == nil)
    }

    @Test("a refusal because of the alias says so; others do not") func hints() {
        let taken = BulkRefusal(line: 1, code: "aliasTaken", message: "Its alias is that of peer X here.")
        let malformed = BulkRefusal(line: 1, code: "malformed", message: "`x` is no `host:port`.")
        #expect(PeerAddCommand.refused(taken, alias: "Bob").hint?.contains("--alias") == true)
        #expect(PeerAddCommand.refused(malformed, alias: "Bob").hint?.contains("--alias") == false)
        #expect(PeerAddCommand.refused(malformed, alias: "a\nb").hint?.contains("--alias") == true)
    }
}

@Suite("Times and colours for people") struct HumanTests {
    @Test(
        "how long ago",
        arguments: [
            (0, "just now"), (119, "just now"), (-30, "just now"), (120, "2 min ago"), (3_599, "59 min ago"), (3_600, "1 h ago"),
            (86_399, "23 h ago"), (86_400, "1 d ago"), (7 * 86_400 - 1, "6 d ago"),
        ]) func ago(seconds: Int64, text: String)
    {
        let now = Timestamp(milliseconds: 1_700_000_000_000)
        #expect(HumanText.ago(Timestamp(milliseconds: now.milliseconds - seconds * 1_000), now: now) == text)
    }

    @Test("over a week ago, and in the future: the absolute time") func far() {
        let now = Timestamp(milliseconds: 1_700_000_000_000)
        for days: Int64 in [7, 400, -2] {
            let moment = Timestamp(milliseconds: now.milliseconds - days * 86_400_000)
            #expect(HumanText.ago(moment, now: now) == HumanText.time(moment))
        }
    }

    @Test("a swatch is coloured if the terminal supports it") func swatches() {
        func swatch(_ color: String, _ palette: Terminal.Palette, hasColor: Bool = true) -> String? {
            let terminal = Terminal(isInteractive: true, hasColor: hasColor, width: 80, palette: palette)
            return terminal.swatch(color).map { terminal.styled("x", $0) }
        }
        #expect(swatch("#3366CC", .all) == "\u{1B}[38;2;51;102;204mx\u{1B}[0m")
        #expect(swatch("#fff", .all) == "\u{1B}[38;2;255;255;255mx\u{1B}[0m")
        #expect(swatch("#ff0000", .indexed) == "\u{1B}[38;5;196mx\u{1B}[0m")
        #expect(swatch("#000000", .indexed) == "\u{1B}[38;5;16mx\u{1B}[0m")
        for color in ["", "#", "#12345", "red", "#12345g", "#1234567", "#\u{1B}[2J", "３３３"] { #expect(swatch(color, .all) == nil) }
        #expect(swatch("#3366CC", .few) == nil)
        #expect(swatch("#3366CC", .all, hasColor: false) == nil)
        #expect(Terminal.palette("truecolor", "xterm") == .all && Terminal.palette("", "xterm-256color") == .indexed)
        #expect(Terminal.palette("", "xterm") == .few)
    }
}
