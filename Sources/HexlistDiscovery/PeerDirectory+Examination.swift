public import HexlistModel

// Facts for `hexlist doctor`.
extension PeerDirectory {
    /// The interfaces on which browsing shows the announcement of this very start, as other machines see it.
    public var ownAnnouncements: [(interface: String, isIPv6: Bool)] {
        ownRecords.sorted(by: Record.inOrder).compactMap { record in
            guard record.unicast == nil, let present = records[record], present.claim?.boot == boot else { return nil }
            return (present.interfaceName ?? "\(record.interface)", record.ipv6)
        }
    }

    /// The state of an address the user configured.
    public enum ConfiguredState: Sendable, Equatable {
        case answered(PeerID)
        /// The peer that answered there is away, or blocked here; the text says which.
        case away(PeerID, String)
        case isOwn
        case asked
        /// A reason that follows "but".
        case failed(String)
    }

    public var configuredAddresses: [(address: StaticAddress, state: ConfiguredState)] {
        let sorted = addresses.sorted { $0.key.description.utf8.lexicographicallyPrecedes($1.key.description.utf8) }
        return sorted.map { address, state in
            if state.isOwn { return (address, .isOwn) }
            guard let id = state.peer else { return (address, state.failure.map { .failed($0.text) } ?? .asked) }
            switch peers[id]?.presence {
            case .away(let absence)?: return (address, .away(id, "\(peers[id]?.name ?? "") \(id.shortID) is away: \(absence.text)"))
            case .verified?, .unproven?, nil: return (address, .answered(id))
            }
        }
    }
}
