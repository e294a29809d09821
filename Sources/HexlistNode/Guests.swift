internal import HexlistAPI
import HexlistEventLoop
public import HexlistModel
public import HexlistStore
import HexlistTransfers

// Guests and drop tokens: senders without a key.

extension Peers {
    /// Finds the sender of hexes that the text names: a peer (`PeerReference`), a guest or a drop token. A complete UUID is accepted even
    /// if no such peer is known, because hexes of a forgotten peer may still be stored.
    /// - Throws: `HexlistError` `notFound`, or `ambiguous`.
    public func sender(named text: String) async throws -> PeerID? {
        if let id = PeerID(text) { return id }
        return try await node.perform { node in
            await node.registry.reload(node)
            if let sender = try node.peerList.keylessSender(named: text) { return sender.peer }
            return try node.peerList.resolve([text])[0].uuid
        }
    }
}

extension PeerList {
    /// The guest or drop token whose recorded name is the text, or whose UUID begins with it; `nil` if there is none.
    /// - Throws: `HexlistError` `ambiguous` if there are several.
    func keylessSender(named text: String) throws(HexlistError) -> PeerRecord? {
        guard !registry.keyless.isEmpty else { return nil }
        let key = NormalizedName(text)
        let found = registry.keyless.values.filter { $0.peer.begins(with: text) || key?.isKey(of: $0.name) ?? false }
        guard found.count < 2 else {
            let names = found.prefix(8).map { $0.label.text(.whole) }.sorted()
            throw HexlistError(
                .ambiguous,
                "\"\(TerminalText.clean(text, columns: 60))\" could be \(found.count) senders: \(names.joined(separator: ", ")).",
                hint: "Use a UUID.")
        }
        return found.first
    }

    /// Explains a `notFound` error: if the text names a guest or a drop token, returns an error with the reason why it cannot be used as a
    /// peer. Returns any other error unchanged.
    func withoutKey(_ text: String, _ error: HexlistError) -> HexlistError {
        guard error.code == .notFound, let sender = try? keylessSender(named: text) else { return error }
        let name = sender.kind == .drop ? "drop token" : "guest"
        return HexlistError(
            .badRequest, "A \(name) has no key, so it cannot be trusted, named or sent to.",
            hint: "To delete everything from it: `hexlist delete --from \(sender.peer.shortID)`.")
    }
}

extension Node {
    /// Stores a hex of a guest with its files, in one transaction.
    /// - Returns: the id of the hex.
    /// - Throws: `HexlistError` `storageFull` or `refused`; then the files stay on the disk.
    public nonisolated func receive(_ guest: KeylessHex) async throws -> Int64 {
        let (limits, files, at) = (await configuration.limits, transfers.guestFiles, clocks.milliseconds)
        let id = try await transfers.onFileThread {
            try files.receive(
                guest.files.map(\.file), as: guest.hex(), from: guest.sender, at: at, policy: guest.isHeld ? .held : .everyone,
                quotas: HeldQuotas(limits), diskReserve: Int64(limits.diskReserveBytes))
        }
        guard let id else { throw HexlistError(.refused, "This cannot be stored.") }
        metrics.received([guest.isHeld ? .held : .stored])
        return id
    }

    /// Stores a hex of a drop token with its files, in one transaction, unless it was stored before.
    /// - Parameters:
    ///   - id: the message id of the hex.
    ///   - earlier: the message id under which an equal request may have been stored shortly before; `nil` for none.
    /// - Throws: `HexlistError` `storageFull` or `refused`; errors of the files. The files are deleted then.
    public nonisolated func receive(drop: KeylessHex, id: MessageID, earlier: MessageID?) async throws -> DropResult {
        let (limits, files, at) = (await configuration.limits, transfers.guestFiles, clocks.milliseconds)
        let result = try await transfers.onFileThread {
            try files.receiveDrop(
                drop.files.map(\.file), as: drop.hex(id), earlier: earlier, from: drop.sender, at: at, quotas: HeldQuotas(limits),
                diskReserve: Int64(limits.diskReserveBytes))
        }
        if case .stored = result { metrics.received([.stored]) }
        return result
    }

    /// The name of this machine and the peer port.
    public func nameAndPort() -> (name: String, port: Int) { (configuration.name, port) }

    /// The bytes that guests' files must leave free on the disk.
    public var diskReserve: Int64 { Int64(configuration.limits.diskReserveBytes) }

    /// Records the event that all guest invitations ended, because too many wrong keys were tried.
    public nonisolated func recordGuessedKeys() {
        onLoop { $0.events.record(.invitationGuessed, peer: nil, $0) }
    }
}
