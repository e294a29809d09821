import HexlistAPI
import HexlistDiscovery
import HexlistEventLoop
import HexlistModel
public import HexlistStore

/// Exports and imports the peers that are trusted, blocked or have an alias, with their keys.
public struct Roster: Sendable {
    let node: Node

    public func entries() async throws -> [RosterEntry] { try await node.store.read { try $0.roster() } }

    /// Imports entries in their order. An entry that is refused does not stop the import.
    /// - Returns: the outcome of each entry.
    /// - Throws: `HexlistError` if the store fails. Entries imported before are kept; importing again imports the rest.
    public func add(_ entries: [RosterEntry]) async throws -> [RosterOutcome] {
        try await node.perform { node in
            let at = node.clocks.milliseconds
            var outcomes: [RosterOutcome] = []
            var failure: (any Error)?
            do {
                while outcomes.count < entries.count {
                    let batch = entries[outcomes.count...].prefix(Self.batchSize)
                    outcomes += try await node.store.importRoster(batch, own: node.id, proven: node.registry.keys, at: at)
                }
            } catch {
                failure = error
            }
            await node.registry.reload(node)
            for (number, entry) in entries.prefix(outcomes.count).enumerated() where outcomes[number] == .changed {
                Self.imported(entry.peer, node)
                if number % Self.yieldInterval == 0 { await Task.yield() }
            }
            node.registry.reserveAddresses(node)
            node.notifyWatchers()
            if let failure { throw failure }
            return outcomes
        }
    }

    /// Entries per transaction, so that other writes need not wait for all of them.
    private static let batchSize = 500

    /// Number of imported peers after which sessions and deliveries may use the event loop.
    private static let yieldInterval = 50

    private static func imported(_ peer: PeerID, _ node: isolated Node) {
        guard let record = node.registry[peer] else { return }  // no record, or a device
        // As after a start, a trusted peer is dialled at its last addresses.
        node.finder.apply(record.trust == .trusted ? .knownPeer(KnownPeer(record)) : .trustChanged(peer, record.trust), node)
        node.trustChanged(of: peer, to: record.trust)
    }
}

extension Node {
    public nonisolated var roster: Roster { Roster(node: self) }
}
