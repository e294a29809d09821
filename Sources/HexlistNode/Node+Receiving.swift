import HexlistAPI
import Crypto
import HexlistEventLoop
import HexlistModel
import HexlistSession
import HexlistStore
import HexlistWire

extension Node {
    /// Stores received hexes and reports the results to the session. No hex is confirmed before its transaction is durable.
    func receive(_ batch: [IncomingHex], from session: PeerSession) {
        guard !finder.directory.isInConflict(id) else {
            let refusal = DeliveryResult.refused(
                .notAccepting, message: IdentityConflicts.ownConflictMessage, retryAfter: IdentityConflicts.ownConflictRetry)
            return onLoop { _ in session.batchCompleted(Array(repeating: refusal, count: batch.count)) }
        }
        let epoch = refusedPeersNotifier.capacityEpoch
        keep(batch, from: sender(of: session)) { node, results in
            session.batchCompleted(results)
            node.refusedPeersNotifier.refused(results, of: session, decidedAt: epoch, node)
        }
    }

    /// Stores hexes, and calls `completion` on the event loop with the results once the transaction is durable or has failed.
    func keep(
        _ batch: [IncomingHex], from sender: Sender, then completion: @escaping @Sendable (isolated Node, [DeliveryResult]) -> Void
    ) {
        let policy = configuration.announce ? configuration.receiveFrom : .trusted
        let quotas = HeldQuotas(configuration.limits)
        let reserve = Int64(configuration.limits.diskReserveBytes)
        let at = clocks.milliseconds
        let takesNothing = registry[sender.peer]?.receive == .nothing
        let began = clocks.now
        store.receive(batch, from: sender, at: at, policy: policy, quotas: quotas, diskReserve: reserve) { [self] result in
            let results: [DeliveryResult]
            switch result {
            case .success(let stored): results = stored.map { Node.withMessage($0, takesNothing: takesNothing) }
            case .failure(let error):
                logger.error("hexes could not be stored", metadata: ["count": "\(batch.count)", "error": "\(error)"])
                results = Array(repeating: Node.refusal(after: error), count: batch.count)
            }
            metrics.receive.recordNanoseconds((clocks.now - began).nanoseconds)
            metrics.received(results)
            onLoop { node in
                completion(node, results)
                if node.registry[sender.peer]?.fetchLimit != nil { node.transfers.fetchAutomatically(from: sender.peer) }
            }
        }
    }

    /// The sender of a session's hexes. On TLS it is the peer that proved its key. On plain TCP it is a stranger with a UUID made of its
    /// source address, which no key can prove; the identity it claims is ignored.
    private func sender(of session: PeerSession) -> Sender {
        let address = session.connection.remoteAddress
        if let fingerprint = session.connection.peerFingerprint {
            return Sender(
                peer: fingerprint.peerID, fingerprint: fingerprint, name: session.machine.peerHello?.name ?? "", address: address)
        }
        let digest = SHA256.hash(data: Array("hexlist-plain-1\(address)".utf8))
        let uuid = UUIDBytes(bytes: Array(digest.prefix(16))) ?? .nil
        return Sender(peer: PeerID(uuid.with(version: 8)), fingerprint: nil, name: address, address: address)
    }

    /// Adds to a refusal the message that the sender shows to its user.
    /// - Parameter takesNothing: whether the user set `receive: nothing` for the sender, trusted or not.
    private static func withMessage(_ result: DeliveryResult, takesNothing: Bool) -> DeliveryResult {
        guard case .refused(let code, _, let retryAfter) = result else { return result }
        let isOwnSetting = code == .notAccepting && takesNothing
        let message = isOwnSetting ? "This peer accepts no hexes from you for now." : message(for: code)
        return .refused(code, message: message, retryAfter: retryAfter)
    }

    private static func refusal(after error: any Error) -> DeliveryResult {
        if let error = error as? HexlistError, error.code == .storageFull {
            return .refused(.storageFull, message: message(for: .storageFull), retryAfter: RetryAfter.storageFull)
        }
        return .refused(.internal, message: message(for: .internal), retryAfter: RetryAfter.internal)
    }

    /// The text that the sender of refused hexes shows to its user.
    private static func message(for code: RefusalCode) -> String {
        switch code {
        case .blocked: "This peer does not accept your hexes."
        case .notAccepting: "This peer only accepts hexes from trusted peers."
        case .quotaExceeded: "The maximum number of hexes from strangers already waits for approval on this peer."
        case .storageFull: "The disk of this peer is full."
        case .internal: "This peer could not store it at the moment."
        case .malformed, .missingObject, .unsupportedObject, .unsupportedOperation, .tooLarge, .tooManyLinks: code.rawValue
        }
    }
}
