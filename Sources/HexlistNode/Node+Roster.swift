import HexlistAPI
import HexlistDiscovery
import HexlistEventLoop
import HexlistModel
public import HexlistStore

/// The roster: who is trusted, blocked or has an alias here, by key, to be taken to another machine.
extension Node {
    public func roster() async throws -> [RosterEntry] { try await store.read { try $0.roster() } }

    /// Takes entries over, in their order; one that is refused does not keep the others from it.
    /// - Returns: what became of each.
    /// - Throws: `HexlistError` where the store fails. What was taken before is kept; importing again takes the rest.
    public func importRoster(_ entries: [RosterEntry]) async throws -> [RosterOutcome] {
        let at = clocks.milliseconds
        var outcomes: [RosterOutcome] = []
        var failure: (any Error)?
        do {
            while outcomes.count < entries.count {
                let batch = entries[outcomes.count...].prefix(Node.rosterBatch)
                outcomes += try await store.importRoster(batch, own: id, proven: known.keys, at: at)
            }
        } catch {
            failure = error
        }
        await known.reload(self)
        for (number, entry) in entries.prefix(outcomes.count).enumerated() where outcomes[number] == .changed {
            imported(entry.peer)
            if number % Node.rosterTurn == 0 { await Task.yield() }
        }
        known.reserveAddresses(self)
        notifyWatchers()
        if let failure { throw failure }
        return outcomes
    }

    /// Entries of one transaction: what else is to be written waits no longer.
    private static let rosterBatch = 500

    /// Peers made known before sessions and deliveries have their turn.
    private static let rosterTurn = 50

    private func imported(_ peer: PeerID) {
        guard let record = known[peer] else { return }
        // A trusted peer is looked for where it was reached, as after a start.
        finder.apply(record.trust == .trusted ? .knownPeer(KnownPeer(record)) : .trustChanged(peer, record.trust), self)
        tellSessions(of: peer, record.trust)
        trustTold(of: peer, record.trust)
    }
}
