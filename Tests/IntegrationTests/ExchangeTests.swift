import Foundation
import HexlistModel
import Testing

extension TwoMachines {
    @Suite("Exchange")
    struct Exchange {
        @Test("a hex travels each way, is unread, read and deleted, and survives a kill")
        func bothWays() async throws {
            try await Lab.with("h1", "h2") { lab in
                let uuid = try await lab.startAndMeet()
                try await lab.trustEachOther(("h1", uuid.one), ("h2", uuid.other))
                for (from, to, sender, receiver) in [("h1", "h2", uuid.one, uuid.other), ("h2", "h1", uuid.other, uuid.one)] {
                    let sent: [SendRow] = try await lab.rows(
                        from, "send", "--to", receiver, "--description", "From \(from)", "--color", "#3366CC",
                        "https://example.org/a The first", "https://example.org/b")
                    #expect(sent.map(\.state) == ["stored"])
                    #expect(sent.map(\.peer) == [receiver])

                    let inbox: [HexRow] = try await lab.rows(to, "inbox")
                    let hex = try #require(inbox.first)
                    #expect(inbox.count == 1)
                    #expect(hex.messageID == sent.first?.messageID)
                    #expect(hex.peerUUID == sender)
                    #expect(hex.senderUUID == sender)
                    #expect(hex.senderName == from)
                    #expect((hex.description, hex.color, hex.linkCount, hex.unread) == ("From \(from)", "#3366CC", 2, true))
                    #expect(try await lab.status(to).unread == 1)
                    let links = try await lab.show(to, hex.id).row.links
                    #expect(
                        links == [
                            LinkRow(url: "https://example.org/a", linkDescription: "The first", service: "Unknown"),
                            LinkRow(url: "https://example.org/b", linkDescription: "", service: "Unknown"),
                        ])
                    try await lab.hexlist(to, "read", "\(hex.id)")
                    #expect(try await lab.status(to).unread == 0)
                }

                try await lab.kill("h2")
                try await lab.start("h2")
                let inbox: [HexRow] = try await lab.rows("h2", "inbox")
                #expect(inbox.map(\.description) == ["From h1"])
                #expect(inbox.map(\.unread) == [false])
                let hex = try #require(inbox.first)
                try await lab.hexlist("h2", "delete", "\(hex.id)")
                #expect(try await lab.rows("h2", "inbox", as: HexRow.self).isEmpty)
                try await lab.hexlist("h2", "show", "\(hex.id)", expecting: 6)
            }
        }

        @Test("200 links, many scripts and unknown members arrive and are forwarded byte for byte")
        func byteForByte() async throws {
            let hex = LargeHex()
            try await Lab.with("h1", "h2", "h3") { lab in
                try await lab.start("h1", "h2", "h3")
                for host in ["h1", "h2", "h3"] { try await lab.awaitPeers(host, 2) }
                let (one, two, three) = (try await lab.uuid("h1"), try await lab.uuid("h2"), try await lab.uuid("h3"))
                try await lab.hexlist("h2", "peer", "trust", one)
                try await lab.hexlist("h3", "peer", "trust", two)

                let reply = try await lab.post("h1", "/v1/sends?to=\(two)&wait=stored&timeout=\(Patience.state)", body: hex.json)
                let sent = try JSONDecoder().decode(Items<SendRow>.self, from: Data(reply.out.utf8)).items
                #expect(sent.map(\.state) == ["stored"])
                let second = try await Self.only("h2", lab)
                try Self.compare(second, with: hex)
                #expect(second.row.peerUUID == one)
                // h2 forwards the hex, with the texts of its first sender.
                try await lab.hexlist("h2", "send", "--to", three, "--hex", "\(second.row.id)")
                let third = try await Self.only("h3", lab)
                try Self.compare(third, with: hex)
                #expect(third.row.peerUUID == two)
                #expect(third.row.senderUUID == second.row.senderUUID)
                #expect(JSONLines.member("links", of: third.json) == JSONLines.member("links", of: second.json))
                #expect(JSONLines.member("extra", of: third.json) == JSONLines.member("extra", of: second.json))
            }
        }

        private static func only(_ host: String, _ lab: Lab) async throws -> (row: HexRow, json: String) {
            let inbox: [HexRow] = try await lab.rows(host, "inbox")
            #expect(inbox.count == 1)
            return try await lab.show(host, try #require(inbox.first).id)
        }

        private static func compare(_ shown: (row: HexRow, json: String), with hex: LargeHex) throws {
            let links = try #require(shown.row.links)
            #expect(Array(shown.row.description.utf8) == Array(hex.description.utf8))
            #expect(links.count == hex.links.count)
            for (arrived, sent) in zip(links, hex.links) {
                #expect(Array(arrived.url.utf8) == Array(sent.url.utf8))
                #expect(Array(arrived.linkDescription.utf8) == Array(sent.linkDescription.utf8))
                #expect(Array(arrived.service.utf8) == Array(sent.service.utf8))
            }
            // Unknown members keep their exact bytes: number forms, escapes, order.
            let extra = try #require(JSONLines.member("extra", of: shown.json))
            #expect(extra.contains(hex.hexExtra))
            #expect(extra.contains(hex.linkExtra))
        }

        @Test("one send reaches several peers; an absent one gets its hex when it returns")
        func severalPeers() async throws {
            try await Lab.with("h1", "h2", "h3") { lab in
                try await lab.start("h1", "h2", "h3")
                for host in ["h1", "h2", "h3"] { try await lab.awaitPeers(host, 2) }
                let (one, two, three) = (try await lab.uuid("h1"), try await lab.uuid("h2"), try await lab.uuid("h3"))
                try await lab.hexlist("h2", "peer", "trust", one)
                try await lab.hexlist("h3", "peer", "trust", one)
                try await lab.hexlist("h1", "peer", "trust", three)  // a stranger would be forgotten when it disconnects
                let before = try await lab.lastEvent("h1")
                try await lab.stop("h3")
                try await lab.awaitEvent("h1", "peer.down", peer: three, after: before)

                // The send does not wait for the absent peer.
                let sent: [SendRow] = try await lab.rows(
                    "h1", "send", "--to", two, "--to", three, "--timeout", "\(Patience.state)s", "https://example.org/both", expecting: 3)
                #expect(Set(sent.map { "\($0.peer) \($0.state)" }) == ["\(two) stored", "\(three) queued"])
                #expect(try await lab.rows("h2", "inbox", as: HexRow.self).count == 1)
                let waiting = try await lab.hexlist("h1", "outbox", "list", "--json").out
                #expect(waiting.contains(three))
                #expect(try await lab.status("h1").outbox["queued"] == 1)

                try await lab.start("h3")
                try await lab.awaitEvent("h3", "hex.received", peer: one)
                #expect(try await lab.rows("h3", "inbox", as: HexRow.self).count == 1)
                try await lab.awaitEvent("h1", "hex.delivered", peer: three)
                #expect(try await lab.status("h1").outbox["queued"] == 0)
            }
        }

        @Test("a reused key is one hex; with other content it is refused")
        func keys() async throws {
            try await Lab.with("h1", "h2") { lab in
                let uuid = try await lab.startAndMeet()
                try await lab.hexlist("h2", "peer", "trust", uuid.one)
                for _ in 0..<2 {
                    let sent: [SendRow] = try await lab.rows("h1", "send", "--to", uuid.other, "--key", "k1", "https://example.org/once")
                    #expect(sent.map(\.state) == ["stored"])
                }
                #expect(try await lab.rows("h2", "inbox", as: HexRow.self).count == 1)
                let other = try await lab.hexlist(
                    "h1", "send", "--to", uuid.other, "--key", "k1", "https://example.org/other", expecting: 1)
                #expect(other.err.contains("k1") || other.err.lowercased().contains("key"))
                #expect(try await lab.rows("h2", "inbox", as: HexRow.self).count == 1)
            }
        }
    }
}
