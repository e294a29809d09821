import Foundation
import HexlistModel
import Testing

extension TwoMachines {
    @Suite("Discovery")
    struct Discovery {
        @Test("each lists exactly the other, though each is announced on IPv4 and IPv6")
        func eachListsExactlyTheOther() async throws {
            try await Lab.with("h1", "h2") { lab in
                let uuid = try await lab.startAndMeet()
                for (host, own, other) in [("h1", uuid.one, uuid.other), ("h2", uuid.other, uuid.one)] {
                    // Another client of the same avahi-daemon gets both IP versions of both hosts.
                    try await Announcement.await(2 * Lab.families, on: host, of: lab) { [own, other].contains($0.txt["id"]) }
                    let peers = try await lab.peers(host)
                    #expect(peers.map(\.uuid) == [other])
                    #expect(peers.first?.state == "verified")
                    #expect(peers.first?.fingerprint?.hasPrefix(String(other.replacing("-", with: "").prefix(12))) == true)
                    #expect(try await lab.status(host).peers == 1)
                    // --all lists no second row of a peer either.
                    let all: [PeerRow] = try await lab.rows(host, "peers", "--all")
                    #expect(all.filter { $0.state != "ghost" }.map(\.uuid) == [other])
                    #expect(!all.contains { $0.state == "ghost" && $0.uuid == other && $0.reason != "duplicate" })
                }
            }
        }

        @Test("another program gets the instance name, the TXT record and the port")
        func seenFromOutside() async throws {
            try await Lab.with("h1", "h2", "h3") { lab in
                let uuid = try await lab.startAndMeet()
                let announcements = try await Announcement.await(2 * Lab.families, on: "h3", of: lab) { $0.isIPv6 != nil }
                for (host, uuid) in [("h1", uuid.one), ("h2", uuid.other)] {
                    let own = announcements.filter { $0.txt["id"] == uuid }
                    #expect(Set(own.map(\.isIPv6)).count == Lab.families)
                    let port = try await lab.status(host).port
                    let peer = try #require(PeerID(uuid))
                    for announcement in own {
                        #expect(announcement.name == PeerName.instance(displayName: host, peer: peer))
                        #expect(announcement.host == "\(host).local")
                        #expect(announcement.port == port)
                        #expect(announcement.txt["txtvers"] == "1")
                        #expect(announcement.txt["p"] == "1")
                        #expect(announcement.txt["v"] == ProtocolLimits.appVersion)
                        #expect(announcement.txt["boot"].flatMap { BootNonce($0) } != nil)
                        #expect(Set(announcement.txt.keys) == ["txtvers", "id", "v", "p", "boot"])
                    }
                }
            }
        }

        @Test("a kill, a stop and a restart on another port are noticed by the other machine")
        func comingAndGoing() async throws {
            try await Lab.with("h1", "h2") { lab in
                let uuid = try await lab.startAndMeet()
                try await lab.trustEachOther(("h1", uuid.one), ("h2", uuid.other))  // strangers cause no events
                let first = try #require(try await lab.peers("h1").first)
                let port = try await lab.status("h2").port
                let before = try await lab.lastEvent("h1")

                try await lab.kill("h2")
                let killed = try await lab.awaitEvent("h1", "peer.down", peer: uuid.other, after: before)
                #expect(try await lab.peers("h1").isEmpty)
                let away: [PeerRow] = try await lab.rows("h1", "peers", "--all")
                #expect(away.filter { $0.uuid == uuid.other && $0.state == "away" }.count == 1)

                try await lab.start("h2")
                let back = try await lab.awaitEvent("h1", "peer.up", peer: uuid.other, after: killed.number)
                let again = try await lab.awaitPeers("h1")
                #expect(again.map(\.uuid) == [uuid.other])
                #expect(again.first?.boot != first.boot)

                try await lab.stop("h2")
                let stopped = try await lab.awaitEvent("h1", "peer.down", peer: uuid.other, after: back.number)
                #expect(try await lab.peers("h1").isEmpty)

                try await lab.start("h2", arguments: ["--port", "25111"])
                try await lab.awaitEvent("h1", "peer.up", peer: uuid.other, after: stopped.number)
                // The session opens at once. The announcement follows and replaces the old port, one IP version after the other.
                let moved = try await Self.awaitPeers("h1", of: lab) { peers in
                    let endpoints = peers.first?.endpoints ?? []
                    return endpoints.contains { $0.port == 25_111 && $0.via == "mdns" } && !endpoints.contains { $0.port == port }
                }
                #expect(moved.map(\.uuid) == [uuid.other])
                #expect(try await lab.status("h2").port == 25_111)
                // The new address is used: a hex arrives.
                try await lab.hexlist("h2", "peer", "trust", uuid.one)
                try await lab.hexlist("h1", "send", "--to", uuid.other, "https://example.org/moved")
            }
        }

        @Test(
            "an unnoticed restart, on the same port or another, is detected by its changed record without a goodbye",
            arguments: [[], ["--port", "25123"]])
        func restartBehindTheBack(arguments: [String]) async throws {
            try await Lab.with("h1", "h2") { lab in
                let uuid = try await lab.startAndMeet()
                let first = try #require(try await lab.peers("h1").first)
                try await lab.run(["link", "h2", "silent"])
                try await lab.kill("h2")
                try await lab.start("h2", arguments: arguments)
                try await lab.run(["link", "h2", "up"])
                let peers = try await Self.awaitPeers("h1", of: lab) { !$0.isEmpty && $0.first?.boot != first.boot }
                #expect(peers.map(\.uuid) == [uuid.other])
            }
        }

        @Test("a name change is noticed by the other machine, and the peer stays the same")
        func renaming() async throws {
            try await Lab.with("h1", "h2") { lab in
                let uuid = try await lab.startAndMeet()
                try await lab.configure("h2", "name: Größe 名前\n")
                try await lab.run(["signal", "h2", "HUP"])
                let peers = try await Self.awaitPeers("h1", of: lab) { $0.map(\.name) == ["Größe 名前"] }
                #expect(peers.map(\.uuid) == [uuid.other])
                // Other machines get the new name as well.
                try await Announcement.await(Lab.families, on: "h1", of: lab) {
                    $0.txt["id"] == uuid.other && $0.name.hasPrefix("Größe 名前 [")
                }
            }
        }

        /// The list of verified peers, once `isWanted` returns true for it.
        private static func awaitPeers(_ host: String, of lab: Lab, until isWanted: ([PeerRow]) -> Bool) async throws -> [PeerRow] {
            let watch = try lab.follow(host, ["peers", "--watch", "--json"])
            let peers = try await watch.first { line -> [PeerRow]? in
                let peers = try JSONDecoder().decode(Items<PeerRow>.self, from: Data(line.utf8)).items
                return isWanted(peers) ? peers : nil
            }
            await watch.stop()
            return peers
        }

        @Test("two daemons on one host find each other")
        func twoOnOneHost() async throws {
            try await Lab.with("h1") { lab in
                let uuid = try await lab.startAndMeet("h1", "h1/second")
                #expect(uuid.one != uuid.other)
                #expect(try await lab.peers("h1").map(\.uuid) == [uuid.other])
                #expect(try await lab.peers("h1/second").map(\.uuid) == [uuid.one])
                #expect(try await lab.status("h1").port != lab.status("h1/second").port)
                try await lab.trustEachOther(("h1", uuid.one), ("h1/second", uuid.other))
                try await lab.hexlist("h1", "send", "--to", uuid.other, "https://example.org/neighbour")
                let inbox: [HexRow] = try await lab.rows("h1/second", "inbox")
                #expect(inbox.map(\.peerUUID) == [uuid.one])
            }
        }

        @Test("without avahi-daemon the daemon runs, reports that, and finds its peers once it is available")
        func withoutAvahi() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await lab.run(["avahi", "h1", "stop"])
                try await lab.start("h1", "h2")
                try await lab.awaitStatus("h1") { $0.avahi.state == "unavailable" && $0.avahi.message?.isEmpty == false }
                #expect(try await lab.hexlist("h1", "status").out.contains("avahi-daemon"))
                try await lab.run(["avahi", "h1", "start"])
                try await lab.awaitPeers("h1")
                try await lab.awaitPeers("h2")
                // Other peers are found at once. The own announcement is confirmed once no other host has its name.
                try await lab.awaitStatus("h1") { $0.avahi.state == "running" }

                // A restart in progress loses the registration, which is made again.
                let before = try await lab.lastEvent("h2")
                try await lab.run(["avahi", "h1", "kill"])
                try await lab.run(["avahi", "h1", "start"])
                let own = try await lab.uuid("h1")
                // The avahi-daemon of h2 may have cached the announcement; the new one of h1 cannot.
                for host in ["h1", "h2"] { try await Announcement.await(Lab.families, on: host, of: lab) { $0.txt["id"] == own } }
                #expect(try await lab.peers("h2").map(\.uuid) == [own])
                // The session stayed open: no peer was away.
                let since: [EventRow] = try await lab.rows("h2", "events", "--since", "\(before)")
                #expect(!since.contains { $0.type == "peer.down" })
            }
        }
    }
}
