import Crypto
import HexlistModel
import HexlistStore
import HexlistWire
import NIOCore

/// A send is a row of the outbox first, and a promise only then.
extension Node {
    /// One hex to one or more peers: a durable row for each, in the order of `request.peers`.
    /// - Throws: `HexlistError`: `notFound` for a hex or peer that is not there, `keyConflict`, `outboxFull`, `badRequest`.
    public func send(_ request: SendRequest) async throws -> [SendOutcome] {
        guard !request.peers.isEmpty else { throw HexlistError(.badRequest, "No peer to send to.", hint: "Name one with --to.") }
        guard !request.peers.contains(id) else { throw HexlistError(.badRequest, "That is this machine itself.") }
        let (body, digest) = try await body(of: request.content)
        let now = Node.wallClock()
        let messageID = request.key.map { Node.messageID(forKey: $0, own: id) } ?? Node.newMessageID(at: now)
        let expiresAt = now + Int64(configuration.outbox.expireDays) * 86_400_000
        let recipients = try request.peers.map { try recipient($0, at: now) }
        let bounds = OutboxBounds(rows: configuration.outbox.rows, bytes: configuration.outbox.bytes)
        let hasKey = request.key != nil
        let warns = !hasKey && !request.force

        let rows = try await store.write { writer in
            try recipients.map { recipient in
                try writer.upsertPeer(recipient, creating: true)
                if warns, let failed = try writer.recentlyFailed(recipient.peer, digest: digest, since: now - 180_000) {
                    throw Node.failedLately(failed)
                }
                let insert = OutboxInsert(
                    peer: recipient.peer, messageID: messageID, body: body, digest: digest, createdAt: now, expiresAt: expiresAt)
                let row: Int64
                switch try writer.enqueue(insert, bounds: bounds) {
                case .new(let id): row = id
                case .existing(let earlier):
                    // The same key again: what failed, expired or was taken back is given another chance.
                    _ = try writer.requeue(earlier.id, insert, at: now)
                    row = earlier.id
                case .refused(let error): throw error
                }
                guard let stored = try writer.outboxRow(row) else { throw HexlistError(.internal, "The outbox lost a row.") }
                return stored
            }
        }
        await reloadKnown()
        for row in rows where row.state == .queued {
            let link = link(to: row.peer)
            link.delivery.rowsAdded()
            // A row queued anew stands before those that were loaded already.
            if hasKey { link.delivery.rowsChanged() }
            kick(link)
        }
        notifyWatchers()
        return rows.map { SendOutcome($0) }
    }

    private static func failedLately(_ row: OutboxRow) -> HexlistError {
        HexlistError(
            .recentlyFailed,
            "The same hex to the same peer failed less than 3 minutes ago: \(row.message ?? row.lastError ?? "no reason given")",
            hint: "`hexlist outbox retry \(row.id)` tries that one again; --force sends another.")
    }

    private func recipient(_ peer: PeerID, at now: Int64) throws -> PeerSighting {
        guard let view = view(of: peer) else { throw Node.unknown(peer) }
        guard view.trust != .blocked else {
            throw HexlistError(
                .badRequest, "\(TerminalText.clean(view.name, columns: 40)) is blocked here.", hint: "`hexlist peer unblock \(peer)` first."
            )
        }
        return PeerSighting(
            peer: peer, fingerprint: view.fingerprint, name: view.name, version: view.version, boot: view.boot,
            seenAt: view.lastSeen ?? now, endpoint: nil)
    }

    /// The HexJM as it travels, and the SHA-256 of it as it was given: the own name in it may change, its content does not.
    private func body(of content: SendRequest.Content) async throws -> (body: [UInt8], digest: [UInt8]) {
        switch content {
        case .forward(let hexID):
            // Its claim of a sender and its unknown members go on as they came.
            guard let hex = try await store.read({ try $0.hex(hexID) }) else {
                throw HexlistError(.notFound, "There is no hex \(hexID).", hint: "`hexlist inbox` lists those there are.")
            }
            let body = HexEncoder.encode(hex.content)
            return (body, Array(SHA256.hash(data: body)))
        case .hex(var hex):
            let digest = Array(SHA256.hash(data: HexEncoder.encode(hex)))
            if hex.senderUUID.isEmpty { hex.senderUUID = hex.add(id.description) }
            if hex.senderName.isEmpty { hex.senderName = hex.add(PeerName.cut(configuration.name, bytes: 256)) }
            let body = HexEncoder.encode(hex)
            guard body.count + PeerDelivery.frameOverhead <= ProtocolLimits.largestFrameBytes else {
                throw HexlistError(
                    .badRequest, "The hex is \(body.count) bytes long; no peer takes more than 16 MiB.",
                    hint: "Send its links in several hexes.")
            }
            return (body, digest)
        }
    }

    /// UUIDv8 from SHA-256(`hexlist-key-1` ‖ own UUID ‖ key): the same key gives the same id, for every target.
    static func messageID(forKey key: String, own: PeerID) -> MessageID {
        var hash = SHA256()
        hash.update(data: Array("hexlist-key-1".utf8))
        hash.update(data: own.uuid.bytes)
        hash.update(data: Array(key.utf8))
        let uuid = UUIDBytes(bytes: Array(hash.finalize().prefix(16))) ?? .nil
        return MessageID(uuid.with(version: 8))
    }

    private static func newMessageID(at milliseconds: Int64) -> MessageID {
        MessageID(
            milliseconds: UInt64(clamping: milliseconds), random: UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
    }

    // MARK: Waiting

    /// Waits until each row is final, cannot go on for now (its peer is away, or it waits for trust), or the deadline passed.
    public func outcomes(of ids: [Int64], until deadline: ContinuousClock.Instant) async throws -> [SendOutcome] {
        // Registered before the rows are read, so that nothing settled in between is missed.
        let waiter = OutcomeWaiter(rows: Set(ids))
        nextWaiter += 1
        let key = nextWaiter
        outcomeWaiters[key] = waiter
        defer { outcomeWaiters[key] = nil }
        while true {
            waiter.hasChanged = false
            let rows = try await store.read { try $0.outboxRows(ids) }
            guard rows.contains(where: { isWorthWaiting(for: $0, until: deadline) }), ContinuousClock.Instant.now < deadline, !isStopping
            else {
                return rows.map { SendOutcome($0) }
            }
            guard !waiter.hasChanged else { continue }
            await wait(waiter, until: deadline)
        }
    }

    private func wait(_ waiter: OutcomeWaiter, until deadline: ContinuousClock.Instant) async {
        let timer = eventLoop.scheduleTask(in: TimeAmount(max(.zero, deadline - .now))) { [weak self] in
            self?.assumeIsolated { _ in waiter.wake() }
        }
        await withCheckedContinuation { waiter.continuation = $0 }
        timer.cancel()
    }

    /// A row whose peer is not there, takes nothing as long as it does not trust this one, or refused until after the
    /// deadline, is nothing to wait for.
    private func isWorthWaiting(for row: OutboxRow, until deadline: ContinuousClock.Instant) -> Bool {
        guard row.state == .queued else { return false }
        guard let link = links[row.peer] else { return directory.isVerified(row.peer) }
        if let until = link.delivery.pausedUntil, until > deadline { return false }
        // A session that is just ending may have another one behind it.
        guard let session = link.sending, !session.machine.isClosed else { return directory.isVerified(row.peer) }
        return !link.delivery.waitsForTrust(bytes: row.bytes)
    }

    /// Rows that were answered, cancelled, or given up.
    func settledRows(_ rows: Set<Int64>) {
        for waiter in outcomeWaiters.values where !waiter.rows.isDisjoint(with: rows) { waiter.wake() }
    }

    /// Something changed about what rows wait for: everyone looks again.
    func wakeWaiters() {
        for waiter in outcomeWaiters.values { waiter.wake() }
    }
}

/// One caller that waits for rows; lives on the node's loop.
final class OutcomeWaiter: @unchecked Sendable {
    let rows: Set<Int64>
    var hasChanged = false
    var continuation: CheckedContinuation<Void, Never>?

    init(rows: Set<Int64>) { self.rows = rows }

    func wake() {
        hasChanged = true
        continuation?.resume()
        continuation = nil
    }
}
