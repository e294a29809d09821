public import HexlistAPI
import HexlistEventLoop
public import HexlistModel
import HexlistStore
import HexlistTransfers

// Guests: senders without a key.

extension Peers {
    /// Finds the sender of hexes as a user names it: a peer (`PeerReference`) or a guest. A whole UUID need not belong to a known peer,
    /// because hexes of a forgotten peer may be left.
    /// - Throws: `HexlistError` `notFound`, or `ambiguous`.
    public func sender(named text: String) async throws -> PeerID? {
        if let id = PeerID(text) { return id }
        return try await node.perform { node in
            await node.registry.reload(node)
            if let guest = try node.peerList.guest(named: text) { return guest.peer }
            return try node.peerList.resolve([text])[0].uuid
        }
    }
}

extension PeerList {
    /// The guest whose recorded name is the text, or whose UUID begins with it; `nil` if there is none.
    /// - Throws: `HexlistError` `ambiguous` if there are several.
    func guest(named text: String) throws(HexlistError) -> PeerRecord? {
        guard !registry.guests.isEmpty else { return nil }
        let key = NameKey(text)
        let found = registry.guests.values.filter { $0.peer.begins(with: text) || key?.isKey(of: $0.name) ?? false }
        guard found.count < 2 else {
            let names = found.prefix(8).map { $0.label.text(.whole) }.sorted()
            throw HexlistError(
                .ambiguous,
                "\"\(TerminalText.clean(text, columns: 60))\" could be \(found.count) guests: \(names.joined(separator: ", ")).",
                hint: "Use a UUID.")
        }
        return found.first
    }

    /// Replaces the error about an unknown peer by the reason, if the text names a guest.
    func withoutKey(_ text: String, _ error: HexlistError) -> HexlistError {
        guard error.code == .notFound, let guest = try? guest(named: text) else { return error }
        return HexlistError(
            .badRequest, "A guest has no key, so it cannot be trusted, named or sent to.",
            hint: "To delete everything from it: `hexlist delete --from \(guest.peer.shortID)`.")
    }
}

extension Node {
    /// Stores a hex of a guest with its files, in one transaction.
    /// - Returns: the id of the hex.
    /// - Throws: `HexlistError` `storageFull` or `refused`; then the files stay.
    public nonisolated func receive(_ guest: GuestHex) async throws -> Int64 {
        let (limits, files, at) = (await configuration.limits, transfers.guestFiles, clocks.milliseconds)
        let id = try await transfers.onFileThread {
            try files.receive(
                guest.files.map(\.file), as: guest.hex, from: guest.sender, at: at, policy: guest.isHeld ? .held : .everyone,
                quotas: HeldQuotas(limits), diskReserve: Int64(limits.diskReserveBytes))
        }
        guard let id else { throw HexlistError(.refused, "This cannot be stored.") }
        metrics.received([guest.isHeld ? .held : .stored])
        return id
    }

    /// The name of this machine and the peer port.
    public func nameAndPort() -> (name: String, port: Int) { (configuration.name, port) }

    /// Bytes of the disk that the files of guests leave free.
    public var diskReserve: Int64 { Int64(configuration.limits.diskReserveBytes) }

    /// Records that too many wrong keys were tried and all invitations ended.
    public nonisolated func recordGuessedKeys() {
        onLoop { $0.events.record(.invitationGuessed, peer: nil, $0) }
    }
}
