public import HexlistModel

// Diagnostics for `hexlist doctor`.
extension PeerDirectory {
    /// The interfaces and IP versions on which this node receives its own announcement. Other machines in these networks should receive it
    /// too.
    public var ownAnnouncements: [(interface: String, isIPv6: Bool)] {
        ownRecords.sorted(by: Record.inOrder).compactMap { record in
            guard record.unicast == nil, let present = records[record], present.claim?.boot == boot else { return nil }
            return (present.interfaceName ?? "\(record.interface)", record.ipv6)
        }
    }

    /// The state of a configured address.
    public enum StaticAddressState: Sendable, Equatable {
        case answered(PeerID)
        /// A peer has answered at this address before, but is offline or blocked now. The text names the peer and the reason.
        case away(PeerID, String)
        case isOwn
        case probing
        /// No peer was proved at this address. The text is the reason, as the part of a sentence that follows "but".
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
