import Foundation
import HexlistDiscovery
import HexlistModel
import TestSupport
import Testing

@testable import HexlistAvahi

/// Serialized because the bus address is a property of the process.
@Suite(.serialized) struct AvahiDiscoveryTests {
    private func discovery() -> AvahiDiscovery {
        _ = PrivateAvahi.folder
        return AvahiDiscovery()
    }

    private func announcement(_ name: String, port: UInt16) -> ServiceAnnouncement {
        ServiceAnnouncement(instanceName: name, port: port, txt: [("txtvers", "1"), ("id", "x"), ("boot", "1")])
    }

    /// Starts a discovery that opens every resolver, as a directory would.
    private func start(_ discovery: AvahiDiscovery, _ name: String, port: UInt16) -> Recorder {
        let recorder = Recorder()
        discovery.start(publishing: announcement(name, port: port)) { event in
            recorder.take(event)
            if case .appeared(let record, _) = event { discovery.resolve(record, open: true) }
        }
        return recorder
    }

    @Test("without a bus, discovery is unavailable and says how to fix it", .timeLimit(.minutes(5)))
    func noBus() async throws {
        let discovery = discovery()
        let recorder = start(discovery, "nobody", port: 2_000)
        try await recorder.until(\.isUnavailable)
        guard case .backend(.unavailable(let text))? = recorder.events.first(where: \.isUnavailable) else { return }
        #expect(text.contains("systemctl start"))
        discovery.publish(announcement("still nobody", port: 2_001))
        discovery.resolve(
            Record(key: InstanceKey(name: "x", type: "_hexlist._tcp", domain: "local"), interface: 1, ipv6: false), open: true)
        await discovery.stop()
        let count = recorder.events.count
        await discovery.stop()
        discovery.publish(announcement("gone", port: 2_002))
        #expect(recorder.events.count == count)
    }

    @Test func stoppedBeforeItStarted() async {
        let discovery = discovery()
        await discovery.stop()
        discovery.start(publishing: announcement("x", port: 1)) { _ in Issue.record("it is stopped") }
        await discovery.stop()
    }

    @Test(
        "a peer appears, changes, survives restarts of the daemon and the bus, and is withdrawn", .timeLimit(.minutes(5)),
        .enabled(if: PrivateAvahi.obstacle == nil, "needs dbus-daemon, avahi-daemon, ip and unshare, and namespaces to run them in"),
        .enabled(
            if: LongTests.areWanted,
            "in `make test-long` only: an avahi-daemon whose bus was killed may spin for ever"))
    func wholeLife() async throws {
        let avahi = PrivateAvahi()
        let (one, two, three) = (discovery(), discovery(), discovery())
        let seen = start(one, "One", port: 3_000)
        try await seen.until(\.isUnavailable)  // the discovery was started before Avahi
        try avahi.startBus()
        try avahi.startDaemon()
        try await seen.until(\.isRunning)
        try await seen.until { $0.isResolution(of: "One", port: 3_000) }

        // A second instance, on both IP versions, with an unchanged TXT record.
        let other = start(two, "Two", port: 4_000)
        try await seen.until { $0.isResolution(of: "Two", port: 4_000) }
        try await seen.until { $0.isResolution(of: "Two", port: 4_000, ipv6: true) }
        try await other.until { $0.isResolution(of: "One", port: 3_000) }
        for case .resolved(let record, let resolution) in seen.events where record.key.name == "Two" {
            #expect(resolution.txt == ["txtvers=1", "id=x", "boot=1"].map { Array($0.utf8) })
            #expect(resolution.address.contains(":") == record.ipv6)
        }

        // The open resolver reports a new port without a withdrawal.
        two.publish(announcement("Two", port: 4_001))
        try await seen.until { $0.isResolution(of: "Two", port: 4_001) }
        #expect(!seen.events.contains { $0.isWithdrawal(of: "Two") })

        // The instance gets another name.
        two.publish(announcement("Deux", port: 4_001))
        try await seen.until { $0.isResolution(of: "Deux", port: 4_001) }
        try await seen.until { $0.isWithdrawal(of: "Two") }

        // A name collision appends a number. A name that is too long is reported; the next name clears the error.
        let third = start(three, "Deux", port: 5_000)
        try await seen.until { $0.isResolution(of: "Deux #2", port: 5_000) }
        three.publish(announcement(String(repeating: "x", count: 64), port: 5_000))
        try await third.until { if case .backend(.degraded) = $0 { true } else { false } }
        three.publish(announcement("Trois", port: 5_000))
        try await seen.until { $0.isResolution(of: "Trois", port: 5_000) }

        // The daemon dies, then the bus. Everything is announced and found again.
        for isBus in [false, true] {
            seen.clear()
            if isBus { avahi.killBus() }
            avahi.killDaemon()
            try await seen.until(\.isUnavailable)
            seen.clear()
            if isBus { try avahi.startBus() }
            try avahi.startDaemon()
            try await seen.until(\.isRunning)
            try await seen.until { $0.isResolution(of: "One", port: 3_000) }
            try await seen.until { $0.isResolution(of: "Deux", port: 4_001) }
            try await seen.until { $0.isResolution(of: "Trois", port: 5_000) }
        }

        await two.stop()
        try await seen.until { $0.isWithdrawal(of: "Deux") }
        await three.stop()
        await one.stop()
    }
}
