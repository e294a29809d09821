import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel

/// What a person is told of a send that takes its time, on standard error: while it waits, and at its end where it did not arrive.
struct SendWaiting {
    /// A send that takes no longer is not spoken of.
    private static let patience = Duration.seconds(1)
    /// Peers that are told of one by one.
    private static let toldLimit = 3

    /// PEERs; empty for every trusted one.
    let peers: [String]

    /// Runs a send; after a second it is said what the first rows in its way wait for, where a person looks.
    func during(_ client: HexlistClient, isTold: Bool, _ send: @escaping @Sendable () async throws -> [SendShape]) async throws
        -> [SendShape]
    {
        guard isTold, isatty(STDERR_FILENO) == 1 else { return try await send() }
        return try await withThrowingTaskGroup(of: [SendShape]?.self) { group in
            group.addTask { try await send() }
            group.addTask {
                try await Task.sleep(for: Self.patience)
                // It is only told of: where that fails the send does not.
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

    /// The oldest row for each peer: what is behind it waits for that, too.
    private func waiting(_ client: HexlistClient) async throws -> [OutboxShape] {
        guard !peers.isEmpty else { return try await client.outbox(states: [.queued, .sending], limit: Self.toldLimit).items }
        var rows: [OutboxShape] = []
        for peer in peers.prefix(Self.toldLimit) {
            rows += try await client.outbox(to: peer, states: [.queued, .sending], limit: 1).items
        }
        return rows
    }

    static func line(_ row: OutboxShape) -> String {
        let reason = RowReason(row)
        return "Waiting for \(reason.peer): \(reason.why). Ctrl-C ends the waiting; it stays in the outbox and goes on."
    }

    /// Why what did not arrive did not, and what to do.
    func tellRest(_ outcomes: [SendShape], _ client: HexlistClient) async {
        let left = outcomes.filter { RowReason($0).advice != nil }
        // Only who waits for somebody who is gone wants to know of others of that name.
        let isAway = left.prefix(Self.toldLimit).contains { OutboxWait($0) == .peer }
        let known = isAway ? (try? await client.peers(all: true)) ?? [] : []
        for outcome in left.prefix(Self.toldLimit) {
            for line in Self.advice(outcome, known) { StandardError.note(line) }
        }
        if left.count > Self.toldLimit { StandardError.note("`hexlist outbox` says it of the other \(left.count - Self.toldLimit), too.") }
    }

    /// - Parameter known: all peers, where the row waits for one that is gone.
    static func advice(_ outcome: SendShape, _ known: [PeerShape]) -> [String] {
        var lines = [RowReason(outcome).advice].compactMap(\.self)
        guard OutboxWait(outcome) == .peer, let gone = known.first(where: { $0.uuid == outcome.peer && $0.state != .ghost }) else {
            return lines
        }
        if let seen = gone.lastSeen { lines[0] = "\(gone.label.shown(.named)) was last seen \(HumanText.time(seen)). " + lines[0] }
        if let here = Namesake.of(gone, among: known) { lines.append(Namesake.advice(gone, here, row: outcome.outboxID)) }
        return lines
    }
}

extension OutboxWait {
    /// `nil` where nothing is known, and for the word of a newer daemon.
    fileprivate init?(_ outcome: SendShape) {
        guard let word = outcome.waitingFor else { return nil }
        self.init(rawValue: word)
    }
}
