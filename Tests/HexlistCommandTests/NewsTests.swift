import HexlistAPI
import HexlistModel
import Testing

@testable import hexlist

@Suite("What hexlist by itself tells")
struct NewsTests {
    private static func status(unread: Int = 0, held: Int = 0, outbox: [OutboxState: Int] = [:], fault: String? = nil) -> StatusShape {
        StatusShape(
            version: "1", uuid: "0A0B0C0D-0000-8000-8000-000000000001", name: "ada", fingerprint: "AB", pid: 1, port: 2, uptimeSeconds: 3,
            avahi: AvahiShape(state: "running"), peers: 0, ghosts: 0, unread: unread, held: held, outbox: outbox, storeBytes: 1,
            configurationFault: fault, stateFolder: "/s")
    }

    private static func peer(_ name: String, alias: String? = nil, _ trust: Trust, _ state: PeerShape.State = .verified) -> PeerShape {
        PeerShape(
            uuid: "1A2B3C4D-0000-8000-8000-000000000002", name: name, alias: alias, state: state, trust: trust.rawValue, endpoints: [],
            unread: 0)
    }

    private static let pairing = PairingShape(
        id: 1, peer: "1A2B3C4D-0000-8000-8000-000000000002", name: "cyd", isOwn: false, state: .comparing, digits: "040660")

    @Test("all that is new has its line")
    func new() {
        let news = News(
            Self.status(unread: 2, held: 1, outbox: [.queued: 3, .held: 1, .failed: 1, .stored: 9], fault: "line 1"),
            PairingsShape(items: [Self.pairing]), [])
        #expect(
            news.new == [
                .init(text: "cyd 1A2B3C4D asks to pair", command: "hexlist pair --confirm 1A2B3C4D CODE"),
                .init(text: "2 unread", command: "hexlist inbox --unread"),
                .init(text: "1 held from strangers", command: "hexlist inbox --held"),
                .init(text: "3 waiting to be sent", command: "hexlist outbox"), .init(text: "1 not delivered", command: "hexlist outbox"),
                .init(text: "something is wrong", command: "hexlist doctor"),
            ])
    }

    @Test(
        "what to try next depends on who is there",
        arguments: [
            ([], "hexlist doctor"), ([peer("cyd", .stranger)], "hexlist pair 1A2B3C4D"),
            ([peer("Bob", alias: "Bob's", .trusted)], #"hexlist send --to 'Bob'\''s' https://example.org"#),
            ([peer("x", .blocked)], "hexlist doctor"), ([peer("Bob", alias: "Bob", .trusted, .away)], "hexlist doctor"),
        ] as [([PeerShape], String)])
    func next(peers: [PeerShape], command: String) {
        let news = News(Self.status(), PairingsShape(items: []), peers)
        #expect(news.new.isEmpty)
        #expect(news.next.first?.command == command)
        #expect(news.next.last?.command == "hexlist --help")
    }
}
