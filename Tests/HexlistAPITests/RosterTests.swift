import DaemonTestSupport
import HexlistAPI
import HexlistEnvelope
import HexlistModel
import Testing

@testable import HexlistDaemon

@Suite("Rosters", .timeLimit(.minutes(5)))
struct RosterTests {
    /// Returns the roster line of a peer whose key is derived from a number.
    private func peer(
        _ number: UInt8, name: String = "n", alias: String? = nil, trust: String = "trusted", addresses: [String] = []
    ) throws -> RosterPeer {
        let key = try #require(Fingerprint(bytes: [UInt8](repeating: number, count: 32)))
        return RosterPeer(
            uuid: key.peerID.description, fingerprint: key.description, name: name, alias: alias, trust: trust, addresses: addresses)
    }

    @Test("a roster transfers trust, blocks and aliases; the own entry is skipped; a second import changes nothing")
    func roundTrip() async throws {
        try await TestDaemon.with("ada", "bob", "eve") { daemons in
            let (ada, bob, eve) = (daemons[0], daemons[1], daemons[2])
            for daemon in daemons { try await daemon.awaitPeers(2) }
            #expect(try await ada.client.exportRoster().isEmpty)
            _ = try await ada.client.trust(bob.uuid, fingerprint: nil)
            _ = try await ada.client.rename(eve.uuid, alias: "the other")
            _ = try await ada.client.block(eve.uuid)
            let roster = try await ada.client.exportRoster()
            #expect(roster.split(separator: 0x0A).count == 2)

            #expect(try await bob.client.importRoster(roster) == RosterImportResult(changed: 1, own: 1))
            #expect(try await bob.client.importRoster(roster) == RosterImportResult(unchanged: 1, own: 1))
            let blocked = try await bob.client.peer("the other")
            #expect((blocked.uuid?.description, blocked.trust) == (eve.uuid, "blocked"))
            #expect(try await bob.client.peer(ada.uuid).trust == "stranger")
        }
    }

    @Test("an unknown peer is imported with key, alias and addresses, and exported unchanged")
    func neverMet() async throws {
        try await TestDaemon.with("ada") { daemons in
            let ada = daemons[0].client
            let met = try peer(1, name: "carl", alias: "c", addresses: ["192.0.2.1:24391", "[2001:db8::1]:4", "carl.example.org:5"])
            #expect(try await ada.importRoster(met.lineBytes) == RosterImportResult(changed: 1))
            let shown = try await ada.peer("c")
            #expect((shown.state, shown.trust, shown.fingerprint?.description) == (.away, "trusted", met.fingerprint))
            #expect(shown.endpoints.allSatisfy { $0.lastOK == nil })
            let exported = try RosterPeer(jsonBytes: try await ada.exportRoster())
            #expect(Set(exported.addresses) == Set(met.addresses))
            #expect((exported.uuid, exported.fingerprint, exported.alias) == (met.uuid, met.fingerprint, "c"))
            #expect(try await ada.importRoster(met.lineBytes) == RosterImportResult(unchanged: 1))
            // Peers known by name only, and strangers without an alias, are not exported.
            #expect(try await ada.importRoster(try peer(2, name: "carl", trust: "stranger").lineBytes) == RosterImportResult(unchanged: 1))
            #expect(try await ada.peers(all: true).filter { $0.state == .away }.map(\.uuid?.description) == [met.uuid])
        }
    }

    @Test("the card of a peer that was never met is imported and exported; a damaged or foreign one refuses the line")
    func cards() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0].client, daemons[1].client)
            let keys = try await bob.ownKeys()
            let card = try #require(Card(text: keys.card))
            #expect(keys.uuid.description == daemons[1].uuid && card.fingerprint.peerID == keys.uuid)
            #expect(keys.certificate.hasPrefix("-----BEGIN CERTIFICATE-----\n") && !keys.certificate.contains("PRIVATE"))
            var line = RosterPeer(
                uuid: keys.uuid.description, fingerprint: card.fingerprint.description, name: "bob", trust: "trusted", card: card.base64)
            #expect(try await ada.importRoster(line.lineBytes) == RosterImportResult(changed: 1))
            #expect(try RosterPeer(jsonBytes: try await ada.exportRoster()).card == card.base64)
            #expect(try await ada.importRoster(line.lineBytes) == RosterImportResult(unchanged: 1))
            line.card = String(card.base64.dropLast(4)) + "AAA="
            #expect(try await ada.importRoster(line.lineBytes).refused.map(\.code) == ["malformed"])
            line.card = try Card(text: await ada.ownKeys().card)?.base64
            #expect(try await ada.importRoster(line.lineBytes).refused.map(\.code) == ["wrongKey"])
        }
    }

    @Test("a bad line is refused with its number and reason; the other lines are imported")
    func refusals() async throws {
        try await TestDaemon.with("ada") { daemons in
            let ada = daemons[0].client
            let good = try peer(1, alias: "one")
            var lines = [good.jsonText, ""]
            var wrong = try peer(2)
            wrong.uuid = good.uuid
            lines.append(wrong.jsonText)  // line 3
            wrong = try peer(2)
            wrong.fingerprint.removeLast()
            lines.append(wrong.jsonText)  // line 4
            lines.append(try peer(3, alias: "one").jsonText)  // line 5
            lines.append(try peer(4, trust: "friend\\u001b[2J").jsonText)  // line 6
            lines.append(try peer(5, addresses: ["fe80::1%eth0"]).jsonText)  // line 7
            lines.append(try peer(6, alias: "\u{202E}x").jsonText)  // line 8
            lines.append("{\"uuid\":1}")  // line 9
            lines.append(try peer(7).jsonText + String(repeating: " ", count: LocalAPI.bodyBytes))  // line 10
            lines.append(try peer(8).jsonText.replacing("\"trust\"", with: "\"Trust\""))  // line 11
            let last = try peer(9)
            lines.append(last.jsonText)
            let done = try await ada.importRoster(Array(lines.joined(separator: "\n").utf8))
            #expect(done.changed == 2)
            #expect(done.refused.map(\.line) == Array(3...11))
            let codes = [
                "wrongKey", "malformed", "aliasTaken", "malformed", "malformed", "malformed", "malformed", "tooLarge", "malformed",
            ]
            #expect(done.refused.map(\.code) == codes)
            #expect(done.refused.allSatisfy { TerminalText.clean($0.message) == $0.message })
            let known = try await ada.peers(all: true).filter { $0.state == .away }
            #expect(Set(known.compactMap(\.uuid?.description)) == [good.uuid, last.uuid])

            // A different key for a known UUID.
            var other = last
            other.fingerprint = other.fingerprint.dropLast(2) + "00"
            #expect(try await ada.importRoster(other.lineBytes).refused.map(\.code) == ["wrongKey"])
        }
    }

    @Test("an alias that only this version refuses does not invalidate its line")
    func oldAlias() throws {
        #expect(try RosterReader(Array(try peer(1, alias: "cafe").jsonText.utf8)).entries.map(\.entry.alias) == ["cafe"])
    }

    @Test("a roster over the maximum number of peers is refused as a whole")
    func tooMany() throws {
        let line = Array("{}\n".utf8)
        let most = [[UInt8]](repeating: line, count: LocalAPI.rosterEntries).flatMap(\.self)
        #expect(try RosterReader(most).refusals.count == LocalAPI.rosterEntries)
        #expect(throws: HexlistError.self) { try RosterReader(most + line) }
    }
}

extension RosterReader {
    /// Imports a roster that arrives in two chunks.
    fileprivate init(_ bytes: [UInt8]) throws(HexlistError) {
        self.init()
        for piece in [bytes.prefix(bytes.count / 2), bytes.dropFirst(bytes.count / 2)] {
            let result = piece.withUnsafeBytes { piece in Result { () throws(HexlistError) in try feed(piece) } }
            try result.get()
        }
        try finish()
    }
}
