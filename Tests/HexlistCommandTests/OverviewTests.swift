import HexlistAPI
import HexlistJSON
import HexlistModel
import Testing

@testable import hexlist

@Suite("hexlist without a command")
struct NewsTests {
    // swift-format-ignore: NeverForceUnwrap
    private static let fingerprint = Fingerprint(bytes: [UInt8](repeating: 0xAB, count: 32))!
    private static let other = PeerID(UUIDBytes(high: 0x1A2B_3C4D_0000_8000, low: 0x8000_0000_0000_0002))

    private static func status(unread: Int = 0, held: Int = 0, outbox: [OutboxState: Int] = [:], fault: String? = nil) -> StatusJSON {
        StatusJSON(
            version: "1", uuid: PeerID(UUIDBytes(high: 0x0A0B_0C0D_0000_8000, low: 0x8000_0000_0000_0001)), name: "ada",
            fingerprint: fingerprint, pid: 1, port: 2, uptimeSeconds: 3,
            avahi: DiscoveryStatus(state: .running), peers: 0, ghosts: 0, unread: unread, held: held, outbox: outbox, storeBytes: 1,
            configurationFault: fault, stateFolder: "/s")
    }

    private static func peer(_ name: String, alias: String? = nil, _ trust: Trust, _ state: PeerView.State = .verified) -> PeerView {
        PeerView(
            uuid: other, name: name, alias: alias, state: state, trust: trust, endpoints: [],
            unread: 0)
    }

    private static let pairing = PairingView(
        id: 1, peer: other, name: "cyd", isOwn: false, state: .comparing, digits: "040660")

    @Test("a list of peers is followed by a sentence if discovery does not work") func discovery() {
        for state in [DiscoveryState.running, .starting, .off] { #expect(PeersText.discovery(DiscoveryStatus(state: state)) == nil) }
        let text = PeersText.discovery(DiscoveryStatus(state: .unavailable, message: "avahi-daemon does not run."))
        #expect(text?.contains("avahi-daemon does not run.") == true && text?.contains("`hexlist doctor`") == true)
        #expect(PeersText.discovery(DiscoveryStatus(state: .degraded)) != nil)
    }

    @Test("a hidden machine asks, because others do not find it") func hidden() {
        var own = Self.status()
        #expect(PairText.accepting(own).contains("On the other machine, run `hexlist pair 0A0B0C0D`"))
        own.announce = false
        #expect(PairText.accepting(own).contains("Run `hexlist pair` on the other machine and `hexlist pair NAME` here"))
        #expect(!PairText.accepting(own).contains("0A0B0C0D"))
    }

    @Test("a deletion says what can be brought back") func finality() {
        #expect(DeleteCommand.finality(own: 0, of: 2) == "This cannot be undone.")
        #expect(DeleteCommand.finality(own: 2, of: 2) == "They can be brought back for 60 days.")
        #expect(DeleteCommand.finality(own: 1, of: 2) == "Only those of My Hexlist can be brought back.")
    }

    @Test("each kind of news has a line")
    func new() {
        let news = Overview(
            Self.status(unread: 2, held: 1, outbox: [.queued: 3, .held: 1, .failed: 1, .stored: 9], fault: "line 1"),
            PairingOverview(items: [Self.pairing]), [])
        #expect(
            news.new == [
                .init(text: "cyd 1A2B3C4D wants to pair", command: "hexlist pair --confirm 1A2B3C4D CODE"),
                .init(text: "2 unread", command: "hexlist inbox --unread"),
                .init(text: "1 waiting for your approval, from strangers", command: "hexlist inbox --held"),
                .init(text: "3 waiting to be sent", command: "hexlist outbox"), .init(text: "1 not delivered", command: "hexlist outbox"),
                .init(text: "something is wrong", command: "hexlist doctor"),
            ])
    }

    @Test("links that another machine deleted are news, with the command that restores them") func deletions() throws {
        let data = try JSONValue(parsing: Array(#"{"changes":"951 952","links":"812","of":"3000"}"#.utf8))
        let deletion = EventJSON(
            number: 1, at: Timestamp(milliseconds: 0), type: "list.deleted", peer: Self.other,
            tag: PeerSummary(name: "lap", alias: "laptop2", trust: .trusted), data: data)
        let news = Overview(Self.status(), PairingOverview(items: []), [], deletions: [deletion])
        #expect(news.new == [.init(text: "laptop2 deleted 812 of 3 000 links", command: "hexlist mine undo 951 952")])
    }

    @Test("offers of shared hexes and the end of a sharing are news") func sharing() throws {
        func offer(_ number: Int64) -> SharedHexOffer {
            SharedHexOffer(
                number: number, list: "l", uuid: Self.other, tag: PeerSummary(name: "ada", alias: "ada", trust: .trusted), title: "Reading",
                access: .write, hexes: 0, links: 212, at: Timestamp(milliseconds: 0))
        }
        let text = "ada wants to share \"Reading\" (212 links; you can edit it)"
        let one = Overview(Self.status(), PairingOverview(items: []), [], offers: [offer(4)])
        #expect(one.new == [.init(text: text, command: "hexlist mine join")])
        let many = Overview(Self.status(), PairingOverview(items: []), [], offers: (1...5).map(offer))
        #expect(many.new.count == 4 && many.new[1] == .init(text: text, command: "hexlist mine join 2"))
        #expect(many.new[3] == .init(text: "2 more offers", command: "hexlist mine join"))
        let data = try JSONValue(parsing: Array(#"{"title":"Reading","access":"read","hex":"41","rejected":"3","copy":"44"}"#.utf8))
        let ended = EventJSON(
            number: 1, at: Timestamp(milliseconds: 0), type: "list.ended", peer: Self.other,
            tag: PeerSummary(name: "ada", alias: "ada", trust: .trusted), data: data)
        let news = Overview(Self.status(), PairingOverview(items: []), [], ended: [ended])
        #expect(
            news.new == [
                .init(
                    text: "ada made \"Reading\" read-only; 3 changes were not accepted", command: "hexlist show 44")
            ])
    }

    @Test("shared hexes with new links are listed, and those that are shared again") func sharedHexes() throws {
        func shared(_ number: Int64) -> SharedHexView {
            SharedHexView(
                list: "l\(number)", hex: number, title: "Reading", owned: true, access: .write, hexes: 0, links: 9, peers: [],
                new: Int(number))
        }
        let data = try JSONValue(parsing: Array(#"{"title":"Trips","access":"write","hex":"41"}"#.utf8))
        let resumed = EventJSON(
            number: 1, at: Timestamp(milliseconds: 0), type: "list.resumed", peer: Self.other,
            tag: PeerSummary(name: "ada", alias: "ada", trust: .trusted), data: data)
        let news = Overview(Self.status(), PairingOverview(items: []), [], resumed: [resumed], unseen: (1...5).map(shared))
        #expect(news.new.first == .init(text: "1 new link in \"Reading\"", command: "hexlist show 1"))
        #expect(news.new[2] == .init(text: "3 new links in \"Reading\"", command: "hexlist show 3"))
        #expect(news.new[3] == .init(text: "new links in 2 more shared hexes", command: "hexlist mine share"))
        #expect(news.new[4] == .init(text: "ada shares \"Trips\" with you again", command: "hexlist show 41"))
    }

    @Test("a trusted peer with a conflicting identity is listed; held hexes count as strangers' unless a policy holds them")
    func conflict() {
        var twice = Self.peer("Bob", alias: "Bob", .trusted, .ghost)
        twice.reason = "conflict"
        #expect(twice.isTwice)
        var held = Self.peer("Cyd", alias: "Cyd", .trusted, .away)
        held.receive = ForwardCompatibleEnum(PeerReceiveSetting.held)
        let news = Overview(Self.status(held: 1), PairingOverview(items: []), [twice, held])
        #expect(
            news.new == [
                .init(text: "two machines use the identity of Bob", command: "hexlist peers --why"),
                .init(text: "1 waiting for your approval", command: "hexlist inbox --held"),
            ])
        var stranger = Self.peer("Eve", .stranger, .ghost)
        stranger.reason = "conflict"
        let here = Self.peer("Dan", alias: "Dan", .trusted)
        #expect(PeersText.listed([here, stranger, held, twice], all: false).map(\.name) == ["Dan", "Bob", "Cyd"])
        #expect(PeersText.twice(twice).contains("hexlist id rotate") && PeersText.twice(twice).contains("two minutes"))
    }

    @Test("absent trusted peers and running transfers are shown")
    func away() {
        let away = Self.peer("Bob", alias: "Bob", .trusted, .away)
        let alone = Overview(Self.status(), PairingOverview(items: []), [away, away], fetches: true)
        #expect(alone.heading == "ada sees no peers; 2 trusted peers are away.")
        #expect(alone.new == [.init(text: "files being downloaded", command: "hexlist transfers")])
        let two = Overview(Self.status(), PairingOverview(items: []), [away, Self.peer("Dan", .trusted), Self.peer("Eve", .stranger)])
        #expect(two.heading == "ada sees 2 peers, 1 trusted; 1 trusted peer is away.")
    }

    @Test(
        "the suggested next step depends on the peers that are online",
        arguments: [
            ([], "hexlist doctor"), ([peer("cyd", .stranger)], "hexlist pair 1A2B3C4D"),
            ([peer("Bob", alias: "Bob's", .trusted)], #"hexlist send --to 'Bob'\''s' https://example.org"#),
            ([peer("x", .blocked)], "hexlist doctor"), ([peer("Bob", alias: "Bob", .trusted, .away)], "hexlist doctor"),
        ] as [([PeerView], String)])
    func next(peers: [PeerView], command: String) {
        let news = Overview(Self.status(), PairingOverview(items: []), peers)
        #expect(news.new.isEmpty)
        #expect(news.next.first?.command == command)
        #expect(news.next.last?.command == "hexlist --help")
    }
}
