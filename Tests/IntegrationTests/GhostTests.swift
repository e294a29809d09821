import Foundation
import HexlistModel
import TestSupport
import Testing

extension StrangeMachines {
    /// Announcements of other programs on the same network that are not peers.
    @Suite("Ghosts")
    struct Ghosts {
        private static func forge(_ arguments: String..., on host: String, of lab: Lab) throws -> RunningCommand {
            try lab.running(["exec", host, "\(Checkout.root)/Tests/Faults/forge"] + arguments, seconds: Patience.server)
        }

        /// Waits until the peer is announced and a handshake at its announced address has proved its key, and returns its row. Until
        /// then, the row may have another first address: the source port of a connection that the peer opened, or the session's address
        /// of the other IP version.
        private static func reached(_ peer: String, from host: String, of lab: Lab) async throws -> PeerRow {
            func isReached(_ row: PeerRow) -> Bool {
                row.uuid == peer && row.state == "verified" && row.endpoints.first?.via == "mdns"
                    && row.endpoints.contains { $0.lastOK != nil && $0.via == "mdns" }
            }
            return try #require(try await lab.awaitList(host) { $0.contains(where: isReached) }.first(where: isReached))
        }

        private static func uuid(_ number: Int) -> String { "A\(number)000000-0000-8000-8000-000000000001" }

        /// One announcement, and the reason expected for it.
        private struct Kind {
            var name: String
            var port = 25_999
            var host: String?
            var txt: [String]
            var reason: String
            var why: String
        }

        @Test("each kind of announcement that is not a peer is hidden, with its reason")
        func everyKind() async throws {
            try await Lab.with("h1", "h2", "h3") { lab in
                let uuid = try await lab.startAndMeet()
                try await lab.start("h3")
                let third = try await lab.uuid("h3")
                try await lab.trustEachOther(("h1", uuid.one), ("h2", uuid.other))
                try await lab.awaitPeers("h1", 2)
                let peer = try await Self.reached(uuid.other, from: "h1", of: lab)
                let boot = try #require(peer.boot)
                let port = try await lab.status("h3").port
                let ownPort = try await lab.status("h1").port
                func txt(_ number: Int) -> [String] { ["txtvers=1", "id=\(Self.uuid(number))", "p=1", "boot=\(number)000000000000000"] }

                var helpers: [RunningCommand] = []
                for (host, address) in [("far.local", "198.51.100.7"), ("gone.local", "10.77.0.250")] {
                    let helper = try lab.running(["exec", "h3", "avahi-publish", "-a", "-R", host, address], seconds: Patience.server)
                    _ = try await helper.first { $0.hasPrefix("Established") ? true : nil }
                    helpers.append(helper)
                }
                let log = try await lab.path("folder", on: "h3") + "/heard"
                let silent = try Self.forge("listen", "25998", log, on: "h3", of: lab)
                _ = try await silent.first { $0 == "listening" ? true : nil }
                let other = try lab.running(
                    ["exec", "h3", "/usr/bin/python3", "-u", "-m", "http.server", "25997"], seconds: Patience.server)
                _ = try await other.first { $0.hasPrefix("Serving") ? true : nil }
                helpers += [silent, other]

                let kinds = [
                    Kind(name: "no uuid", txt: ["v=1"], reason: "invalid", why: "no UUID"),
                    Kind(name: "odd uuid", txt: ["id=hello"], reason: "invalid", why: "no UUID"),
                    Kind(name: "low port", port: 80, txt: txt(1), reason: "invalid", why: "below 1024"),
                    Kind(name: "far", host: "far.local", txt: txt(2), reason: "invalid", why: "not on a network of this machine"),
                    Kind(name: "no address", host: "nowhere.local", txt: txt(3), reason: "stale", why: "address cannot be resolved"),
                    Kind(name: "nobody", txt: txt(4), reason: "stale", why: "the connection is refused"),
                    Kind(name: "gone", host: "gone.local", txt: txt(5), reason: "stale", why: "nobody answers"),
                    Kind(name: "web server", port: 25_997, txt: txt(6), reason: "stale", why: "it answers, but is no Hexlist peer"),
                    Kind(name: "silent", port: 25_998, txt: txt(7), reason: "stale", why: "nobody answers"),
                    Kind(name: "somebody else", port: port, txt: txt(8), reason: "impostor", why: "answers as \(third)"),
                    Kind(
                        name: "myself", txt: ["id=\(uuid.one)", "boot=1000000000000000"], reason: "self",
                        why: "no machine at its address proves it"),
                    Kind(name: "hairpin", port: ownPort, host: "h1.local", txt: txt(9), reason: "self", why: "is this machine"),
                    Kind(name: "earlier", txt: ["id=\(uuid.other)", "boot=2000000000000000"], reason: "stale", why: "by an earlier start"),
                    Kind(
                        name: "again", port: peer.endpoints[0].port, host: "h2.local", txt: ["id=\(uuid.other)", "boot=\(boot)"],
                        reason: "duplicate", why: "listed as h2"),
                ]
                for kind in kinds {
                    helpers.append(try await lab.publish(kind.name, on: "h3", port: kind.port, host: kind.host, txt: kind.txt))
                }
                func isRight(_ kind: Kind, _ list: [PeerRow]) -> Bool {
                    list.contains {
                        $0.name == kind.name && $0.state == "ghost" && $0.reason == kind.reason && $0.why?.contains(kind.why) == true
                    }
                }
                let list = try await lab.awaitList("h1") { list in kinds.allSatisfy { isRight($0, list) } }
                #expect(list.contains { $0.uuid == uuid.one && $0.reason == "self" && $0.why?.contains("own announcement") == true })
                // A ghost has no reason while it is probed. That takes a few seconds, so `--watch` shows it.
                let watch = try lab.follow("h1", ["peers", "--all", "--watch", "--json"])
                helpers.append(try await lab.publish("newcomer", on: "h3", port: 25_998, txt: txt(0)))
                try await watch.first { line in
                    try JSONLines.decode(line, as: Items<PeerRow>.self).first?.items
                        .first { $0.name == "newcomer" && $0.reason == "unverified" && $0.why?.contains("being checked") == true }
                }
                await watch.stop()
                // No ghost is a peer, or changes a peer.
                #expect(Set(list.filter { $0.state != "ghost" }.map(\.uuid)) == [uuid.other, third])
                let now = try #require(list.first { $0.uuid == uuid.other && $0.state == "verified" })
                #expect(now.name == peer.name && now.boot == boot && now.endpoints.first?.place == peer.endpoints.first?.place)
                try await lab.hexlist("h1", "send", "--to", uuid.other, "https://example.org/still-there")
                // Each ghost was reported once, not at each query.
                let events: [GhostEventRow] = try await lab.rows("h1", "events", "--limit", "0")
                let told = events.filter { $0.type == "peer.ghost" }.map { "\($0.data?.name ?? "") \($0.data?.reason ?? "")" }
                #expect(told.count == Set(told).count && !told.isEmpty, "\(told)")
                // Withdrawn ghosts disappear.
                for helper in helpers { await helper.stop() }
                try await lab.awaitList("h1") { list in
                    !list.contains { row in kinds.contains { $0.name == row.name && $0.reason != "stale" } }
                }
            }
        }

        @Test("a machine without power and a frozen one: away, though their announcements remain")
        func silence() async throws {
            try await Lab.with("h1", "h2", "h3") { lab in
                let uuid = try await lab.startAndMeet()
                try await lab.start("h3")
                try await lab.awaitPeers("h1", 2)
                let third = try await lab.uuid("h3")
                try await lab.trustEachOther(("h1", uuid.one), ("h2", uuid.other))
                try await lab.run(["power-cut", "h2"])
                try await lab.run(["signal", "h3", "STOP"])
                for peer in [uuid.other, third] {
                    try await lab.hexlist("h1", "send", "--wait", "queued", "--to", peer, "https://example.org/later")
                }
                for peer in [uuid.other, third] { try await lab.awaitEvent("h1", "peer.down", peer: peer) }
                let announced = try await lab.exec("h1", "avahi-browse", "--cache", "--parsable", "_hexlist._tcp").out
                #expect(announced.contains("h2") && announced.contains("h3"))
                let list: [PeerRow] = try await lab.rows("h1", "peers", "--all")
                for peer in [uuid.other, third] {
                    let rows = list.filter { $0.uuid == peer }
                    #expect(rows.first?.state == "away" && rows.first?.why?.contains("does not answer") == true, "\(rows)")
                    #expect(!rows.contains { $0.state == "verified" })
                }
                #expect(try await lab.peers("h1").isEmpty)
                #expect(try await lab.outbox("h1").map(\.waitingFor) == ["peer", "peer"])

                try await lab.run(["signal", "h3", "CONT"])
                #expect(try await lab.awaitPeers("h1").map(\.uuid) == [third])
                // A new start of h1 gets both announcements from its avahi-daemon, and recognizes them too.
                try await lab.stop("h1")
                try await lab.start("h1")
                let again = try await lab.awaitList("h1") { list in
                    list.contains { $0.uuid == third && $0.state == "verified" }
                        && list.contains { $0.uuid == uuid.other && $0.why?.contains("does not answer") == true }
                }
                #expect(again.first { $0.uuid == uuid.other }?.state == "away")
                try await lab.run(["power-on", "h2"])
                try await lab.start("h2")
                try await lab.awaitDelivered("h1")
            }
        }

        @Test("the bridge address that each machine has leads back to this one: the peer is found at its other address")
        func bridge() async throws {
            try await Lab.with("h1", "h2", "h3") { lab in
                for host in ["h1", "h2"] {
                    try await lab.addInterface("docker0", "bridge", on: host)
                }
                // At first only the bridge carries the announcement.
                try await lab.run(["avahi", "h2", "stop"])
                try await lab.start("h2")
                let other = try await lab.status("h2")
                let helper = try lab.running(
                    ["exec", "h3", "avahi-publish", "-a", "-R", "bridge.local", "172.17.0.1"], seconds: Patience.server)
                _ = try await helper.first { $0.hasPrefix("Established") ? true : nil }
                let publisher = try await lab.publish(
                    "by the bridge", on: "h3", port: other.port, host: "bridge.local", txt: ["id=\(other.uuid)"])
                try await lab.start("h1")
                try await lab.awaitList("h1") { list in list.contains { $0.name == "by the bridge" && $0.reason == "self" } }
                #expect(try await lab.peers("h1").isEmpty)
                try await lab.run(["avahi", "h2", "start"])
                #expect(try await lab.awaitPeers("h1").map(\.uuid) == [other.uuid])
                let list: [PeerRow] = try await lab.rows("h1", "peers", "--all")
                #expect(list.filter { $0.state != "ghost" }.map(\.uuid) == [other.uuid])
                for running in [helper, publisher] { await running.stop() }
            }
        }

        @Test("an announced port changes without a goodbye: the peer is found at the new port")
        func movedWithoutAWord() async throws {
            try await Lab.with("h1", "h2") { lab in
                // h2 hears announcements and dials no peer, so it can be found by its announcement only.
                try await lab.run(["avahi", "h2", "stop"])
                try await lab.start("h1", "h2")
                let peer = try await lab.status("h2")
                let address = try await lab.path("address", on: "h2")
                for port in ["25999", "\(peer.port)"] {
                    let announced = await (try Self.forge("announce", address, "moving", peer.uuid, port, on: "h2", of: lab)).status()
                    #expect(announced == 0)
                    try await lab.awaitList("h1") { list in
                        port == "25999"
                            ? list.contains { $0.name == "moving" && $0.reason == "stale" }
                            : list.contains { $0.uuid == peer.uuid && $0.state == "verified" }
                    }
                }
            }
        }

        @Test("hand-made announcements, long, truncated and with control characters, are listed, cleaned, and cost little")
        func hostileRecords() async throws {
            try await Lab.with("h1", "h2", "h3") { lab in
                let uuid = try await lab.startAndMeet()
                try await lab.trustEachOther(("h1", uuid.one), ("h2", uuid.other))
                let address = try await lab.path("address", on: "h3")
                let pid = try await lab.status("h1").pid
                let forged = await (try Self.forge("hostile", address, "200", on: "h3", of: lab)).status()
                #expect(forged == 0)
                try await lab.awaitStatus("h1") { $0.ghosts >= 100 }
                for arguments in [["peers", "--all", "--why"], ["peers", "--all", "--json"], ["events"], ["doctor"]] {
                    let output = try await lab.run(["hexlist", "h1"] + arguments, expecting: nil)
                    let raw = (output.out + output.err).unicodeScalars.filter {
                        $0 != "\n" && [.control, .format].contains($0.properties.generalCategory)
                    }
                    #expect(raw.isEmpty, "\(arguments): \(raw.prefix(5).map { $0.value })")
                }
                #expect(try await lab.status("h1").pid == pid)
                try await lab.hexlist("h1", "send", "--to", uuid.other, "https://example.org/among-them")
                try await lab.start("h3")
                try await lab.awaitPeers("h1", 2)
            }
        }

        @Test("forged announcements, withdrawals and moves in a verified peer's name do not affect it")
        func forgeries() async throws {
            try await Lab.with("h1", "h2", "h3") { lab in
                let uuid = try await lab.startAndMeet()
                try await lab.trustEachOther(("h1", uuid.one), ("h2", uuid.other))
                let peer = try await Self.reached(uuid.other, from: "h1", of: lab)
                let boot = try #require(peer.boot)
                let address = try await lab.path("address", on: "h3")
                let log = try await lab.path("folder", on: "h3") + "/heard"
                let listener = try Self.forge("listen", "25998", log, on: "h3", of: lab)
                _ = try await listener.first { $0 == "listening" ? true : nil }
                let before = try await lab.lastEvent("h1")
                let instance = PeerName.instance(displayName: "h2", peer: try #require(PeerID(uuid.other)))

                let publisher = try await lab.publish(
                    "h2 forged", on: "h3", port: 25_998, txt: ["id=\(uuid.other)", "boot=\(boot)", "v=9"])
                let restarted = try await lab.publish(
                    "h2 restarted", on: "h3", port: 25_998, txt: ["id=\(uuid.other)", "boot=3000000000000000"])
                for _ in 0..<3 {
                    let said = await (try Self.forge("goodbye", address, instance, on: "h3", of: lab)).status()
                    let moved = await (try Self.forge("move", address, instance, "thief", address, "25998", on: "h3", of: lab)).status()
                    #expect(said == 0 && moved == 0)
                    try await lab.hexlist("h1", "send", "--to", uuid.other, "https://example.org/secret")
                }
                #expect(try await lab.peers("h1").map(\.boot) == [boot])
                #expect(try await lab.peers("h1").first?.endpoints.first?.place == peer.endpoints.first?.place)
                let since: [EventRow] = try await lab.rows("h1", "events", "--since", "\(before)")
                #expect(!since.contains { $0.peer == uuid.other && ["peer.down", "peer.up"].contains($0.type) })

                // The peer restarts on another port meanwhile: it is found again, and queued hexes reach no other machine.
                try await lab.kill("h2")
                try await lab.bulk("h1", to: uuid.other, (1...50).map { "secret \($0)" })
                try await lab.start("h2", arguments: ["--port", "25333"])
                try await lab.awaitDelivered("h1")
                let heard = String(decoding: (try? Data(contentsOf: URL(fileURLWithPath: log))) ?? Data(), as: UTF8.self)
                #expect(heard.contains("-- connection"), "nobody was fooled, so nothing was tried")
                #expect(!heard.contains("secret") && !heard.contains("hexDescription"))
                for helper in [publisher, restarted, listener] { await helper.stop() }
            }
        }

        @Test("this machine as a configured address, and one peer at two addresses: no additional ghost")
        func severalSources() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await lab.configure("h1", "name: h1\npeers: [\"127.0.0.1:24391\", \"10.77.0.2:24391\"]\n")
                let uuid = try await lab.startAndMeet()
                let list = try await lab.awaitList("h1") { list in
                    list.contains { $0.reason == "self" && $0.why == "this configured address is this machine" }
                        && list.contains { $0.uuid == uuid.other && Set($0.endpoints.map(\.via)).isSuperset(of: ["static", "mdns"]) }
                }
                #expect(list.filter { $0.state != "ghost" }.map(\.uuid) == [uuid.other])
            }
        }

        @Test("hexlist announces nothing, a stranger is forgotten with the daemon, and a reinstalled peer is only suggested")
        func ownList() async throws {
            try await Lab.with("h1", "h2", "h3") { lab in
                let uuid = try await lab.startAndMeet()
                try await lab.start("h3")
                try await lab.awaitPeers("h1", 2)
                try await lab.hexlist("h1", "peer", "trust", uuid.other)
                // h2's state is deleted; its name and address stay.
                try await lab.stop("h2")
                let state = try await lab.path("state", on: "h2")
                for file in try FileManager.default.contentsOfDirectory(atPath: state) {
                    try FileManager.default.removeItem(atPath: "\(state)/\(file)")
                }
                try await lab.start("h2")
                let again = try await lab.uuid("h2")
                let list = try await lab.awaitList("h1") { list in
                    list.contains {
                        $0.uuid == uuid.other && $0.state == "away" && $0.why?.contains("may be the same machine, reinstalled") == true
                    }
                        && list.contains { $0.uuid == again && $0.state == "verified" }
                }
                #expect(list.first { $0.uuid == again && $0.state == "verified" }?.trust == "stranger")

                // h3 stops for good, and h1 restarts: only the trusted peer is remembered.
                try await lab.stop("h3")
                try await lab.stop("h2")
                try await lab.stop("h1")
                try await lab.hexlist("h3", "status", expecting: nil)
                try await lab.start("h1")
                let after: [PeerRow] = try await lab.rows("h1", "peers", "--all")
                #expect(after.filter { $0.state != "ghost" }.map(\.uuid) == [uuid.other])
                // avahi-daemon drops withdrawn records after a second. The command on h3, whose daemon is stopped, has announced nothing.
                try await Self.awaitGone("h3", seenFrom: "h1", of: lab)
                try await lab.hexlist("h1", "peer", "forget", uuid.other)
                let none: [PeerRow] = try await lab.rows("h1", "peers", "--all")
                #expect(none.filter { $0.state != "ghost" }.isEmpty)
            }
        }

        @Test(
            "two hundred announcements of another mDNS implementation, without a listener",
            .enabled(if: Self.hasZeroconf, "python3-zeroconf is not installed"))
        func manyForeign() async throws {
            try await Lab.with("h1", "h2", "h3") { lab in
                let uuid = try await lab.startAndMeet()
                try await lab.trustEachOther(("h1", uuid.one), ("h2", uuid.other))
                let address = try await lab.path("address", on: "h3")
                let before = try await lab.memory("h1")
                let foreign = try lab.running(["exec", "h3", Self.announce, address, "200"], seconds: Patience.server)
                let begin = ContinuousClock.now
                _ = try await foreign.first { $0.hasPrefix("announced") ? true : nil }
                try await lab.awaitList("h1") { $0.count { $0.name.hasPrefix("foreign") && $0.reason != nil && $0.uuid != nil } == 200 }
                print(
                    "manyForeign: all seen \(begin.duration(to: .now)) after the first, \(((try await lab.memory("h1")) - before) >> 10) KiB"
                )
                #expect(try await lab.peers("h1").map(\.uuid) == [uuid.other])
                try await lab.hexlist("h1", "send", "--to", uuid.other, "https://example.org/in-the-crowd")
                // A new peer is verified before all of them were probed.
                try await lab.start("h3")
                try await lab.awaitPeers("h1", 2)
                if LongTests.areWanted {
                    try await lab.awaitList("h1", seconds: 240) { $0.count { $0.name.hasPrefix("foreign") && $0.reason == "stale" } == 200 }
                }
                await foreign.stop()
                try await lab.awaitList("h1") { $0.count { $0.name.hasPrefix("foreign") } == 0 }
            }
        }

        /// Waits until another program sees no announcement of that host.
        private static func awaitGone(_ host: String, seenFrom observer: String, of lab: Lab) async throws {
            var seen = ""
            try await Patience.until(or: "\(host) is still announced:\n\(seen)") {
                seen = try await lab.exec(observer, "avahi-browse", "--parsable", "--terminate", "_hexlist._tcp").out
                return !seen.contains(host)
            }
        }

        private static let announce = "\(Checkout.root)/Tests/Faults/announce"
        private static let hasZeroconf =
            (try? Data(contentsOf: URL(fileURLWithPath: "/usr/lib/python3/dist-packages/zeroconf/__init__.py"))) != nil

        @Test("a flood of unresolvable names, while a trusted peer restarts on another port")
        func flood() async throws {
            try await Lab.with("h1", "h2", "h3") { lab in
                let uuid = try await lab.startAndMeet()
                try await lab.trustEachOther(("h1", uuid.one), ("h2", uuid.other))
                let address = try await lab.path("address", on: "h3")
                let before = try await lab.memory("h1")
                let count = LongTests.areWanted ? "20000" : "3000"
                let flooded = await (try Self.forge("flood", address, count, on: "h3", of: lab)).status()
                #expect(flooded == 0)
                try await lab.kill("h2")
                try await lab.bulk("h1", to: uuid.other, ["after the flood"])
                try await lab.start("h2", arguments: ["--port", "25444"])
                let begin = ContinuousClock.now
                try await lab.awaitDelivered("h1")
                print("flood: delivered \(begin.duration(to: .now)) after the restart")
                // avahi-daemon allows one client 1 024 objects, and reports an error beyond. No more were requested.
                try await lab.awaitStatus("h1") { $0.ghosts > 1_100 }
                let list = try await lab.awaitList("h1") { $0.contains { $0.why?.contains("address cannot be resolved") == true } }
                #expect(!list.contains { $0.why?.contains("Too many") == true })
                #expect(list.count <= 8_300)
                #expect(try await lab.status("h1").avahi.state == "running")
                print("flood: \(list.count) ghosts, \(((try await lab.memory("h1")) - before) >> 10) KiB")
            }
        }
    }
}

extension PeerRow.Endpoint {
    fileprivate var place: String { "\(host) \(port)" }
}

private struct GhostEventRow: Decodable, Sendable {
    struct Ghost: Decodable, Sendable {
        var name: String?
        var reason: String?
    }

    var type: String
    var data: Ghost?
}
