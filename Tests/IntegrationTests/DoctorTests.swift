import Foundation
import Testing

/// The output of `doctor --json`.
struct DoctorRow: Decodable, Sendable {
    struct Step: Decodable, Sendable {
        var step: String
        var state: String
        var message: String
        var advice: [String]?
        var code: String?
    }

    var ok: Bool
    var steps: [Step]

    func step(_ name: String) -> Step? { steps.first { $0.step == name } }
    var failed: [String] { steps.filter { $0.state == "failed" }.map(\.step) }
}

extension TwoMachines {
    @Suite("Doctor")
    struct DoctorOnMachines {
        private static func doctor(_ host: String = "h1", peer: String? = nil, expecting status: Int32?, of lab: Lab) async throws
            -> DoctorRow
        {
            let arguments = ["hexlist", host, "doctor", "--json"] + (peer.map { ["--peer", $0] } ?? [])
            let output = try await lab.run(arguments, expecting: status)
            #expect(output.out.split(separator: "\n").count == 1)
            return try #require(try JSONLines.decode(output.out, as: DoctorRow.self).first)
        }

        private static func meet(_ lab: Lab) async throws -> (one: String, other: String) {
            let uuid = try await lab.startAndSettle()
            try await lab.trustEachOther(("h1", uuid.one), ("h2", uuid.other))
            return uuid
        }

        @Test("two healthy machines: each step is shown and none fails; with text output too")
        func healthy() async throws {
            try await Lab.with("h1", "h2") { lab in
                let uuid = try await Self.meet(lab)
                for (host, peer) in [("h1", uuid.other), ("h2", "h1")] {
                    let report = try await Self.doctor(host, peer: peer, expecting: 0, of: lab)
                    #expect(report.ok && report.failed.isEmpty)
                    // Clock synchronisation depends on this machine.
                    for step in report.steps where step.step != "clock" { #expect(step.state == "ok", "\(step)") }
                    #expect(
                        report.steps.map(\.step) == [
                            "daemon", "clock", "dbus", "avahi", "store", "disk", "identity", "configuration", "discovery", "announcement",
                            "interfaces", "multicast", "port", "reachable", "localsend", "firewall", "peer", "peer.resolve", "peer.tcp",
                            "peer.tls",
                            "peer.hello",
                            "peer.trust", "peer.frame", "peer.dialBack",
                        ])
                    let reachable = try #require(report.step("reachable"))
                    #expect(
                        reachable.message.contains("connected to this machine at") && reachable.message.contains("just now"), "\(reachable)"
                    )
                }
                let text = try await lab.hexlist("h1", "doctor", "--peer", "h2")
                #expect(text.out.contains("peer.tls") && text.out.contains("ok "))
            }
        }

        @Test("no daemon: a failed step with advice, the others run all the same, and the status is 5")
        func noDaemon() async throws {
            try await Lab.with("h1") { lab in
                let report = try await Self.doctor(expecting: 5, of: lab)
                let step = try #require(report.step("daemon"))
                #expect(step.state == "failed" && step.code == "daemonUnreachable" && step.advice?.isEmpty == false)
                #expect(report.steps.map(\.step) == ["daemon", "clock", "dbus", "avahi", "firewall"])
                let text = try await lab.hexlist("h1", "doctor", expecting: 5)
                #expect(text.out.contains("hexlistd") && text.err.isEmpty)
            }
        }

        @Test("avahi-daemon stopped, then D-Bus missing: each is reported with advice")
        func withoutAvahi() async throws {
            try await Lab.with("h1", "h2") { lab in
                _ = try await Self.meet(lab)
                try await lab.run(["avahi", "h1", "stop"])
                try await lab.awaitStatus("h1") { $0.avahi.state == "unavailable" }
                let stopped = try await Self.doctor(expecting: 1, of: lab)
                #expect(stopped.failed == ["avahi", "discovery"])
                #expect(stopped.step("avahi")?.advice?.contains { $0.contains("avahi-daemon") } == true)
                #expect(stopped.step("dbus")?.state == "ok")
                // The session proves that the port is reachable. Multicast is not judged without a peer that could answer.
                #expect(stopped.step("reachable")?.state == "ok" && stopped.step("multicast") == nil)
                try await lab.run(["bus", "h1", "stop"])
                let gone = try await Self.doctor(expecting: 1, of: lab)
                #expect(gone.failed == ["dbus", "avahi", "discovery"])
                #expect(gone.step("dbus")?.advice?.contains { $0.contains("dbus") } == true)
            }
        }

        @Test("an unknown peer gives status 6 and a step with the reason; an absent peer gives the failed step")
        func unknownAndAway() async throws {
            try await Lab.with("h1", "h2") { lab in
                // The peer is configured, so that its address is known after its announcement is gone.
                try await lab.run(["path", "h1"])
                try await lab.configure("h1", "peers: [\(try await lab.path("address", on: "h2"))]\n")
                let uuid = try await Self.meet(lab)
                let unknown = try await Self.doctor(peer: "nobody", expecting: 6, of: lab)
                #expect(unknown.step("peer")?.state == "failed" && unknown.step("peer")?.code == "notFound")
                #expect(unknown.failed == ["peer"])
                let before = try await lab.lastEvent("h1")
                try await lab.kill("h2")
                try await lab.awaitEvent("h1", "peer.down", peer: uuid.other, after: before)
                let refused = try await Self.doctor(peer: uuid.other, expecting: 1, of: lab)
                #expect(refused.failed == ["peer", "peer.tcp", "peer.hello"])
                #expect(refused.step("peer.tcp")?.message.contains("refused") == true)
                #expect(refused.step("peer.tcp")?.advice?.first?.contains("hexlistd") == true)
                try await lab.run(["power-cut", "h2"])
                let silent = try await Self.doctor(peer: "h2", expecting: 1, of: lab)
                #expect(silent.failed == ["peer", "peer.tcp", "peer.hello"])
                #expect(silent.step("peer.tcp")?.message.contains("refused") == false)
            }
        }

        @Test(
            "a path that drops large packets: small frames work, the long frame fails",
            .enabled(if: nft != nil, "needs nft (Scripts/setup installs it)"))
        func blackHole() async throws {
            try await Lab.with("h1", "h2") { lab in
                let uuid = try await Self.meet(lab)
                let nft = try #require(Self.nft)
                let rules = """
                    table inet hole {
                        chain input {
                            type filter hook input priority 0; policy accept;
                            iif != lo meta length gt 1450 drop
                        }
                    }
                    """
                try await lab.run(["exec", "h2", nft, "-f", "-"], input: Array(rules.utf8))
                let report = try await Self.doctor(peer: uuid.other, expecting: 1, of: lab)
                // Short frames, such as the Hello, arrive. Only the long one is lost.
                #expect(report.failed.contains("peer.frame"))
                #expect(report.step("peer.tcp")?.state == "ok" && report.step("peer.hello")?.state == "ok")
                #expect(report.step("peer.frame")?.advice?.contains { $0.contains("mtu") } == true)
            }
        }

        @Test(
            "a network that isolates stations, and an unplugged cable: only this machine answers, and `peers:` is suggested",
            .enabled(if: nft != nil, "needs nft (Scripts/setup installs it)"))
        func isolated() async throws {
            try await Lab.with("h1", "h2") { lab in
                let nft = try #require(Self.nft)
                let rules = """
                    table bridge apart {
                        chain forward {
                            type filter hook forward priority 0; policy accept;
                            ether daddr & 01:00:00:00:00:00 == 01:00:00:00:00:00 ether type != arp drop
                        }
                    }
                    """
                try await lab.run(["switch", nft, "-f", "-"], input: Array(rules.utf8))
                try await lab.start("h1", "h2")
                try await lab.awaitStatus("h1") { $0.avahi.state == "running" }
                let report = try await Self.doctor(expecting: 0, of: lab)
                let step = try #require(report.step("multicast"))
                #expect(step.state == "warning" && step.message.contains("only this machine answers"), "\(step)")
                #expect(step.advice?.contains { $0.contains("guest networks") && $0.contains("peers:") } == true, "\(step)")
                // After the filter rule is removed, the other machine answers.
                try await lab.run(["switch", nft, "delete", "table", "bridge", "apart"])
                let joined = try await Self.doctor(expecting: 0, of: lab)
                #expect(joined.step("multicast")?.state == "ok", "\(joined)")
                // No carrier: the cable is unplugged at the switch.
                try await lab.run(["switch", "ip", "link", "set", "port1", "down"])
                let unplugged = try await Self.doctor(expecting: nil, of: lab)
                #expect(unplugged.step("multicast")?.state == "warning", "\(unplugged)")
                #expect(unplugged.step("multicast")?.message.contains("no carrier") == true, "\(unplugged)")
                #expect(unplugged.step("announcement")?.state != "ok", "\(unplugged)")
                try await lab.exec("h1", "ip", "link", "set", "eth0", "down")
                let down = try await Self.doctor(expecting: 1, of: lab)
                #expect(down.failed.contains("interfaces") && down.step("multicast")?.state != "ok", "\(down)")
            }
        }

        @Test("an address is not a peer's name: send, pair and doctor say where to configure it")
        func address() async throws {
            try await Lab.with("h1") { lab in
                try await lab.start("h1")
                for arguments in [
                    ["send", "--to", "10.77.0.9", "https://example.org/"], ["pair", "10.77.0.9"], ["peer", "show", "10.77.0.9"],
                    ["group", "add", "team", "10.77.0.9"], ["files", "10.77.0.9:"], ["peer", "block", "10.77.0.9"],
                    ["peer", "trust", "10.77.0.9"],
                ] {
                    let output = try await lab.run(["hexlist", "h1"] + arguments, expecting: 6)
                    #expect(output.err.contains("`peers: [\"10.77.0.9\"]`"), "\(output)")
                }
                // `peer add` expects a URI, so an address is a usage error, and no peer is looked up.
                let output = try await lab.run(["hexlist", "h1", "peer", "add", "10.77.0.9:24391"], expecting: 2)
                #expect(output.err.contains("`peers: [\"10.77.0.9"), "\(output)")
                let report = try await Self.doctor(peer: "10.77.0.9", expecting: 6, of: lab)
                #expect(report.step("peer")?.advice?.contains { $0.contains("`peers: [\"10.77.0.9\"]`") } == true)
            }
        }

        @Test("a peer that trusts no machine: trust on both sides is shown, and no step fails")
        func strangers() async throws {
            try await Lab.with("h1", "h2") { lab in
                let uuid = try await lab.startAndSettle()
                let report = try await Self.doctor(peer: uuid.other, expecting: 0, of: lab)
                #expect(report.ok && report.step("peer.trust")?.state == "warning")
                #expect(report.step("peer.trust")?.message.contains("stranger there") == true)
                try await lab.hexlist("h2", "peer", "trust", uuid.one)
                // The peer reports its trust by a later Hello, which takes a moment.
                var half = report
                try await Patience.until(or: "\(half)") {
                    half = try await Self.doctor(peer: uuid.other, expecting: 0, of: lab)
                    return half.step("peer.trust")?.message.contains("is trusted there") == true
                }
                #expect(half.step("peer.trust")?.advice?.contains("hexlist peer trust \(uuid.other)") == true)

                // A key file that disappears under a running daemon is reported before the next start fails.
                let key = "\(try await lab.path("state", on: "h1"))/identity.pem"
                try FileManager.default.moveItem(atPath: key, toPath: "\(key).away")
                #expect(try await Self.doctor(expecting: 1, of: lab).failed == ["identity"])
                try FileManager.default.copyItem(atPath: "\(try await lab.path("state", on: "h2"))/identity.pem", toPath: key)
                let other = try await Self.doctor(expecting: 1, of: lab)
                #expect(other.failed == ["identity"] && other.step("identity")?.message.contains("another key") == true)
            }
        }

        private static let nft = Program.path(of: "nft")
    }
}
