import DaemonTestSupport
import HexlistAPI
import HexlistDiscovery
import HexlistModel
import HexlistSystem
import HexlistWire
import TestSupport
import Testing

@testable import HexlistDaemon
@testable import HexlistNode

@Suite("Results of doctor's steps", .timeLimit(.minutes(5)))
struct DoctorStepTests {
    private static func interface(
        _ name: String, up: Bool = true, running: Bool = true, loopback: Bool = false, multicast: Bool = true,
        _ addresses: [String] = ["10.0.0.1"]
    ) -> MachineInterface {
        MachineInterface(
            name: name, index: 2, isUp: up, isRunning: running, isLoopback: loopback, hasMulticast: multicast,
            addresses: addresses.compactMap { IPAddress($0) }.map {
                InterfaceAddress(interface: name, index: 2, address: $0, prefixLength: 24)
            })
    }

    @Test(
        "interfaces: one with a route to others is enough; none, or container interfaces only, are reported",
        arguments: [
            ([interface("eth0")], true, .ok), ([interface("lo", loopback: true)], true, .failed), ([], true, .failed),
            ([], false, .warning),
            ([interface("eth0", up: false)], true, .failed), ([interface("wg0", multicast: false)], true, .failed),
            ([interface("eth0", [])], true, .failed), ([interface("docker0")], true, .warning),
            ([interface("docker0"), interface("wlan0")], true, .ok), ([interface("eth0", running: false)], true, .warning),
        ] as [([MachineInterface], Bool, DoctorStep.State)])
    func interfaces(interfaces: [MachineInterface], usesMulticast: Bool, expected: DoctorStep.State) {
        let step = Doctor.interfaces(interfaces, usesMulticast: usesMulticast)
        #expect(step.state == expected)
        #expect(step.advice.isEmpty == (expected == .ok))
        for interface in interfaces where !interface.isLoopback { #expect(step.message.contains(interface.name)) }
    }

    @Test("interfaces: addresses on which the daemon does not listen are marked, and none left is a warning") func listen() {
        let interfaces = [Self.interface("eth0", ["192.168.7.2", "fd00::2"])]
        for (listen, state, isMarked) in [
            ([], .ok, []), (["0.0.0.0"], .ok, []), (["192.168.7.2"], .ok, ["fd00::2 outside of `listen`"]),
            (["127.0.0.1"], .warning, ["192.168.7.2 outside of `listen`", "fd00::2 outside of `listen`"]),
        ] as [([String], DoctorStep.State, [String])] {
            let step = Doctor.interfaces(interfaces, usesMulticast: true, listen: ListenAddresses(listen))
            #expect(step.state == state && step.message.components(separatedBy: "outside").count == isMarked.count + 1, "\(step)")
            for text in isMarked { #expect(step.message.contains(text)) }
            #expect(step.advice.isEmpty == (state == .ok))
        }
    }

    @Test("multicast: another machine must answer, and no interface may fail")
    func multicast() {
        let own = "[0A0B0C0D]"
        let good = ("eth0", MulticastQuery.Outcome.answered(["ada \(own)", "bob [11111111]"], byOthers: true))
        #expect(Doctor.multicast([good], own: own).state == .ok)
        let others = Doctor.multicast([("eth0", .answered(["bob [11111111]"], byOthers: true))], own: own)
        #expect(others.state == .ok && others.message.contains("from others"))
        for bad in [MulticastQuery.Outcome.silent, .failed("Network is down")] {
            let step = Doctor.multicast([good, ("wlan0", bad)], own: own)
            #expect(step.state == .failed && step.message.contains("wlan0") && step.advice.contains { $0.contains("5353") })
        }
    }

    @Test(
        "multicast: a reply of this machine, under any name, and an interface without carrier prove nothing",
        arguments: [
            ([("eth0", .answered(["ada [0A0B0C0D]"], byOthers: false))], .warning, ["on eth0 only this machine answers"], true),
            // Only a second daemon on this machine answers.
            ([("eth0", .answered(["bob [11111111]"], byOthers: false))], .warning, ["on eth0 only this machine answers"], true),
            ([("eth0", .noCarrier)], .warning, ["eth0 has no carrier"], false),
            (
                [("eth0", .noCarrier), ("wlan0", .answered(["ada [0A0B0C0D]"], byOthers: false))], .warning,
                ["eth0 has no carrier", "on wlan0 only this machine answers"], true
            ),
            (
                [("eth0", .answered([], byOthers: true)), ("docker0", .answered(["ada [0A0B0C0D]"], byOthers: false))], .ok,
                ["eth0 (from others", "on docker0 only this machine answers"], false
            ),
        ] as [([(String, MulticastQuery.Outcome)], DoctorStep.State, [String], Bool)])
    func alone(outcomes: [(String, MulticastQuery.Outcome)], state: DoctorStep.State, words: [String], namesPeers: Bool) {
        let step = Doctor.multicast(outcomes.map { (name: $0.0, outcome: $0.1) }, own: "[0A0B0C0D]")
        #expect(step.state == state && words.allSatisfy(step.message.contains), "\(step)")
        #expect(step.advice.isEmpty == (state == .ok))
        let isNamed = step.advice.contains { $0.contains("peers:") && $0.contains("guest networks") && $0.contains("client isolation") }
        #expect(isNamed == namesPeers)
    }

    @Test("a hidden machine answers no queries, so missing replies are not a failure")
    func hiding() {
        func look(_ outcomes: [(String, MulticastQuery.Outcome)]) -> DoctorStep {
            Doctor.multicast(outcomes.map { (name: $0.0, outcome: $0.1) }, own: "[0A0B0C0D]", isAnnounced: false)
        }
        #expect(look([("eth0", .answered(["bob [11111111]"], byOthers: true))]).state == .ok)
        #expect(look([("eth0", .silent)]).state == .warning)
        #expect(look([("eth0", .silent), ("wlan0", .failed("Network is down"))]).state == .failed)
        #expect(Doctor.hiding.state == .ok && Doctor.hiding.message.contains("announce: false"))
        #expect(Doctor.advice(ghost: "unverified", isHiding: true) != Doctor.advice(ghost: "unverified"))
    }

    @Test("an announcement seen on loopback only is invisible to others")
    func announcement() {
        let interfaces = [Self.interface("lo", loopback: true), Self.interface("eth0")]
        for (seen, state) in [([], .failed), (["lo"], .failed), (["lo", "eth0"], .ok), (["eth0"], .ok)] as [([String], DoctorStep.State)] {
            let step = Doctor.announcement(seen.map { ($0, false) }, interfaces)
            #expect(step.state == state && step.advice.isEmpty == (state == .ok), "\(seen)")
        }
        let unplugged = interfaces.prefix(1) + [Self.interface("eth0", running: false)]
        let step = Doctor.announcement([("eth0", false)], Array(unplugged))
        #expect(step.state == .warning && step.message.contains("without a carrier") && !step.advice.isEmpty)
    }

    @Test(
        "avahi-daemon.conf: keys that prevent announcing, and keys that are set",
        arguments: [
            ("[publish]\ndisable-user-service-publishing=yes\n", ["disable-user-service-publishing=yes"]),
            (" [publish] \n  disable-publishing = true\n", ["disable-publishing=true"]),
            ("[server]\ndeny-interfaces=eth0,wlan0\nallow-interfaces=\n", ["deny-interfaces=eth0,wlan0"]),
            ("[server]\nallow-interfaces=eth1\n[publish]\ndisable-publishing=1\n", ["allow-interfaces=eth1", "disable-publishing=1"]),
            // The setting is `no`, commented out, or in another section.
            ("[publish]\ndisable-publishing=no\n#disable-user-service-publishing=yes\n;disable-publishing=yes\n", []),
            ("[wide-area]\ndisable-publishing=yes\n[publish]\ndeny-interfaces=eth0\n", []), ("", []), ("=\n[\n]\n[publish\n", []),
        ])
    func avahi(text: String, found: [String]) {
        #expect(AvahiConfiguration(text: text).found == found)
        let advice = AvahiConfiguration.advice(text)
        #expect(advice.contains(AvahiConfiguration.path) && found.allSatisfy { advice.contains("`\($0)`") })
        let all = ["disable-user-service-publishing", "disable-publishing", "allow-interfaces", "deny-interfaces"]
        #expect(all.allSatisfy(advice.contains))
        #expect(found.isEmpty == (advice == AvahiConfiguration.advice(nil)))
        #expect(Doctor.announcement([], [Self.interface("eth0")], avahi: advice).advice.first == advice)
    }

    @Test("an interface with addresses but without multicast: the advice is the command that enables it")
    func withoutMulticast() {
        let step = Doctor.interfaces([Self.interface("eth0", multicast: false)], usesMulticast: true)
        #expect(step.state == .failed && step.advice.contains { $0.hasSuffix("sudo ip link set dev eth0 multicast on") })
    }

    @Test(
        "reachable: an answered request to dial back counts more than an old session; a peer that did not try does not count",
        arguments: [
            ([], nil, .warning, "No peer"), ([], 30, .ok, "connected to it from 10.0.0.2"), ([], 3_600, .warning, "60 minutes ago"),
            ([.result(.reached)], nil, .ok, "at 10.0.0.1:24391 just now"), ([.result(.timeout)], 30, .failed, "no answer"),
            ([.result(.timeout), .result(.reached)], nil, .ok, "just now"), ([.noReply], 3_600, .warning, "60 minutes ago"),
            ([.result(.notTrusted)], nil, .warning, "No peer"), ([.result(.notTrusted), .cannotAsk], 30, .ok, "connected to it from"),
            ([.result(.notTrusted), .result(.refused)], 30, .failed, "was refused"),
        ] as [([DialBackOutcome], Int?, DoctorStep.State, String)])
    func reachable(outcomes: [DialBackOutcome], age: Int?, state: DoctorStep.State, words: String) {
        let step = Doctor.reachable(
            24_391, outcomes.map { ("ada", "10.0.0.1", $0) }, dialledIn: age.map { ("bob", "10.0.0.2", .seconds($0)) })
        #expect(step.state == state && step.message.contains(words), "\(step.message)")
        #expect(step.advice.isEmpty == (state == .ok))
    }

    @Test("domain: answers, lists no peer, does not answer")
    func domains() {
        #expect(Doctor.domain(DomainStatus("a.example", .running)).state == .ok)
        let empty = Doctor.domain(DomainStatus("a.example", .degraded("nobody is in a.example")))
        #expect(
            empty.state == .warning && empty.message.contains("nobody") && empty.advice.contains { $0.contains("_hexlist._tcp.a.example") })
        let silent = Doctor.domain(DomainStatus("a.example", .unavailable("a.example is silent")))
        #expect(silent.state == .failed && silent.message.contains("silent") && silent.advice.contains { $0.contains("resolv.conf") })
    }

    @Test("a configured address is found by its name, with or without port, even if it never answered")
    func place() async throws {
        try await TestDaemon.with("one") { daemons in
            var configuration = await daemons[0].node.configuration
            configuration.peers = [StaticPeer(host: "127.0.0.1", port: 1)]
            await daemons[0].node.reconfigure(configuration)
            for text in ["127.0.0.1:1", "127.0.0.1"] {
                let report = try await daemons[0].client.doctor(peer: text)
                let steps = report.steps.filter { $0.step.hasPrefix("peer") && $0.step != "peers" }
                try #require(steps.map(\.step) == ["peer", "peer.resolve", "peer.tcp"])
                #expect(steps.map(\.state) == [.failed, .ok, .failed] && steps[0].message.contains("127.0.0.1:1"))
                #expect(steps[2].message.contains("refused") && steps[0].code == nil)
            }
            let other = try await daemons[0].client.doctor(peer: "127.0.0.2")
            #expect(other.steps.first { $0.step == "peer" }?.code == "notFound")
        }
    }

    @Test("for the address of a blocked peer, the step reports the block and how to end it")
    func blockedPlace() async throws {
        try await TestDaemon.with("one", "two") { daemons in
            let (one, two) = (daemons[0], daemons[1])
            var configuration = await one.node.configuration
            let port = await two.node.diagnostics.facts().status.port
            configuration.peers = [StaticPeer(host: "127.0.0.1", port: port)]
            await one.node.reconfigure(configuration)
            func awaitState(_ isMet: (PeerDirectory.StaticAddressState?) -> Bool) async throws {
                try await eventually { isMet(await one.node.diagnostics.facts().staticPeers.first?.state) }
            }
            try await awaitState { $0 == .answered(two.node.id) }
            _ = try await one.client.block(two.uuid)
            try await awaitState { if case .away(two.node.id, _)? = $0 { true } else { false } }
            let steps = try await one.client.doctor(peer: "127.0.0.1:\(port)").steps
            let peer = try #require(steps.first { $0.step == "peer" })
            #expect(peer.state == .failed && peer.message.contains("two") && peer.advice == ["hexlist peer unblock \(two.uuid)"])
            #expect(steps.contains { $0.step == "peer.tls" } && !steps.contains { $0.step == "peer.hello" })
        }
    }

    private static func row(
        _ state: PeerView.State, _ trust: Trust, reason: String? = nil
    ) -> PeerView {
        PeerView(
            uuid: PeerID(.init(high: 1, low: 2)), name: "ada", alias: nil, state: state, reason: reason, why: "because", trust: trust,
            fingerprint: nil, version: nil, boot: nil, endpoints: [], lastSeen: nil, unread: 0)
    }

    @Test("a peer that now answers at an address may be blocked; an address that does not answer may have belonged to a known peer")
    func placeRecords() throws {
        let row = Self.row(.away, .blocked)
        let place = Doctor.ConfiguredAddress(address: StaticAddress(host: "10.0.0.2", port: 24_391), state: .failed("nothing answers"))
        let blocked = Doctor.record(place, row.uuid, [row])
        #expect(blocked.state == .failed && blocked.message.contains("blocked") && blocked.advice.contains { $0.contains("unblock") })
        #expect(Doctor.record(Self.row(.verified, .blocked), others: []) == blocked)
        #expect(Doctor.record(place, row.uuid, [Self.row(.away, .stranger)]).state == .ok)
        #expect(Doctor.record(place, nil, []).message == "10.0.0.2:24391, named under `peers:`, cannot be reached: nothing answers.")
    }

    @Test("each reason for hiding a peer is explained with advice")
    func ghosts() {
        for reason in GhostReason.allCases {
            let step = Doctor.record(Self.row(.ghost, .stranger, reason: reason.rawValue), others: [])
            #expect(step.state == .failed && step.message.contains(reason.rawValue) && step.message.contains("because"))
            switch reason {
            case .self, .duplicate: break  // never the reason for a missing peer
            case .stale, .conflict, .impostor, .invalid, .unverified: #expect(!step.advice.isEmpty)
            }
        }
    }

    @Test("a long frame that is lost fails the step; trust is shown from both sides")
    func sessions() {
        #expect(Doctor.frame(.answered(bytes: 65_000, after: .milliseconds(3))).state == .ok)
        #expect(Doctor.frame(.unanswered(bytes: 65_000)).state == .failed)
        #expect(Doctor.frame(.unanswered(bytes: 0)).message.contains("not even to a short frame"))
        #expect(Doctor.frame(.notNow).state == .warning)
        let id = PeerID(.init(high: 1, low: 2))
        func facts(_ bytes: Int) -> SessionFacts {
            SessionFacts(address: "10.0.0.1", isDialledHere: true, boot: BootNonce(1), version: "1", maxFrameBytes: bytes, dialsBack: true)
        }
        #expect(Doctor.trust(id, .trusted, .trusted).state == .ok)
        #expect(Doctor.trust(id, .trusted, .stranger).state == .warning)
        #expect(Doctor.trust(id, .stranger, .trusted).state == .warning)
        #expect(Doctor.trust(id, .blocked, .trusted).advice.contains { $0.contains("unblock") })
        #expect(Doctor.trust(id, .trusted, .blocked).state == .failed)
        // The result of the ping counts more than the limit in the peer's Hello.
        let answered = PingOutcome.answered(bytes: 9, after: .zero)
        for (bytes, ping, dialBack, expected) in [
            (1 << 20, answered, .cannotAsk, .trusted), (64 << 10, answered, .noReply, .stranger),
            (1 << 20, answered, .result(.notTrusted), .stranger), (64 << 10, answered, .result(.refused), .trusted),
            (1 << 20, .ended("blocked", isBlocked: true), .result(.reached), .blocked), (1 << 20, .ended("lost"), .cannotAsk, .trusted),
        ] as [(Int, PingOutcome, DialBackOutcome, Trust)] {
            #expect(Doctor.peersTrust(facts(bytes), ping, dialBack) == expected, "\(bytes) \(ping) \(dialBack)")
        }
        for result in DialBack.Result.allCases where result != .reached {
            #expect(Doctor.dialBack(.result(result))?.state == (result == .notTrusted ? .warning : .failed))
        }
        #expect(Doctor.dialBack(.result(.reached))?.state == .ok)
        #expect(Doctor.dialBack(.cannotAsk) == nil)
    }

    @Test("a peer that blocks this machine is reported as blocking, without a second message about trust")
    func blockedThere() async throws {
        try await TestDaemon.with("one", "two") { daemons in
            let (one, two) = (daemons[0], daemons[1])
            try await one.awaitPeers(1)
            try await two.awaitPeers(1)
            _ = try await one.client.trust(two.uuid, fingerprint: nil)
            _ = try await two.client.trust(one.uuid, fingerprint: nil)
            _ = try await two.client.block(one.uuid)
            let steps = try await one.client.doctor(peer: two.uuid).steps
            let told = steps.filter { $0.step == "peer.trust" }
            #expect(told == [Doctor.trust(two.node.id, .trusted, .blocked)], "\(steps)")
            #expect(!steps.contains { $0.message.contains("trusted there") || $0.message.contains("did not prove") }, "\(steps)")
        }
    }

    @Test("doctor and status report a refused configuration, one that needs a restart, and failing hooks")
    func configurationAndHooks() async throws {
        try await TestDaemon.with("one") { daemons in
            let one = daemons[0]
            func step(_ name: String) async throws -> DoctorStep? { try await one.client.doctor(peer: nil).steps.first { $0.step == name } }
            #expect(try await step("configuration")?.state == .ok)
            #expect(try await step("hooks") == nil)
            one.configuration.refused(HexlistError(.configuration, "line 2: there is no key `x`.", hint: "Did you mean `y`?"))
            one.hookFaults.folderRead(fault: nil, notAllowed: ["peer.up": "it is not executable"], running: ["hex.received"])
            one.hookFaults.ran("hex.received", "it ended with status 3 (event 7)")
            let refused = try #require(try await step("configuration"))
            #expect(refused.state == .failed && refused.message.contains("line 2") && refused.advice.first == "Did you mean `y`?")
            let hooks = try #require(try await step("hooks"))
            #expect(hooks.state == .warning && hooks.message.contains("status 3") && hooks.message.contains("not executable"))
            let status = try await one.client.status()
            #expect(status.configurationFault?.contains("line 2") == true)
            #expect(status.hookFaults.map(\.hook) == ["hex.received", "peer.up"])
            one.hookFaults.ran("hex.received", nil)
            one.hookFaults.folderRead(fault: nil, notAllowed: [:], running: ["hex.received"])
            #expect(try await step("hooks")?.state == .ok)
            var settings = Settings(name: "one")
            settings.given["api.connections"] = Settings.ProvidedValue(texts: ["9"], source: .file(line: 3))
            settings.api.connections = 9
            #expect(one.configuration.took(settings) == ["api.connections"])
            #expect(try await step("configuration")?.state == .warning)
            let item = try #require(try await one.client.configuration().items.first { $0.key == "api.connections" })
            #expect(item.value == "64" && item.waiting == "9" && item.source == .default)
            #expect(try await one.client.status().configurationFault == nil)
        }
    }

    @Test("over the API: a healthy daemon, a peer by name, and an unknown peer")
    func report() async throws {
        try await TestDaemon.with("one", "two") { daemons in
            let (one, two) = (daemons[0], daemons[1])
            try await one.awaitPeers(1)
            let report = try await one.client.doctor(peer: two.node.id.description)
            func step(_ name: String, of report: DoctorReport) -> DoctorStep? { report.steps.first { $0.step == name } }
            // These daemons are announced on ::1 too, but do not listen there.
            #expect(step("peer.tcp", of: report)?.state == .warning)
            for name in ["store", "disk", "identity", "port", "peer", "peer.tls", "peer.hello", "peer.frame"] {
                #expect(step(name, of: report)?.state == .ok, "\(name): \(String(describing: step(name, of: report)))")
            }
            let unknown = try await one.client.doctor(peer: "nobody")
            #expect(step("peer", of: unknown)?.code == "notFound" && step("peer", of: unknown)?.state == .failed)
            let own = try await one.client.doctor(peer: one.node.id.description)
            #expect(step("peer", of: own)?.state == .failed)
        }
    }
}
