import Foundation
import HexlistModel
import Testing

extension TwoMachines {
    @Suite("Trust")
    struct TrustOnTheNetwork {
        @Test("a stranger's hexes are held; trusting it moves them to the inbox in order")
        func heldUntilTrusted() async throws {
            try await Lab.with("h1", "h2") { lab in
                let uuid = try await lab.startAndMeet()
                for number in 1...3 {
                    let sent: [SendRow] = try await lab.rows(
                        "h1", "send", "--to", uuid.other, "--timeout", "\(Patience.state)s", "--description", "\(number)",
                        "https://example.org/\(number)",
                        expecting: 3)
                    #expect(sent.map(\.state) == ["held"])
                }
                #expect(try await lab.rows("h2", "inbox", as: HexRow.self).isEmpty)
                let held: [HexRow] = try await lab.rows("h2", "inbox", "--held")
                #expect(held.map(\.description) == ["3", "2", "1"])
                #expect(held.allSatisfy { $0.location == "held" && $0.peerUUID == uuid.one })
                #expect(try await lab.status("h2").held == 3)

                try await lab.hexlist("h2", "peer", "trust", uuid.one)
                let inbox: [HexRow] = try await lab.rows("h2", "inbox")
                #expect(inbox.map(\.description) == ["3", "2", "1"])
                #expect(inbox.allSatisfy { $0.location == "inbox" && $0.unread })
                let status = try await lab.status("h2")
                #expect((status.held, status.unread) == (0, 3))
                let events: [EventRow] = try await lab.rows("h2", "events", "--limit", "0")
                #expect(events.filter { $0.type == "hex.held" }.count == 3)
                #expect(events.filter { $0.type == "hex.received" }.count == 3)
                #expect(events.map(\.number) == (0..<Int64(events.count)).map { $0 + (events.first?.number ?? 0) })
            }
        }

        @Test("a blocked peer is refused and notified; unblocked, it is a stranger again")
        func blocked() async throws {
            try await Lab.with("h1", "h2") { lab in
                let uuid = try await lab.startAndMeet()
                try await lab.hexlist(
                    "h1", "send", "--to", uuid.other, "--timeout", "\(Patience.state)s", "https://example.org/held", expecting: 3)
                try await lab.hexlist("h2", "peer", "block", uuid.one)
                #expect(try await lab.rows("h2", "inbox", "--held", as: HexRow.self).isEmpty)
                let sent: [SendRow] = try await lab.rows(
                    "h1", "send", "--to", uuid.other, "--timeout", "\(Patience.state)s", "https://example.org/refused", expecting: 4)
                #expect(sent.map(\.state) == ["rejected"])
                #expect(sent.map(\.code) == ["blocked"])
                #expect(try await lab.rows("h2", "inbox", "--held", as: HexRow.self).isEmpty)

                let before = try await lab.lastEvent("h1")
                try await lab.hexlist("h2", "peer", "unblock", uuid.one)
                try await lab.stop("h1")
                try await lab.start("h1")
                try await lab.awaitEvent("h1", "peer.up", peer: uuid.other, after: before)
                try await lab.awaitPeers("h1")
                try await lab.hexlist(
                    "h1", "send", "--to", uuid.other, "--timeout", "\(Patience.state)s", "https://example.org/held", expecting: 3)
            }
        }

        @Test("a name shared by two strangers is ambiguous, an unknown one is not found, and a UUID always works")
        func names() async throws {
            try await Lab.with("h1", "h2", "h3") { lab in
                try await lab.configure("h2", "name: twin\n")
                try await lab.configure("h3", "name: twin\n")
                try await lab.start("h1", "h2", "h3")
                try await lab.awaitPeers("h1", 2)
                let (two, three) = (try await lab.uuid("h2"), try await lab.uuid("h3"))

                let ambiguous = try await lab.hexlist("h1", "send", "--to", "twin", "https://example.org/", expecting: 6)
                #expect(ambiguous.err.contains(two.prefix(8)))
                #expect(ambiguous.err.contains(three.prefix(8)))
                let unknown = try await lab.hexlist("h1", "send", "--to", "nobody", "https://example.org/", expecting: 6)
                #expect(unknown.err.contains("nobody"))
                #expect(unknown.err.contains("hexlist peers"))
                #expect(try await lab.status("h1").outbox.values.allSatisfy { $0 == 0 })

                try await lab.hexlist("h1", "send", "--to", two, "https://example.org/", expecting: 3)
                // Once one of the two is trusted, the name refers to that one.
                try await lab.hexlist("h1", "peer", "trust", two)
                let sent: [SendRow] = try await lab.rows("h1", "send", "--to", "twin", "https://example.org/", expecting: 3)
                #expect(sent.map(\.peer) == [two])
                // Without a terminal for the prompt eight digits are not enough.
                try await lab.hexlist("h1", "peer", "trust", String(three.prefix(8)), expecting: 2)
            }
        }

        @Test("a roster imported on another machine trusts the same keys before they ever met, and no others")
        func roster() async throws {
            try await Lab.with("h1", "h2", "h3") { lab in
                let uuid = try await lab.startAndMeet()
                try await lab.hexlist("h1", "peer", "trust", uuid.other)
                try await lab.hexlist("h1", "peer", "rename", uuid.other, "bob")
                let roster = try await lab.hexlist("h1", "peers", "export").out
                let lines = roster.split(separator: "\n").map(String.init)
                #expect(lines.count == 1)
                let line = try #require(lines.first)
                let key = try #require(JSONLines.member("fingerprint", of: line)).filter { $0 != "\"" }
                #expect(line.contains(uuid.other) && line.contains(#""alias":"bob""#) && line.contains(#""trust":"trusted""#))
                // An entry with h1's name and another key.
                let name = try await lab.status("h1").name
                let ownKey = try #require(JSONLines.member("fingerprint", of: try await lab.hexlist("h1", "id", "--json").out)).filter {
                    $0 != "\""
                }
                let other = """
                    {"uuid":"88888888-8888-8888-8888-888888888888","fingerprint":"\(String(repeating: "8", count: 64))",\
                    "name":"\(name)","trust":"trusted"}
                    """
                // An entry whose key does not match its UUID.
                let wrong = line.replacingOccurrences(of: key, with: ownKey)
                try await lab.stop("h2")

                try await lab.start("h3")
                let taken = try await lab.run(
                    ["hexlist", "h3", "peers", "import", "-"], input: Array("\(line)\n\n\(other)\n\(wrong)\n".utf8), expecting: 2)
                #expect(taken.err.contains("line 4: wrongKey"))
                // The remaining announcement of h2 becomes a ghost beside the peer.
                let all: [PeerRow] = try await lab.rows("h3", "peers", "--all")
                let known = all.filter { $0.uuid == uuid.other && $0.state != "ghost" }
                #expect(known.map(\.trust) == ["trusted"])
                #expect(known.map(\.fingerprint) == [key])
                let again = try await lab.run(["hexlist", "h3", "peers", "import", "-"], input: Array(roster.utf8))
                #expect(again.out.contains("0 peers imported, 1 unchanged"))

                try await lab.start("h2")
                let three = try await lab.uuid("h3")
                try await lab.awaitPeers("h2", 2)
                try await lab.awaitPeers("h3", 2)
                let sent: [SendRow] = try await lab.rows("h2", "send", "--to", three, "https://example.org/known")
                #expect(sent.map(\.state) == ["stored"])
                try await lab.awaitPeers("h1", 2)
                let held: [SendRow] = try await lab.rows(
                    "h1", "send", "--to", three, "--timeout", "\(Patience.state)s", "https://example.org/other", expecting: 3)
                #expect(held.map(\.state) == ["held"])
                let met: [PeerRow] = try await lab.rows("h3", "peers")
                #expect(met.filter { $0.uuid == uuid.one }.map(\.trust) == ["stranger"])
                #expect(met.filter { $0.uuid == uuid.one }.map(\.fingerprint) == [ownKey])
            }
        }
    }
}
