import HexlistAPI
import HexlistDiscovery
import HexlistModel
import HexlistWire
import Testing

@testable import HexlistDaemon
@testable import HexlistNode

@Suite("Doctor's findings")
struct DoctorStepTests {
    private static func interface(
        _ name: String, up: Bool = true, running: Bool = true, loopback: Bool = false, multicast: Bool = true,
        _ addresses: [String] = ["10.0.0.1"]
    ) -> MachineInterface {
        MachineInterface(
            name: name, index: 2, isUp: up, isRunning: running, isLoopback: loopback, hasMulticast: multicast, addresses: addresses)
    }

    @Test(
        "interfaces: one that leads to others is enough; none, and only those of containers, are told",
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

    @Test("multicast: every interface has to answer, by whomever")
    func multicast() {
        let own = "[0A0B0C0D]"
        let good = ("eth0", MulticastQuery.Outcome.answered(["ada \(own)"]))
        #expect(Doctor.multicast([good], own: own).state == .ok)
        let others = Doctor.multicast([("eth0", .answered(["bob [11111111]"]))], own: own)
        #expect(others.state == .ok && others.message.contains("from others"))
        for bad in [MulticastQuery.Outcome.silent, .failed("Network is down")] {
            let step = Doctor.multicast([good, ("wlan0", bad)], own: own)
            #expect(step.state == .failed && step.message.contains("wlan0") && step.advice.contains { $0.contains("5353") })
        }
    }

    @Test("a peer hidden for any reason is explained, and each reason has something to do")
    func ghosts() {
        for reason in GhostReason.allCases {
            let row = PeerView(
                uuid: PeerID(.init(high: 1, low: 2)), name: "ada", alias: nil, state: .ghost, reason: reason.rawValue, why: "because",
                trust: .stranger, fingerprint: nil, version: nil, boot: nil, endpoints: [], lastSeen: nil, unread: 0)
            let step = Doctor.record(row, others: [])
            #expect(step.state == .failed && step.message.contains(reason.rawValue) && step.message.contains("because"))
            switch reason {
            case .self, .duplicate: break  // never the reason a peer is missing
            case .stale, .conflict, .impostor, .invalid, .unverified: #expect(!step.advice.isEmpty)
            }
        }
    }

    @Test("a long frame that is swallowed fails, and trust is told from both sides")
    func sessions() {
        #expect(Doctor.frame(.answered(bytes: 65_000, after: .milliseconds(3))).state == .ok)
        #expect(Doctor.frame(.unanswered(bytes: 65_000)).state == .failed)
        #expect(Doctor.frame(.notNow).state == .warning)
        var row = PeerView(
            uuid: PeerID(.init(high: 1, low: 2)), name: "ada", alias: nil, state: .verified, reason: nil, why: nil, trust: .trusted,
            fingerprint: nil, version: nil, boot: nil, endpoints: [], lastSeen: nil, unread: 0)
        func facts(_ bytes: Int) -> SessionFacts {
            SessionFacts(address: "10.0.0.1", isDialledHere: true, boot: BootNonce(1), version: "1", maxFrameBytes: bytes, dialsBack: true)
        }
        #expect(Doctor.trust(row, facts(1 << 20)).state == .ok)
        #expect(Doctor.trust(row, facts(64 << 10)).state == .warning)
        row.trust = .stranger
        #expect(Doctor.trust(row, facts(1 << 20)).state == .warning)
        row.trust = .blocked
        #expect(Doctor.trust(row, facts(1 << 20)).advice.contains { $0.contains("unblock") })
        for result in DialBack.Result.allCases where result != .reached {
            #expect(Doctor.dialBack(.result(result))?.state == (result == .notTrusted ? .warning : .failed))
        }
        #expect(Doctor.dialBack(.result(.reached))?.state == .ok)
        #expect(Doctor.dialBack(.cannotAsk) == nil)
    }

    @Test("through the API: a healthy daemon, a peer by name, and no such peer")
    func report() async throws {
        try await TestDaemon.with("one", "two") { daemons in
            let (one, two) = (daemons[0], daemons[1])
            for try await _ in one.node.changes() where try await !one.node.peers().filter({ $0.state == .verified }).isEmpty { break }
            let report = try await one.client.doctor(peer: two.node.id.description)
            func step(_ name: String, of report: DoctorReport) -> DoctorStep? { report.steps.first { $0.step == name } }
            // These daemons are announced on ::1 as well, and do not listen there.
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
