import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel

/// The notes on standard error about a send that takes long: while it waits, and at its end if not everything arrived.
struct SendWaiting {
    /// The time after which a send is noted.
    private static let patience = Duration.seconds(1)
    /// The most peers noted one by one.
    private static let toldLimit = 3

    /// The PEER arguments; empty for all trusted peers.
    let peers: [String]

    /// Runs a send. If it takes longer than a second and standard error is a terminal, notes what the first rows wait for.
    func during(_ client: HexlistClient, isTold: Bool, _ send: @escaping @Sendable () async throws -> [SendOutcome]) async throws
        -> [SendOutcome]
    {
        guard isTold, isatty(STDERR_FILENO) == 1 else { return try await send() }
        return try await withThrowingTaskGroup(of: [SendOutcome]?.self) { group in
            group.addTask { try await send() }
            group.addTask {
                try await Task.sleep(for: Self.patience)
                // The note is only a courtesy: if it fails, the send does not.
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

    /// The oldest row for each peer: those after it wait for the same reason.
    private func waiting(_ client: HexlistClient) async throws -> [OutboxView] {
        guard !peers.isEmpty else { return try await client.outbox(states: [.queued, .sending], limit: Self.toldLimit).items }
        var rows: [OutboxView] = []
        for peer in peers.prefix(Self.toldLimit) {
            rows += try await client.outbox(to: peer, states: [.queued, .sending], limit: 1).items
        }
        return rows
    }

    static func line(_ row: OutboxView) -> String {
        let reason = RowReason(row)
        return "Waiting for \(reason.peer): \(reason.why). Ctrl-C ends the waiting; it stays in the outbox and goes on."
    }

    /// Notes why rows did not arrive, and what to do.
    func tellRest(_ outcomes: [SendOutcome], _ client: HexlistClient) async {
        let left = outcomes.filter { RowReason($0).advice != nil }
        // Peers of the same name only matter if a row waits for a peer that is gone.
        let isAway = left.prefix(Self.toldLimit).contains { $0.waitingFor?.known == .peer }
        let known = isAway ? (try? await client.peers(all: true)) ?? [] : []
        for outcome in left.prefix(Self.toldLimit) {
            for line in Self.advice(outcome, known) { StandardError.note(line) }
        }
        if left.count > Self.toldLimit { StandardError.note("`hexlist outbox` says it of the other \(left.count - Self.toldLimit), too.") }
    }

    /// - Parameter known: all peers if the row waits for one that is gone.
    static func advice(_ outcome: SendOutcome, _ known: [PeerView]) -> [String] {
        var lines = [RowReason(outcome).advice].compactMap(\.self)
        guard outcome.waitingFor?.known == .peer, let gone = known.first(where: { $0.uuid == outcome.peer && $0.state != .ghost }) else {
            return lines
        }
        if let seen = gone.lastSeen { lines[0] = "\(gone.label.shown(.named)) was last seen \(HumanText.moment(seen)). " + lines[0] }
        if let here = SameNamePeer.of(gone, among: known) { lines.append(SameNamePeer.advice(gone, here, row: outcome.outboxID)) }
        return lines
    }
}
