import DaemonTestSupport
import CoreMetrics
import HexlistModel
import HexlistNode
import HexlistStore
import TestSupport
import Testing

@testable import HexlistDaemon

@Suite("Metrics", .timeLimit(.minutes(5))) struct MetricsTests {
    @Test("a counter, a gauge and a histogram in Prometheus format") func text() {
        let registry = MetricsRegistry()
        Counter(label: "hexlist_hexes_received_total", dimensions: [("result", "stored")], factory: registry).increment(by: 3)
        // A second counter with the same label and dimensions adds to the first one.
        Counter(label: "hexlist_hexes_received_total", dimensions: [("result", "stored")], factory: registry).increment()
        Meter(label: "hexlist_build_info", dimensions: [("version", "1\"\n\\")], factory: registry).set(1)
        let timer = Timer(label: "hexlist_store_commit_seconds", factory: registry)
        for nanoseconds: Int64 in [100_000, 200_000, 1_500_000, 90_000_000_000] { timer.recordNanoseconds(nanoseconds) }
        // Metrics with invalid names, and with names that are registered for another kind of metric. All are ignored.
        Counter(label: "hexlist_nothing_total", factory: registry).increment()
        Meter(label: "hexlist_hexes_received_total", factory: registry).set(7)
        let lines = registry.text().split(separator: "\n").map(String.init)
        #expect(lines[0] == "# HELP hexlist_build_info Always 1; the label is the version of hexlistd.")
        #expect(lines[1] == "# TYPE hexlist_build_info gauge")
        #expect(lines[2] == #"hexlist_build_info{version="1\" \\"} 1"#)
        #expect(lines[5] == #"hexlist_hexes_received_total{result="stored"} 4"#)
        #expect(lines.contains(#"hexlist_store_commit_seconds_bucket{le="0.0002"} 2"#))
        #expect(lines.contains(#"hexlist_store_commit_seconds_bucket{le="0.002"} 3"#))
        #expect(lines.contains(#"hexlist_store_commit_seconds_bucket{le="30"} 3"#))
        #expect(lines.contains(#"hexlist_store_commit_seconds_bucket{le="+Inf"} 4"#))
        #expect(lines.suffix(2) == ["hexlist_store_commit_seconds_sum 90.0018", "hexlist_store_commit_seconds_count 4"])
    }

    @Test("each metric of the table exists from the start") func families() async throws {
        try await TestDaemon.with("ada") { daemons in
            let text = String(decoding: try await daemons[0].client.metrics(), as: UTF8.self)
            for family in MetricFamily.all { #expect(text.contains("\n# TYPE \(family.name) \(family.kind.rawValue)\n")) }
            #expect(text.contains("\nhexlist_hexes_refused_total{code=\"quotaExceeded\"} 0\n"))
            #expect(text.contains("\nhexlist_connections_refused_total{reason=\"per_address\"} 0\n"))
        }
    }

    @Test("both daemons count an exchange") func exchange() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await ada.awaitPeers(1)
            try await bob.awaitPeers(1)
            _ = try await ada.send(["https://example.org"], to: [bob.uuid])
            // A receipt is sent before its row is settled; after a simultaneous dial, one session is about to end.
            try await eventually { try await ada.values()["hexlist_outbox_rows{state=\"held\"}"] == 1 }
            try await eventually { try await bob.values()["hexlist_sessions{trust=\"stranger\"}"] == 1 }
            let (sent, received) = (try await ada.values(), try await bob.values())
            #expect(sent["hexlist_hexes_sent_total{result=\"held\"}"] == 1)
            #expect(sent["hexlist_send_receipt_seconds_count"] == 1)
            #expect(sent["hexlist_peers{state=\"verified\"}"] == 1)
            #expect(sent["hexlist_outbox_oldest_queued_seconds"] == 0)
            #expect(received["hexlist_hexes_received_total{result=\"held\"}"] == 1)
            #expect(received["hexlist_hexes{place=\"held\"}"] == 1)
            #expect(received["hexlist_receive_commit_seconds_count"] == 1)
            #expect((received["hexlist_store_commit_seconds_count"] ?? 0) >= 1)
            #expect((received["hexlist_events_total"] ?? 0) >= 1)
            #expect((received["process_resident_memory_bytes"] ?? 0) > 1_000_000)
            // A second scrape counts nothing twice.
            let again = try await bob.values()
            #expect(again["hexlist_events_total"] == received["hexlist_events_total"])
        }
    }

    @Test("refusals are counted by code") func refused() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await ada.awaitPeers(1)
            try await bob.awaitPeers(1)
            var configuration = await bob.node.configuration
            configuration.receiveFrom = .trusted
            await bob.node.reconfigure(configuration)
            let outcome = try await ada.send(["https://example.org"], to: [bob.uuid], wait: .stored)
            #expect(outcome.first?.state == .queued)
            #expect(try await bob.values()["hexlist_hexes_refused_total{code=\"notAccepting\"}"] == 1)
            #expect(try await ada.values()["hexlist_hexes_sent_total{result=\"deferred\"}"] == 1)
            #expect(try await ada.values()["hexlist_outbox_rows{state=\"queued\"}"] == 1)
        }
    }
}

extension TestDaemon {
    fileprivate func values() async throws -> [String: Double] {
        let text = String(decoding: try await client.metrics(), as: UTF8.self)
        let lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { $0.split(separator: " ") }
        return Dictionary(lines.map { (String($0[0]), Double($0[1]) ?? .nan) }) { first, _ in first }
    }
}
