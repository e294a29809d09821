import HexlistModel
import HexlistStore
import Synchronization

/// The stored drop tokens and their rate limits, in memory. Can be used from any thread.
final class DropTokens: Sendable {
    private let gate: Mutex<DropTokenAdmission>
    private let now: @Sendable () -> ContinuousClock.Instant

    /// - Parameter tokens: the tokens in the store.
    init(_ tokens: [DropToken], now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        gate = Mutex(DropTokenAdmission(tokens))
        self.now = now
    }

    var count: Int { gate.withLock { $0.count } }

    /// Adds a token, after it was stored.
    func add(_ token: DropToken) { gate.withLock { $0.add(token) } }

    /// Removes a token, after it was removed from the store.
    func remove(_ peer: PeerID) { gate.withLock { $0.remove(peer) } }

    func admit(_ token: String, from address: IPAddress) -> DropTokenAdmission.Admission {
        gate.withLock { $0.admit(token, from: address, now: now()) }
    }

    /// Ends an admitted request.
    func finish(_ peer: PeerID) { gate.withLock { $0.finish(peer) } }

    /// Counts received bytes of a body.
    /// - Throws: a refusal if the token was removed, or if its bytes for the day are used up.
    func receive(_ bytes: Int, of peer: PeerID) throws(GuestRefusal) {
        if let refusal = gate.withLock({ $0.receive(bytes, of: peer, now: now()) }) { throw refusal }
    }
}

/// The senders without Hexlist to which the peer port replies over plain HTTP: guests and programs with drop tokens.
struct PlainHTTPSenders: Sendable {
    let guests: GuestInvitationRegistry
    let drops: DropTokens

    /// Whether the peer port accepts plain HTTP: there is a drop token or an open invitation.
    var isOpen: Bool { drops.count > 0 || guests.isOpen }
}
