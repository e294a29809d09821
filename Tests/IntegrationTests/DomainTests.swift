import Foundation
import Testing

extension TroubledNetworks {
    /// Two subnets with a router between them that runs the DNS server. Multicast does not cross it.
    @Suite("A company network")
    struct CompanyNetwork {
        private static let dnsmasq = Comment("needs dnsmasq (Scripts/setup installs it)")
        private static let bind = Comment("needs bind9")

        /// h1 and h2 behind `gw`, each with hexlistd configured for the domain. They start once `gw` answers.
        private static func with(
            _ yaml: String, test: (Lab, TemporaryFolder) async throws -> Void
        ) async throws {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            try await Lab.with("gw", "h1", "h2") { lab in
                try await lab.run(["route", "gw", "h1", "h2"])
                for (host, gateway) in [("h1", "10.78.1.1"), ("h2", "10.78.2.1")] {
                    try await DomainServer.use(gateway, on: host, folder: folder, of: lab)
                    try await lab.run(["path", host])
                    try await lab.configure(host, yaml)
                }
                try await test(lab, folder)
            }
        }

        private static func entry(_ host: String, port: Int? = nil, of lab: Lab) async throws -> DomainServer.Entry {
            let status = try await lab.status(host)
            return DomainServer.Entry(
                name: host, uuid: status.uuid, port: port ?? status.port,
                addresses: [try await lab.path("address", on: host), try await lab.path("address6", on: host)])
        }

        @Test(
            "peers of a DNS domain list each other across subnets, a hex arrives, and a changed port is noticed",
            .enabled(if: DomainServer.Program.dnsmasq.isInstalled, dnsmasq))
        func domain() async throws { try await acrossSubnets(.dnsmasq) }

        @Test("the same with bind as the server", .enabled(if: DomainServer.Program.bind.isInstalled, bind))
        func domainOfBind() async throws { try await acrossSubnets(.bind) }

        private func acrossSubnets(_ program: DomainServer.Program) async throws {
            try await Self.with("domains: [local, corp.example]\n") { lab, folder in
                try await lab.start("h1", "h2")
                // Without the server no peer is found, and the status says so.
                let silent = try await Self.awaitDomain("unavailable", on: "h1", of: lab)
                #expect(silent.message?.contains("corp.example") == true)
                #expect(try await lab.peers("h1").isEmpty)
                let entries = [try await Self.entry("h1", of: lab), try await Self.entry("h2", of: lab)]
                let server = try await DomainServer.start(program, on: "gw", entries, folder: folder, of: lab)
                try await lab.awaitPeers("h1")
                try await lab.awaitPeers("h2")
                _ = try await Self.awaitDomain("running", on: "h1", of: lab)
                let (one, other) = (entries[0].uuid, entries[1].uuid)
                try await lab.trustEachOther(("h1", one), ("h2", other))
                try await lab.hexlist("h1", "send", "--to", other, "https://example.org/across")
                let inbox: [HexRow] = try await lab.rows("h2", "inbox")
                #expect(inbox.map(\.peerUUID) == [one])
                // The list has one peer, although the server also lists this machine, and two addresses of the peer.
                let rows = try await lab.awaitList("h1") { $0.contains { $0.uuid == one && $0.reason == "self" } }
                #expect(rows.filter { $0.state != "ghost" }.map(\.uuid) == [other])

                // The port changes, and the zone with it.
                let before = try await lab.lastEvent("h1")
                try await lab.kill("h2")
                let gone = try await lab.awaitEvent("h1", "peer.down", peer: other, after: before)
                await server.stop()
                var moved = entries
                moved[1].port = 25_555
                let second = try await DomainServer.start(program, on: "gw", moved, folder: folder, of: lab)
                try await lab.start("h2", arguments: ["--port", "25555"])
                try await lab.awaitEvent("h1", "peer.up", peer: other, after: gone.number)
                try await lab.hexlist("h1", "send", "--to", other, "https://example.org/moved")

                // The server stops: the session stays, and so do known peers. The status reports the error.
                await second.stop()
                let lost = try await Self.awaitDomain("unavailable", on: "h1", of: lab)
                #expect(lost.message?.isEmpty == false)
                #expect(try await lab.peers("h1").map(\.uuid) == [other])
                try await lab.hexlist("h1", "send", "--to", other, "https://example.org/without")
                // A new start finds the peer by its last address.
                try await lab.stop("h1")
                try await lab.start("h1")
                #expect(try await lab.awaitPeers("h1").map(\.uuid) == [other])
                _ = try await Self.awaitDomain("unavailable", on: "h1", of: lab)
                let report: [DoctorRow] = try await lab.rows("h1", "doctor", expecting: 1)
                #expect(report.first?.step("domain")?.state == "failed")
                #expect(report.first?.step("domain")?.advice?.contains { $0.contains("dig") } == true)
            }
        }

        @Test(
            "a domain alone, without multicast: avahi-daemon is neither needed nor requested",
            .enabled(if: DomainServer.Program.dnsmasq.isInstalled, dnsmasq))
        func withoutMulticast() async throws {
            try await Self.with("domains: [corp.example]\n") { lab, folder in
                for host in ["h1", "h2"] { try await lab.run(["avahi", host, "stop"]) }
                try await lab.start("h1", "h2")
                let entries = [try await Self.entry("h1", of: lab), try await Self.entry("h2", of: lab)]
                let server = try await DomainServer.start(on: "gw", entries, folder: folder, of: lab)
                try await lab.awaitPeers("h1")
                try await lab.awaitPeers("h2")
                #expect(try await lab.status("h1").avahi.state == "off")
                try await lab.trustEachOther(("h1", entries[0].uuid), ("h2", entries[1].uuid))
                // h2 may have dialled h1 before h1 queried the server, so h1 may not have the DNS records of h2 yet.
                try await lab.awaitList("h1") { list in
                    list.contains { $0.uuid == entries[1].uuid && $0.endpoints.contains { $0.via == "dns" } }
                }
                _ = try await Self.awaitDomain("running", on: "h1", of: lab)
                let report: [DoctorRow] = try await lab.rows("h1", "doctor", "--peer", entries[1].uuid)
                let doctor = try #require(report.first)
                #expect(doctor.ok && doctor.step("avahi") == nil && doctor.step("domain")?.state == "ok")
                #expect(doctor.step("peer.resolve")?.message.contains("(dns)") == true)
                await server.stop()
            }
        }

        @Test(
            "peers configured by name are dialled at all their addresses, resolved again when they move, and kept without the server",
            .enabled(if: DomainServer.Program.dnsmasq.isInstalled, dnsmasq))
        func staticByName() async throws {
            try await Self.with("domains: [local]\npeers: [h1.corp.example, \"h2.corp.example:24391\"]\n") { lab, folder in
                try await lab.start("h1", "h2")
                var entries = [try await Self.entry("h1", of: lab), try await Self.entry("h2", of: lab)]
                let (one, other) = (entries[0].uuid, entries[1].uuid)
                // The first address is unreachable.
                entries[1].addresses[0] = "10.78.2.99"
                let server = try await DomainServer.start(on: "gw", entries, folder: folder, of: lab)
                #expect(try await lab.awaitPeers("h1").map(\.uuid) == [other])
                try await lab.awaitPeers("h2")
                try await lab.trustEachOther(("h1", one), ("h2", other))
                try await lab.hexlist("h1", "send", "--to", other, "https://example.org/name")
                // The name now resolves to another address, and the old ones are gone. h2 has no peer to dial, so h1 must find it.
                try await lab.hexlist("h2", "peer", "forget", one)
                try await lab.stop("h2")
                await server.stop()
                let device = ["exec", "h2", "ip"]
                try await lab.run(device + ["address", "delete", "10.78.2.2/24", "dev", "eth0"])
                try await lab.run(device + ["address", "add", "10.78.2.7/24", "dev", "eth0"])
                try await lab.run(device + ["route", "replace", "default", "via", "10.78.2.1"])
                try await lab.run(device + ["-6", "address", "flush", "dev", "eth0", "scope", "global"])
                entries[1].addresses = ["10.78.2.7"]
                let second = try await DomainServer.start(on: "gw", entries, folder: folder, of: lab)
                try await lab.configure("h2", "domains: [local]\n")
                try await lab.start("h2")
                #expect(try await lab.awaitPeers("h1").map(\.uuid) == [other])
                try await lab.hexlist("h2", "peer", "trust", one)
                try await lab.hexlist("h1", "send", "--to", other, "https://example.org/elsewhere")
                let peers = try await lab.peers("h1")
                #expect(peers.first?.endpoints.contains { $0.host == "10.78.2.7" && $0.via == "lastKnown" } == true)
                #expect(peers.first?.endpoints.contains { $0.host == "h2.corp.example" && $0.via == "static" } == true)
                // A new start without the server uses the last address of the name.
                await second.stop()
                try await lab.stop("h1")
                try await lab.start("h1")
                #expect(try await lab.awaitPeers("h1").map(\.uuid) == [other])
            }
        }

        @Test(
            "a new interface is noticed without multicast: peers of the domain are found at once",
            .enabled(if: DomainServer.Program.dnsmasq.isInstalled, dnsmasq))
        func interfaceComesUp() async throws {
            try await Self.with("domains: [corp.example]\n") { lab, folder in
                for host in ["h1", "h2"] { try await lab.run(["avahi", host, "stop"]) }
                try await lab.start("h1", "h2")
                // h2 has no way to find h1, so h1 must find it.
                let other = try await Self.entry("h2", of: lab)
                var nobody = other
                (nobody.name, nobody.uuid, nobody.addresses) = ("nobody", "018F3A3C-0000-8000-8000-000000000001", ["10.78.2.99"])
                // The next regular query would be after five minutes, longer than the wait below.
                let first = try await DomainServer.start(on: "gw", [nobody], seconds: 300, folder: folder, of: lab)
                _ = try await Self.awaitDomain("running", on: "h1", of: lab)
                await first.stop()
                let server = try await DomainServer.start(on: "gw", [other], folder: folder, of: lab)
                try await lab.addInterface("extra0", "veth", "peer", "name", "extra1", on: "h1")
                #expect(try await lab.awaitPeers("h1").map(\.uuid) == [other.uuid])
                await server.stop()
            }
        }

        @Test(
            "contents of a bind zone: aliases, split strings, an answer too long for a datagram, a broken domain beside it",
            .enabled(if: DomainServer.Program.bind.isInstalled, bind))
        func oddZone() async throws {
            try await Self.with("domains: [corp.example, broken.example, empty.example]\n") { lab, folder in
                for host in ["h1", "h2"] { try await lab.run(["avahi", host, "stop"]) }
                try await lab.start("h1", "h2")
                let other = try await Self.entry("h2", of: lab)
                // The instance and its host are aliases. No host exists behind the other names, which fill several datagrams.
                let names = (0..<60).map { "a-machine-with-a-long-name-in-the-cellar-\($0)" }
                let zone = """
                    _hexlist._tcp PTR h2\\032of\\032the\\032office._hexlist._tcp
                    h2\\032of\\032the\\032office._hexlist._tcp CNAME h2.instances
                    h2.instances SRV 0 0 \(other.port) alias
                    h2.instances SRV 10 0 1 nowhere
                    h2.instances TXT "txtvers=1" "id=\(other.uuid)" "note=\(String(repeating: "x", count: 200))" ""
                    alias CNAME host
                    host A \(other.addresses[0])
                    host AAAA \(other.addresses[1])
                    \(names.map { "_hexlist._tcp PTR \($0)._hexlist._tcp" }.joined(separator: "\n"))
                    """
                let folders =
                    #"zone "broken.example" { type primary; file "missing"; }; zone "empty.example" { type primary; file "empty"; };"#
                try folder.write("$TTL 5\n@ SOA ns hostmaster 1 3600 600 86400 5\n@ NS ns\nns A 10.78.1.1\n", to: "empty")
                let server = try await DomainServer.startBind(on: "gw", zone: zone, options: folders, folder: folder, of: lab)
                #expect(try await lab.awaitPeers("h1").map(\.uuid) == [other.uuid])
                try await lab.awaitList("h1") { list in
                    let peer = list.first { $0.uuid == other.uuid && $0.state == "verified" }
                    return Set((peer?.endpoints ?? []).filter { $0.via == "dns" }.map(\.host)) == Set(other.addresses)
                }
                // The long answer is complete, by TCP, and its instances are listed with their states.
                try await lab.awaitList("h1") { list in
                    names.allSatisfy { name in list.contains { $0.name == name && $0.state == "ghost" } }
                }
                _ = try await Self.awaitDomain("unavailable", named: "broken.example", saying: "SERVFAIL", on: "h1", of: lab)
                _ = try await Self.awaitDomain("degraded", named: "empty.example", on: "h1", of: lab)
                let doctor = try #require(try await lab.rows("h1", "doctor", expecting: 1, as: DoctorRow.self).first)
                let steps = doctor.steps.filter { $0.step == "domain" }
                try #require(steps.map(\.state) == ["failed", "ok", "warning"])
                #expect(steps[0].message.contains("broken.example") && steps[0].message.contains("SERVFAIL"))
                #expect(steps[2].message.contains("empty.example"))
                await server.stop()
            }
        }

        @Test(
            "a silent server: another one answers instead, and without another it is reported within seconds",
            .enabled(
                if: DomainServer.Program.dnsmasq.isInstalled && Program.path(of: "nft") != nil,
                "needs dnsmasq and nft (Scripts/setup installs them)"))
        func silentServer() async throws {
            try await Self.with("domains: [corp.example]\n") { lab, folder in
                for host in ["h1", "h2"] { try await lab.run(["avahi", host, "stop"]) }
                // The first address belongs to no host: packets to it are lost.
                try await lab.exec(
                    "gw", "nft",
                    "add table inet t; add chain inet t f { type filter hook forward priority 0; }; "
                        + "add rule inet t f ip daddr 10.78.2.53 drop")
                try folder.write("nameserver 10.78.2.53\nnameserver 10.78.1.1\n", to: "resolv-h1")
                try await lab.start("h1", "h2")
                let entries = [try await Self.entry("h1", of: lab), try await Self.entry("h2", of: lab)]
                let server = try await DomainServer.start(on: "gw", entries, folder: folder, of: lab)
                #expect(try await lab.awaitPeers("h1").map(\.uuid) == [entries[1].uuid])
                await server.stop()
                let lost = try await Self.awaitDomain("unavailable", on: "h1", of: lab)
                #expect(lost.message?.contains("no server of resolv.conf answers") == true)
                let doctor = try #require(try await lab.rows("h1", "doctor", expecting: 1, as: DoctorRow.self).first)
                #expect(doctor.failed == ["domain"] && doctor.step("domain")?.message.contains("corp.example") == true)
                // The peer that the server listed before is still listed.
                #expect(try await lab.peers("h1").map(\.uuid) == [entries[1].uuid])
            }
        }

        /// The domain's row in `status`, once it has that state.
        private static func awaitDomain(
            _ state: String, named name: String = DomainServer.domain, saying text: String = "", on host: String, of lab: Lab
        ) async throws -> DomainRow {
            var row: DomainRow?
            try await Patience.until(or: "\(name) is not \(state), but \(String(describing: row))") {
                row = try await lab.rows(host, "status", as: DomainStatusRow.self).first?.domains?.first { $0.domain == name }
                return row?.state == state && (text.isEmpty || row?.message?.contains(text) == true)
            }
            return try #require(row)
        }

        private struct DomainRow: Decodable, Sendable {
            var domain: String
            var state: String
            var message: String?
        }

        private struct DomainStatusRow: Decodable, Sendable {
            var domains: [DomainRow]?
        }
    }
}
