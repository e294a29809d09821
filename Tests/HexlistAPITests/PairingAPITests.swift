import DaemonTestSupport
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel
import Testing

@testable import HexlistDaemon

@Suite("Pairing in the local API", .serialized, .timeLimit(.minutes(5)))
struct PairingAPITests {
    /// Waits on the event stream until the pairings satisfy a condition.
    private static func found<Value>(_ client: HexlistClient, _ look: (PairingOverview) -> Value?) async throws -> Value {
        var value: Value?
        try await client.watchPairings { pairings in
            value = look(pairings)
            return value == nil
        }
        return try #require(value)
    }

    @Test("from request to trust, as seen on the event stream")
    func agreement() async throws {
        try await TestDaemon.with("one", "two") { daemons in
            let (one, two) = (daemons[0], daemons[1])
            try await one.awaitPeers(1)
            try await two.awaitPeers(1)
            #expect(try await one.client.pairings() == PairingOverview(items: []))
            let opened = try await two.client.openPairing()
            #expect(opened.openUntil != nil && opened.items.isEmpty)
            let asked = try await one.client.pair(with: "two")
            #expect(asked.isOwn && asked.peer == two.uuid && asked.until != nil)
            let here = try await Self.found(one.client) { $0.items.last { $0.state == .comparing } }
            let there = try await Self.found(two.client) { $0.items.last { $0.state == .comparing } }
            #expect(here.digits == there.digits && !there.isOwn && there.name == "one")
            #expect(there.fingerprint == one.node.identity.fingerprint.description)
            let digits = try #require(here.digits)

            let confirmed = try await one.client.confirmPairing(with: two.uuid, digits: digits, id: here.id)
            #expect(confirmed.state == .confirmed && confirmed.digits == digits)
            _ = try await two.client.confirmPairing(with: one.uuid, digits: digits)
            for (daemon, peer) in [(one, two), (two, one)] {
                let end = try await Self.found(daemon.client) { $0.items.last { $0.state.isFinal } }
                #expect(end.state == .paired && end.peer == peer.uuid && end.reason == nil)
                #expect(try await daemon.client.peer(peer.uuid).trust == "trusted")
            }
            #expect(try await two.client.pairings().openUntil == nil)
        }
    }

    @Test("an invalid request is reported, and no pairing fails because of it")
    func wrong() async throws {
        try await TestDaemon.with("one", "two") { daemons in
            let (one, two) = (daemons[0], daemons[1])
            try await one.awaitPeers(1)
            _ = try await two.client.openPairing()
            _ = try await one.client.pair(with: "two")
            let here = try await Self.found(one.client) { $0.items.last { $0.state == .comparing } }
            for digits in ["", "12345", "1234567", "12 345", "12345a", "١٢٣٤٥٦"] {
                await #expect { try await one.client.confirmPairing(with: "two", digits: digits) } throws: {
                    ($0 as? HexlistError)?.code == .badRequest
                }
            }
            for (code, body) in [
                (HexlistError.Code.notFound, { try await one.client.pair(with: "nobody") }),
                (.gone, { try await one.client.confirmPairing(with: "two", digits: "123456", id: 0) }),
                (.notFound, { try await one.client.confirmPairing(with: "two", digits: "123456", id: here.id + 7) }),
            ] as [(HexlistError.Code, () async throws -> PairingView)] {
                await #expect { try await body() } throws: { ($0 as? HexlistError)?.code == code }
            }
            #expect(try await one.client.pairings().items == [here])

            #expect(try await one.client.rejectPairing(with: "two").reason == "rejected")
            let end = try await Self.found(two.client) { $0.items.last { $0.state == .ended } }
            #expect(end.reason == "refused")
            #expect(try await two.client.closePairing().openUntil == nil)
            await #expect { try await two.client.rejectPairing(with: one.uuid) } throws: { ($0 as? HexlistError)?.code == .notFound }
        }
    }

    @Test("pairing values are the same after encoding and decoding")
    func shapes() throws {
        let pairing = PairingView(
            id: 7, peer: PeerID(UUIDBytes(high: 1, low: 2)), name: "n", fingerprint: Fingerprint(bytes: [UInt8](repeating: 1, count: 32)),
            isOwn: true, state: .ended, digits: "012345", reason: .lost, message: "m",
            until: Timestamp(milliseconds: 1_000))
        let list = PairingOverview(openUntil: Timestamp(milliseconds: 5), items: [pairing])
        #expect(try PairingOverview(jsonBytes: list.jsonBytes) == list)
        #expect(try PairingRequest(jsonBytes: PairingRequest(peer: "x").jsonBytes) == PairingRequest(peer: "x"))
        #expect(try PairingConfirmation(jsonBytes: PairingConfirmation(digits: "000001", id: 3).jsonBytes).id == 3)
        #expect(throws: JSONFault.self) { try PairingRequest(jsonBytes: Array(#"{"pear":"x"}"#.utf8)) }
    }
}
