import Foundation
import Testing

extension TwoMachines {
    /// Two subnets with a router between them, which runs the DNS server: no multicast gets across.
    @Suite("A company network", .enabled(if: DomainServer.isInstalled, "needs dnsmasq (Scripts/setup installs it)"))
    struct CompanyNetwork {
        /// h1 and h2 behind `gw`, each with hexlistd configured so; started once `gw` answers.
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

        @Test("peers of a DNS domain list each other across subnets, a send arrives, and a changed port is followed")
        func domain() async throws {
            try await Self.with("domains: [local, corp.example]\n") { lab, folder in
                try await lab.start("h1", "h2")
                // Nothing gets across without the server, and that is said.
                let silent = try await Self.awaitDomain("unavailable", on: "h1", of: lab)
                #expect(silent.message?.contains("corp.example") == true)
                #expect(try await lab.peers("h1").isEmpty)
                let entries = [try await Self.entry("h1", of: lab), try await Self.entry("h2", of: lab)]
                let server = try await DomainServer.start(on: "gw", entries, folder: folder, of: lab)
                try await lab.awaitPeers("h1")
                try await lab.awaitPeers("h2")
                _ = try await Self.awaitDomain("running", on: "h1", of: lab)
                let (one, other) = (entries[0].uuid, entries[1].uuid)
                try await lab.trustEachOther(("h1", one), ("h2", other))
                try await lab.hexlist("h1", "send", "--to", other, "https://example.org/across")
                let inbox: [HexRow] = try await lab.rows("h2", "inbox")
                #expect(inbox.map(\.peerUUID) == [one])
                // One row for each, though the server tells of the own one too, and of two addresses.
                let rows: [PeerRow] = try await lab.rows("h1", "peers", "--all")
                #expect(rows.filter { $0.state != "ghost" }.map(\.uuid) == [other])
                #expect(rows.contains { $0.uuid == one && $0.reason == "self" })

                // The port moves, and the zone with it.
                try await lab.kill("h2")
                let gone = try await lab.awaitEvent("h1", "peer.down", peer: other)
                await server.stop()
                var moved = entries
                moved[1].port = 25_555
                let second = try await DomainServer.start(on: "gw", moved, folder: folder, of: lab)
                try await lab.start("h2", arguments: ["--port", "25555"])
                try await lab.awaitEvent("h1", "peer.up", peer: other, after: gone.number)
                try await lab.hexlist("h1", "send", "--to", other, "https://example.org/moved")

                // The server goes: the session stays, and what is known as well; status says what is wrong.
                await second.stop()
                let lost = try await Self.awaitDomain("unavailable", on: "h1", of: lab)
                #expect(lost.message?.isEmpty == false)
                #expect(try await lab.peers("h1").map(\.uuid) == [other])
                try await lab.hexlist("h1", "send", "--to", other, "https://example.org/without")
                // A new start finds the peer by its last address.
                try await lab.stop("h1")
                try await lab.start("h1")
                #expect(try await lab.awaitPeers("h1").map(\.uuid) == [other])
                let report: [DoctorRow] = try await lab.rows("h1", "doctor", expecting: 1)
                #expect(report.first?.step("domain")?.state == "failed")
                #expect(report.first?.step("domain")?.advice?.contains { $0.contains("dig") } == true)
            }
        }

        @Test("a domain alone, without multicast: no avahi-daemon is needed, and none is asked for")
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
                let report: [DoctorRow] = try await lab.rows("h1", "doctor", "--peer", entries[1].uuid)
                let doctor = try #require(report.first)
                #expect(doctor.ok && doctor.step("avahi") == nil && doctor.step("domain")?.state == "ok")
                #expect(doctor.step("peer.resolve")?.message.contains("(dns)") == true)
                await server.stop()
            }
        }

        @Test("peers configured by name are dialled by all their addresses, looked up anew when they move, and kept without the server")
        func staticByName() async throws {
            try await Self.with("domains: [local]\npeers: [h1.corp.example, \"h2.corp.example:24391\"]\n") { lab, folder in
                try await lab.start("h1", "h2")
                var entries = [try await Self.entry("h1", of: lab), try await Self.entry("h2", of: lab)]
                let (one, other) = (entries[0].uuid, entries[1].uuid)
                // The first address leads nowhere.
                entries[1].addresses[0] = "10.78.2.99"
                let server = try await DomainServer.start(on: "gw", entries, folder: folder, of: lab)
                #expect(try await lab.awaitPeers("h1").map(\.uuid) == [other])
                try await lab.awaitPeers("h2")
                try await lab.trustEachOther(("h1", one), ("h2", other))
                try await lab.hexlist("h1", "send", "--to", other, "https://example.org/name")
                // The name leads to another address now; the old ones are gone. h2 knows nobody to dial, so that h1 has to find it.
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
                // Without the server a new start uses the address behind the name.
                await second.stop()
                try await lab.stop("h1")
                try await lab.start("h1")
                #expect(try await lab.awaitPeers("h1").map(\.uuid) == [other])
            }
        }

        /// What status says of the domain, as soon as it is in that state.
        private static func awaitDomain(_ state: String, on host: String, of lab: Lab) async throws -> DomainRow {
            for _ in 0..<600 {
                let row = try await lab.rows(host, "status", as: DomainStatusRow.self).first?.domains?.first
                if let row, row.state == state { return row }
                try await Task.sleep(for: .milliseconds(100))
            }
            throw Command.Failure("the domain is not \(state)")
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
