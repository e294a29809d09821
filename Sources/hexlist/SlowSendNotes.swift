import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel

/// Prints notes on standard error about a slow send: the reason while it waits, and advice at the end if a hex was not delivered.
struct SlowSendNotes {
    /// Time after which a send counts as slow.
    private static let delay = Duration.seconds(1)
    /// Maximum number of notes.
    private static let noteLimit = 3

    /// The PEER arguments; empty if the send goes to all trusted peers.
    let peers: [String]

    /// Runs a send. If it is slow and standard error is a terminal, prints why the oldest rows wait.
    func during(_ client: HexlistClient, isNoted: Bool, _ send: @escaping @Sendable () async throws -> [SendOutcome]) async throws
        -> [SendOutcome]
    {
        guard isNoted, isatty(STDERR_FILENO) == 1 else { return try await send() }
        return try await withThrowingTaskGroup(of: [SendOutcome]?.self) { group in
            group.addTask { try await send() }
            group.addTask {
                try await Task.sleep(for: Self.delay)
                // A failure to get the note must not fail the send.
                for row in (try? await waiting(client)) ?? [] { StandardError.note(Self.line(row)) }
                return nil
            }
            defer { group.cancelAll() }
            while let outcomes = try await group.next() {
                if let outcomes { return outcomes }
            }
            throw CancellationError()
        }
    }

    /// Returns the oldest waiting row of each recipient. Later rows of the same recipient wait for the same reason.
    private func waiting(_ client: HexlistClient) async throws -> [OutboxView] {
        guard !peers.isEmpty else { return try await client.outbox(states: [.queued, .sending], limit: Self.noteLimit).items }
        var rows: [OutboxView] = []
        for peer in peers.prefix(Self.noteLimit) {
            rows += try await client.outbox(to: peer, states: [.queued, .sending], limit: 1).items
        }
        return rows
    }

    static func line(_ row: OutboxView) -> String {
        let reason = OutboxRowExplanation(row)
        return "Waiting for \(reason.peer): \(reason.why). Ctrl-C stops waiting; it stays in the outbox."
    }

    /// Prints the reasons why rows were not delivered, with advice.
    func explain(_ outcomes: [SendOutcome], _ client: HexlistClient) async {
        let left = outcomes.filter { OutboxRowExplanation($0).advice != nil }
        // The list of peers is only needed to find another peer with the name of an offline one.
        let isAway = left.prefix(Self.noteLimit).contains { $0.waitingFor?.known == .peer }
        let known = isAway ? (try? await client.peers(all: true)) ?? [] : []
        for outcome in left.prefix(Self.noteLimit) {
            for line in Self.advice(outcome, known) { StandardError.note(line) }
        }
        if left.count > Self.noteLimit { StandardError.note("\(left.count - Self.noteLimit) more: see `hexlist outbox`.") }
    }

    /// Returns the lines of advice for one row.
    /// - Parameter known: all peers if the row waits for an offline peer; otherwise empty.
    static func advice(_ outcome: SendOutcome, _ known: [PeerView]) -> [String] {
        var lines = [OutboxRowExplanation(outcome).advice].compactMap(\.self)
        guard outcome.waitingFor?.known == .peer, let gone = known.first(where: { $0.uuid == outcome.peer && $0.state != .ghost }) else {
            return lines
        }
        if gone.kind?.known == .localsend {
            lines[0] =
                "It will be sent when LocalSend is open on \(gone.label.shown(.named)). To cancel: "
                + "`hexlist outbox cancel \(outcome.outboxID)`."
            return lines
        }
        if let seen = gone.lastSeen { lines[0] = "\(gone.label.shown(.named)) was last seen \(HumanText.moment(seen)). " + lines[0] }
        if let here = ReinstalledPeerFinder.of(gone, among: known) { lines.append(ReinstalledPeerFinder.advice(gone, here)) }
        return lines
    }
}
