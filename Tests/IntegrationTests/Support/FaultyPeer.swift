import Foundation
import TestSupport
import Testing

/// Tests/Faults/faulty-peer on a host of a lab: a peer with scripted behaviour, which can be changed at any time.
struct FaultyPeer: Sendable {
    /// A line of the program's output.
    struct Line: Decodable, Sendable {
        var uuid: String?
        var event: String?
        var description: String?
        /// The message of a Bye.
        var message: String?
        var reason: String?
        var statuses: [String: Int]?
    }

    static let program = "\(Checkout.root)/Tests/Faults/faulty-peer"

    let uuid: String
    private let folder: TemporaryFolder
    private let running: RunningCommand

    /// Runs the program as a server while `test` runs.
    static func with(
        _ behaviour: String, on host: String = "h2", port: Int = 25_000, announcing name: String? = nil, of lab: Lab,
        seconds: Int = Patience.server,
        test: (FaultyPeer) async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        try folder.write(behaviour, to: "behaviour")
        let running = try lab.running(
            ["exec", host, program, "serve", folder.path, "--port", "\(port)"] + (name.map { ["--announce", $0] } ?? []), seconds: seconds)
        do {
            let uuid = try await running.first { try line($0).uuid }
            try await test(FaultyPeer(uuid: uuid, folder: folder, running: running))
        } catch {
            await running.stop()
            throw error
        }
        await running.stop()
    }

    /// Runs the program as a client that dials a hexlistd and sends. Returns the lines that it printed.
    static func send(
        _ what: String, folder: TemporaryFolder, from host: String = "h2", to target: String = "h1", _ arguments: String..., of lab: Lab
    ) async throws -> [Line] {
        let address = try await lab.path("address", on: target)
        let port = try await lab.status(target).port
        let output = try await lab.run(["exec", host, program, "send", folder.path, address, "\(port)", what] + arguments)
        return try JSONLines.decode(output.out)
    }

    func behave(_ behaviour: String) throws { try folder.write(behaviour, to: "behaviour") }

    /// The next event of a kind. Earlier ones are discarded.
    func next(_ event: String) async throws { _ = try await running.first { try Self.line($0).event == event ? true : nil } }

    /// The next Bye with this code. Byes with other codes, such as that of an idle session, are discarded.
    func nextBye(_ code: String) async throws {
        _ = try await running.first { text -> Line? in
            let line = try Self.line(text)
            return line.event == "bye" && line.message?.hasPrefix(code) == true ? line : nil
        }
    }

    /// The descriptions of the stored hexes, in order, including repeats.
    func stored() throws -> [String] {
        guard let text = try? folder.text("stored") else { return [] }
        return text.split(separator: "\n").map(String.init)
    }

    private static func line(_ text: String) throws -> Line {
        guard let line = try JSONLines.decode(text, as: Line.self).first else { throw Command.Failure("an empty line") }
        return line
    }
}

struct OutboxRowShape: Decodable, Sendable {
    var outboxID: Int64
    var peer: String
    var state: String
    var attempts: Int
    var waitingFor: String?
    var nextAttemptAt: String?
    var lastError: String?
}

/// The last line of a bulk send.
struct BulkSummaryRow: Decodable, Sendable {
    struct Counts: Decodable, Sendable {
        var lines: Int
        var invalid: Int
        var accepted: Int
        var stored: Int
        var rejected: Int
        var failed: Int
        var queued: Int
    }

    var summary: Counts
}

extension Lab {
    /// Queues hexes with these descriptions in one stream through the local API. Returns once each is durable in the outbox, or with `wait`
    /// `stored` once each is final or cannot continue.
    @discardableResult
    func bulk(
        _ host: String, to peer: String, _ descriptions: [String], padding: Int = 0, wait: String = "queued",
        timeout: Int = Patience.state
    ) async throws -> BulkSummaryRow.Counts {
        let pad = String(repeating: "x", count: padding)
        let body = descriptions.enumerated()
            .map { #"{"hexDescription":"\#($1)","links":[{"url":"https://example.org/\#($0)/\#(pad)"}]}"# + "\n" }.joined()
        let socket = try await path("socket", on: host)
        let output = try await run(
            [
                "exec", host, "curl", "--silent", "--show-error", "--fail-with-body", "--unix-socket", socket, "--header",
                "content-type: application/x-ndjson", "--data-binary", "@-",
                "http://localhost/v1/sends?to=\(peer)&wait=\(wait)&timeout=\(timeout)",
            ], input: Array(body.utf8))
        guard let last = output.out.split(separator: "\n").last,
            let summary = try JSONLines.decode(String(last), as: BulkSummaryRow.self).first
        else { throw Command.Failure("no summary: \(output)") }
        return summary.summary
    }

    /// The queued and failed rows in this host's outbox.
    func outbox(_ host: String, to peer: String? = nil) async throws -> [OutboxRowShape] {
        try JSONLines.decode(try await run(["hexlist", host, "outbox", "list", "--json"] + (peer.map { ["--to", $0] } ?? [])).out)
    }

    /// The first rows of the outbox, a query whose cost does not depend on the number of rows.
    private func outboxHead(_ host: String) async throws -> [OutboxRowShape] {
        let socket = try await path("socket", on: host)
        let states = ["queued", "sending", "failed", "rejected"].map { "state=\($0)" }.joined(separator: "&")
        let output = try await run(
            [
                "exec", host, "curl", "--silent", "--show-error", "--fail-with-body", "--unix-socket", socket,
                "http://localhost/v1/outbox?limit=100&\(states)",
            ])
        return try JSONDecoder().decode(Items<OutboxRowShape>.self, from: Data(output.out.utf8)).items
    }

    /// The first 100 rows of the outbox once they are as expected. No event reports that a row begins to wait, so the query is repeated.
    @discardableResult
    func awaitOutbox(
        _ host: String, seconds: Int = Patience.state, _ isWanted: ([OutboxRowShape]) -> Bool
    ) async throws -> [OutboxRowShape] {
        var rows: [OutboxRowShape] = []
        try await Patience.until(seconds: seconds, or: "the outbox of \(host) stayed \(rows.prefix(5))") {
            rows = try await outboxHead(host)
            return isWanted(rows)
        }
        return rows
    }

    /// Waits until no row is queued at this host.
    func awaitDelivered(_ host: String, seconds: Int = Patience.state) async throws {
        var rows: [OutboxRowShape] = []
        try await Patience.until(seconds: seconds, or: "still waiting at \(host): \(rows.prefix(3))") {
            guard try await status(host).outbox["queued", default: 0] > 0 else { return true }
            rows = try await outboxHead(host)
            return false
        }
    }

    /// Descriptions of the whole inbox, oldest first.
    func inbox(_ host: String) async throws -> [String] {
        let rows: [HexRow] = try await rows(host, "inbox", "--limit", "0")
        return rows.reversed().map(\.description)
    }

    /// Resident memory of a daemon, in bytes.
    func memory(_ host: String) async throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(try await path("pid", on: host))/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        guard let kilobytes = line?.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap({ Int($0) }) else {
            throw Command.Failure("no VmRSS of \(host)")
        }
        return kilobytes << 10
    }
}
