public import HexlistModel

// Diagnostics for `hexlist doctor`.
extension PeerDirectory {
    /// The interfaces on which this node's own announcement is visible, as it is for other machines.
    public var ownAnnouncements: [(interface: String, isIPv6: Bool)] {
        ownRecords.sorted(by: Record.inOrder).compactMap { record in
            guard record.unicast == nil, let present = records[record], present.claim?.boot == boot else { return nil }
            return (present.interfaceName ?? "\(record.interface)", record.ipv6)
        }
    }

    /// The state of a configured address.
    public enum StaticAddressState: Sendable, Equatable {
        case answered(PeerID)
        /// The peer that answered there is offline or blocked; the text has the details.
        case away(PeerID, String)
        case isOwn
        case probing
        /// The reason, to be put after "but".
        case failed(String)
    }

    public var configuredAddresses: [(address: StaticAddress, state: StaticAddressState)] {
        let sorted = addresses.sorted { $0.key.description.utf8.lexicographicallyPrecedes($1.key.description.utf8) }
        return sorted.map { address, state in
            if state.isOwn { return (address, .isOwn) }
            guard let id = state.peer else { return (address, state.failure.map { .failed($0.text) } ?? .probing) }
            switch peers[id]?.presence {
            case .away(let absence)?: return (address, .away(id, "\(peers[id]?.name ?? "") \(id.shortID) is away: \(absence.text)"))
            case .verified?, .unproven?, nil: return (address, .answered(id))
            }
        }
    }
}
