import Foundation
import HexlistModel
import TestSupport
import Testing

extension TroubledNetworks {
    /// Restarts of avahi-daemon and D-Bus, and interface changes.
    @Suite("Avahi and interfaces")
    struct AvahiFaults {
        private static let rounds = LongTests.areWanted ? 100 : 6
        /// The number of additional descriptors that may be open: of a second session, a query in progress, or the like. It is smaller than
        /// the number of rounds, so that a leak per round is detected.
        private static let spareDescriptors = 4

        /// Waits until the host's own avahi-daemon and the network show the announcement. Another host may have cached the records earlier.
        private static func isAnnounced(_ host: String, as uuid: String, to other: String, _ lab: Lab) async throws {
            for browsing in [host, other] { try await Announcement.await(Lab.families, on: browsing, of: lab) { $0.txt["id"] == uuid } }
        }

        /// Waits until at most `spareDescriptors` more descriptors are open than before.
        private static func descriptorsSettle(_ host: String, _ lab: Lab, before: [String]) async throws {
            var open: [String] = []
            try await Patience.until(or: "open are \(open), before \(before)") {
                open = try await descriptors(host, lab)
                return open.count <= before.count + spareDescriptors
            }
        }

        /// The open descriptors of a daemon, up to a number, without those of the store, which opens readers as needed.
        private static func descriptors(_ host: String, _ lab: Lab) async throws -> [String] {
            let folder = "/proc/\(try await lab.status(host).pid)/fd"
            // A descriptor closed during the listing is skipped.
            return try FileManager.default.contentsOfDirectory(atPath: folder)
                .compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)") }
                .filter { !$0.contains("hexlist.sqlite") }.sorted()
        }

        @Test("D-Bus and avahi-daemon are missing at the start, then appear, disappear and return")
        func bus() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await lab.run(["avahi", "h1", "stop"])
                try await lab.run(["bus", "h1", "stop"])
                try await lab.start("h1", "h2")
                try await lab.awaitStatus("h1") { $0.avahi.state == "unavailable" && $0.avahi.message?.contains("D-Bus") == true }
                try await lab.run(["bus", "h1", "start"])
                try await lab.run(["avahi", "h1", "start"])
                try await lab.awaitPeers("h1")
                try await lab.awaitPeers("h2")
                let uuid = (one: try await lab.uuid("h1"), other: try await lab.uuid("h2"))
                try await lab.trustEachOther(("h1", uuid.one), ("h2", uuid.other))

                for _ in 0..<(LongTests.areWanted ? 20 : 2) {
                    let before = try await lab.lastEvent("h2")
                    try await lab.run(["avahi", "h1", "stop"])
                    try await lab.run(["bus", "h1", "stop"])
                    try await lab.awaitStatus("h1") { $0.avahi.state == "unavailable" }
                    // Hexes are sent to a known peer all the same.
                    try await lab.hexlist("h1", "send", "--to", uuid.other, "https://example.org/without-a-bus")
                    try await lab.run(["bus", "h1", "start"])
                    try await lab.run(["avahi", "h1", "start"])
                    let begin = ContinuousClock.now
                    try await lab.awaitStatus("h1") { $0.avahi.state == "running" }
                    try await Self.isAnnounced("h1", as: uuid.one, to: "h2", lab)
                    print("bus: announced again \(begin.duration(to: .now)) after it was back")
                    let since: [EventRow] = try await lab.rows("h2", "events", "--since", "\(before)")
                    #expect(!since.contains { $0.type == "peer.down" })
                }
            }
        }

        @Test("avahi-daemon is killed repeatedly: announced again each time, without leaks")
        func restarts() async throws {
            try await Lab.with("h1", "h2") { lab in
                let uuid = try await lab.startAndMeet()
                try await lab.trustEachOther(("h1", uuid.one), ("h2", uuid.other))
                let before = try await lab.lastEvent("h2")
                var times: [Duration] = []
                let descriptors = try await Self.descriptors("h1", lab)
                for round in 0..<Self.rounds {
                    try await lab.run(["avahi", "h1", "kill"])
                    try await lab.run(["avahi", "h1", "start"])
                    let begin = ContinuousClock.now
                    try await Self.isAnnounced("h1", as: uuid.one, to: "h2", lab)
                    times.append(begin.duration(to: .now))
                    try await lab.hexlist("h1", "send", "--to", uuid.other, "https://example.org/\(round)")
                }
                print("restarts: visible again after \(times.sorted()[times.count / 2]), at most \(times.max() ?? .zero)")
                try await Self.descriptorsSettle("h1", lab, before: descriptors)
                let since: [EventRow] = try await lab.rows("h2", "events", "--since", "\(before)")
                #expect(!since.contains { $0.type == "peer.down" })
            }
        }

        @Test("another program takes the name, and the host is renamed: the peer stays the same, with the name of its Hello")
        func names() async throws {
            try await Lab.with("h1", "h2", "h3") { lab in
                try await lab.start("h2")
                let other = try await lab.uuid("h2")
                try await lab.stop("h2")
                // Another program has the complete instance name before h2 returns.
                let squatter = try await lab.publish(
                    PeerName.instance(displayName: "h2", peer: try #require(PeerID(other))), on: "h3", port: 25_999, txt: ["id=none"])
                try await Announcement.await(1, on: "h2", of: lab) { $0.txt["id"] == "none" }
                try await lab.start("h1", "h2")
                try await lab.awaitPeers("h1")
                // The session opens before the announcement, because Avahi first checks whether the name is free. Either program, or both,
                // may have to choose another name, possibly several times.
                try await Announcement.look(on: "h1", of: lab) { found in
                    let (own, squatting) = (found.filter { $0.txt["id"] == other }, found.filter { $0.txt["id"] == "none" })
                    let areApart = !own.isEmpty && !squatting.isEmpty && Set(own.map(\.name)).isDisjoint(with: squatting.map(\.name))
                    return areApart && (own + squatting).contains { $0.name.contains("] #") }
                }
                let list = try await lab.awaitList("h1") { $0.contains { $0.reason == "invalid" } }
                #expect(list.filter { $0.state == "verified" }.map(\.uuid) == [other])
                #expect(list.first { $0.state == "verified" }?.name == "h2")

                // h3 takes h2's host name: avahi-daemon renames one of them to h2-2 and announces everything again.
                let before = try await lab.lastEvent("h1")
                let set = try await lab.exec("h3", "avahi-set-host-name", "h2", expecting: nil)
                print("names: avahi-set-host-name said \(set.status)")
                try await Announcement.look(on: "h1", of: lab) { found in
                    let (own, squatting) = (found.filter { $0.txt["id"] == other }, found.filter { $0.txt["id"] == "none" })
                    let areApart = !own.isEmpty && !squatting.isEmpty && Set(own.map(\.host)).isDisjoint(with: squatting.map(\.host))
                    return areApart && !squatting.contains { $0.host == "h3.local" }
                        && (own + squatting).contains { $0.host.hasPrefix("h2-") }
                }
                #expect(try await lab.peers("h1").map(\.uuid) == [other])
                let since: [EventRow] = try await lab.rows("h1", "events", "--since", "\(before)")
                #expect(!since.contains { $0.type == "peer.down" })
                await squatter.stop()
            }
        }

        @Test("three daemons with one name on two hosts: three peers, each listed once")
        func sameNames() async throws {
            try await Lab.with("h1", "h2") { lab in
                let hosts = ["h1", "h2", "h2/second"]
                for host in hosts {
                    try await lab.configure(host, "name: The same\n")
                    try await lab.start(host)
                }
                for host in hosts {
                    let peers = try await lab.awaitPeers(host, 2)
                    #expect(peers.count == 2 && Set(peers.map(\.uuid)).count == 2 && peers.allSatisfy { $0.name == "The same" })
                }
            }
        }

        @Test("interfaces come and go, and the cable is unplugged and plugged in: no peer is lost, nothing leaks")
        func interfaces() async throws {
            try await Lab.with("h1", "h2") { lab in
                let uuid = try await lab.startAndMeet()
                let descriptors = try await Self.descriptors("h1", lab)
                for _ in 0..<Self.rounds {
                    try await lab.addInterface("extra0", "veth", "peer", "name", "extra1", on: "h1")
                    try await lab.run(["link", "h2", "down"])
                    try await lab.run(["link", "h2", "up"])
                    try await lab.exec("h1", "ip", "link", "delete", "extra0")
                    try await lab.awaitPeers("h1")
                    try await lab.awaitPeers("h2")
                }
                let list = try await lab.awaitList("h1") { list in
                    !list.contains { $0.reason != "self" && $0.reason != "duplicate" && $0.state == "ghost" }
                }
                #expect(list.filter { $0.state != "ghost" }.map(\.uuid) == [uuid.other])
                try await Self.descriptorsSettle("h1", lab, before: descriptors)
            }
        }

        @Test(
            "with link-local IPv6 only: found, dialled with its scope, and hexes arrive",
            .enabled(if: Lab.families == 2, "this kernel has no IPv6"))
        func linkLocal() async throws {
            try await Lab.with("h1", "h2") { lab in
                for host in ["h1", "h2"] {
                    try await lab.exec(host, "ip", "-4", "address", "flush", "dev", "eth0")
                    try await lab.exec(host, "ip", "-6", "address", "flush", "dev", "eth0", "scope", "global")
                }
                let uuid = try await lab.startAndMeet()
                // Other hosts' avahi-daemons forget the withdrawn addresses a moment later.
                try await lab.awaitList("h1") { list in
                    list.contains { peer in
                        peer.uuid == uuid.other && peer.state == "verified" && !peer.endpoints.isEmpty
                            && peer.endpoints.allSatisfy { $0.host.hasPrefix("fe80::") }
                    }
                }
                try await lab.trustEachOther(("h1", uuid.one), ("h2", uuid.other))
                try await lab.hexlist("h1", "send", "--to", uuid.other, "https://example.org/link-local")
                // The address is remembered with its scope, and dialled at the next start without an announcement.
                try await lab.awaitList("h1") {
                    $0.contains { $0.uuid == uuid.other && $0.endpoints.contains { $0.host == "fe80::2%eth0" } }
                }
                try await lab.run(["avahi", "h1", "stop"])
                try await lab.stop("h1")
                try await lab.start("h1")
                #expect(try await lab.awaitPeers("h1").map(\.uuid) == [uuid.other])
            }
        }

        @Test("a second cable, and a reflector between two networks: one row each, whatever is repeated")
        func reflector() async throws {
            try await Lab.with("h1", "h2", "h3") { lab in
                for host in ["h1", "h2", "h3"] { try await lab.run(["cable", host, "1"]) }
                // h2 repeats announcements of either network on the other.
                try await lab.run(["avahi", "h2", "stop"])
                let folder = try await lab.path("folder", on: "h2")
                let configuration = """
                    [server]
                    host-name=h2
                    use-ipv4=yes
                    use-ipv6=yes
                    ratelimit-interval-usec=1000000
                    ratelimit-burst=1000
                    [wide-area]
                    enable-wide-area=no
                    [publish]
                    publish-hinfo=no
                    publish-workstation=no
                    [reflector]
                    enable-reflector=yes
                    """
                try Data((configuration + "\n").utf8).write(to: URL(fileURLWithPath: "\(folder)/reflector.conf"))
                let reflector = try lab.running(
                    ["exec", "h2", "avahi-daemon", "--file", "\(folder)/reflector.conf", "--no-drop-root", "--no-chroot", "--no-rlimits"],
                    seconds: Patience.server)
                _ = try await reflector.first { $0.contains("Server startup complete") ? true : nil }

                try await lab.start("h1", "h2", "h3")
                for host in ["h1", "h2", "h3"] {
                    let own = try await lab.uuid(host)
                    let peers = try await lab.awaitPeers(host, 2)
                    #expect(Set(peers.map(\.uuid)).count == 2 && !peers.map(\.uuid).contains(own))
                }
                let third = try await lab.uuid("h3")
                // h3 is announced on both networks. It is one peer in the list, and can be reached on each network.
                let list = try await lab.awaitList("h1") { list in
                    list.contains { $0.uuid == third && $0.reason == "duplicate" && $0.why?.contains("eth1") == true }
                }
                #expect(list.count { $0.uuid == third && $0.state != "ghost" } == 1)
                // If one cable fails, the session moves to the other one, and the list still has one peer.
                try await lab.trustEachOther(("h1", try await lab.uuid("h1")), ("h3", third))
                try await lab.run(["link", "h3", "down"])
                try await lab.hexlist("h1", "send", "--wait", "queued", "--to", third, "https://example.org/other-cable")
                try await lab.awaitDelivered("h1")
                // h3 is on network 1 only. h1 discovers it directly and through h2.
                try await lab.awaitList("h1") { list in list.count { $0.uuid == third && $0.state == "verified" } == 1 }
                await reflector.stop()
            }
        }
    }
}
