import Foundation
import Testing

/// Debian's Prometheus reads the metrics of a daemon.
@Suite(
    "Metrics and Prometheus", .timeLimit(.minutes(Patience.test)), .ifBuilt)
struct MetricsTests {
    private static let checker = Program.path(of: "promtool")
    private static let canScrape = Program.path(of: "prometheus") != nil && Program.path(of: "socat") != nil

    @Test("promtool reports no problem", .enabled(if: checker != nil, "promtool is not installed (prometheus)"))
    func promtool() async throws {
        try await LocalDaemon.with { daemon in
            try await daemon.running {
                let metrics = try await daemon.hexlist("status", "--metrics")
                #expect(metrics.status == 0, "\(metrics)")
                let checked = try await Command.run([try #require(Self.checker), "check", "metrics"], input: Array(metrics.out.utf8))
                #expect(checked.status == 0, "\(checked)")
                #expect(checked.out + checked.err == "")
            }
        }
    }

    @Test("Prometheus scrapes as described in the page", .enabled(if: canScrape, "prometheus or socat is not installed"))
    func scrape() async throws {
        try await LocalDaemon.with { daemon in
            try await daemon.running {
                let (port, own) = (try LoopbackPort.free(), try LoopbackPort.free())
                let answer = try RunningCommand(
                    [
                        "/usr/bin/env", "socat", "-d", "-d", "-lf/dev/stdout", "TCP-LISTEN:\(port),bind=127.0.0.1,reuseaddr,fork",
                        "EXEC:\(Checkout.root)/Examples/metrics/answer",
                    ], environment: daemon.environment.merging(["HEXLIST": Checkout.hexlist]) { $1 }, seconds: Patience.server)
                try daemon.folder.write(
                    """
                    scrape_configs:
                      - {job_name: hexlist, scrape_interval: 5s, static_configs: [{targets: ["127.0.0.1:\(port)"]}]}

                    """, to: "prometheus.yml")
                let prometheus = try RunningCommand(
                    [
                        "/usr/bin/env", "prometheus", "--config.file=\(daemon.folder.path)/prometheus.yml",
                        "--storage.tsdb.path=\(daemon.folder.path)/tsdb", "--web.listen-address=127.0.0.1:\(own)",
                    ], seconds: Patience.server)
                func awaitAnswer(_ query: String, _ fits: (String) -> Bool) async throws {
                    var last = ""
                    try await Patience.until(or: "\(query): \(last)") {
                        last = try await Command.run(["curl", "--silent", "http://127.0.0.1:\(own)/api/v1/query?query=\(query)"]).out
                        return fits(last)
                    }
                }
                try await awaitAnswer("hexlist_build_info") { $0.contains(#""version":""#) }
                try await awaitAnswer("up") { $0.contains(#""job":"hexlist"},"value":"#) && $0.contains(#","1"]"#) }
                await prometheus.stop()
                await answer.stop()
            }
        }
    }

    @Test("node_exporter's file is written atomically, and removed when the daemon ends") func textfile() async throws {
        try await LocalDaemon.with { daemon in
            let script = "\(Checkout.root)/Examples/metrics/textfile"
            let environment = daemon.environment.merging(["HEXLIST": Checkout.hexlist]) { $1 }
            let file = "\(daemon.folder.path)/hexlist.prom"
            try await daemon.running {
                let written = try await Command.run([script, daemon.folder.path], environment: environment)
                #expect(written.status == 0, "\(written)")
                #expect(try String(contentsOfFile: file, encoding: .utf8).hasSuffix("\n"))
            }
            let gone = try await Command.run([script, daemon.folder.path], environment: environment)
            #expect(gone.status == 1 && !FileManager.default.fileExists(atPath: file), "\(gone)")
        }
    }
}
