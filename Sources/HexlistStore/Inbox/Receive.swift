internal import GRDB
public import HexlistModel

extension HexStore {
    /// Stores a batch of received hexes of one session, in order and in one transaction. The sender's current trust and settings decide
    /// whether the hexes go to the inbox, are held or are refused.
    ///
    /// If a hex with a message id is temporarily refused, all later hexes of the batch are refused with the same code, until a refused hex
    /// is sent again. This keeps the order (Docs/Protocol.md, "Delivery").
    ///
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - policy: the configured policy for hexes of strangers (`receiveFrom`).
    ///   - diskReserve: bytes of the file system to leave free.
    ///   - completion: called on the writer's thread with a result for each hex, once the results are durable. Refusals have no message.
    public func receive(
        _ batch: [IncomingHex], from sender: Sender, at now: Int64, policy: StrangerHexPolicy, quotas: HeldQuotas, diskReserve: Int64,
        completion: @escaping @Sendable (Result<[DeliveryResult], any Error>) -> Void
    ) {
        submit(
            rows: batch.reduce(0) { $0 + $1.rows },
            { try $0.receive(batch, from: sender, at: now, policy: policy, quotas: quotas, diskReserve: diskReserve) },
            completion: completion)
    }
}

extension StoreWriter {
    /// Stores a batch of received hexes, as `HexStore.receive` describes.
    /// - Returns: a result for each hex. The results are valid only once the transaction is committed.
    func receive(
        _ batch: [IncomingHex], from sender: Sender, at now: Int64, policy: StrangerHexPolicy, quotas: HeldQuotas, diskReserve: Int64
    ) throws -> [DeliveryResult] {
        guard !batch.isEmpty else { return [] }
        passedBytes += batch.reduce(0) { $0 + $1.weight }
        self.diskReserve = diskReserve
        return try change {
            var insertion = try BatchInsertion(
                self, sender: sender, now: now, policy: policy, quotas: quotas, isDiskFull: try isDiskFull(for: batch, reserve: diskReserve)
            )
            let results = try insertion.take(batch)
            try insertion.finish()
            return results
        }
    }

    private func isDiskFull(for batch: [IncomingHex], reserve: Int64) throws -> Bool {
        try isDiskFull(reserve: reserve, writing: batch.reduce(into: Int64(0)) { $0 &+= Int64($1.weight) &+ Self.pageBytes })
    }

    /// Whether less than `reserve` bytes of the disk would stay free after `bytes` are written to the WAL and to the database. A reserve of
    /// 0 disables the check. If the result is `false`, the bytes count as reserved in this transaction.
    func isDiskFull(reserve: Int64, writing bytes: Int64) throws -> Bool {
        guard reserve > 0, let free = StoreFile.freeBytes(path) else { return false }
        // Each byte is written twice: to the WAL now, and to the database at the next checkpoint. `bytesToCheckpoint` includes the pages
        // that this transaction has allocated so far, although they are not in the WAL yet.
        let (needed, overflow) = reserve.addingReportingOverflow(2 * bytes + reservedBytes)
        guard !overflow, free >= needed else { return true }
        if free - needed < (try bytesToCheckpoint()) { return true }
        reservedBytes += bytes
        return false
    }

    /// Bytes on disk that are assumed for each hex in addition to its weight: a page of an index, or the last, partly filled page of its
    /// texts.
    private static let pageBytes: Int64 = 4_096

    /// Returns the bytes by which the next checkpoint will extend the database file.
    private func bytesToCheckpoint() throws -> Int64 {
        let pages = try first("PRAGMA page_count") { $0.int64(0) } ?? 0
        let pageSize = try first("PRAGMA page_size") { $0.int64(0) } ?? 0
        return Swift.max(0, pages &* pageSize &- StoreFile.fileBytes(path))
    }
}

/// Stores the hexes of one batch: decides for each hex whether it is inserted into the inbox, held or refused.
private struct BatchInsertion {
    /// The treatment of the sender's hexes, from its trust and settings.
    private enum Destination {
        case inbox
        /// The inbox, within the daily quotas for strangers (`receiveFrom: everyone`).
        case inboxWithDailyQuota
        case held
        case refused(RefusalCode, retryAfter: Int?)
    }

    private let store: StoreWriter
    private let sender: Sender
    private let now: Int64
    private let quotas: HeldQuotas
    private let isDiskFull: Bool
    private let destination: Destination
    /// Whether the sender proved its key or its drop token, so that message ids identify duplicates. `false` on plain TCP. Unproven hexes
    /// stay held even if the peer becomes trusted.
    private var isProven: Bool { sender.fingerprint != nil || sender.kind == .drop }
    private let inserter: HexInserter
    private let tombstone: SQLStatement
    /// Whether there is any tombstone of the sender. If not, the lookup of tombstones is skipped.
    private let peerHasTombstones: Bool
    /// The sender's row; `nil` if it has none yet. Inserted with the first stored hex.
    private var peer: PeerWriteColumns?
    private lazy var source = HeldSource.of(sender.address)
    /// The capacity for held hexes; `nil` until it is needed.
    private var capacity: HeldCapacity?
    private var insertedIDs: [Int64] = []
    private var refusals = RefusalOrder<DeliveryResult>()

    init(
        _ store: StoreWriter, sender: Sender, now: Int64, policy: StrangerHexPolicy, quotas: HeldQuotas, isDiskFull: Bool
    ) throws {
        self.store = store
        self.sender = sender
        self.now = now
        self.quotas = quotas
        self.isDiskFull = isDiskFull
        inserter = try store.inserter()
        tombstone = try SQLStatement("SELECT 1 FROM tombstone WHERE peer = ? AND messageID = ?", on: store.db)
        peer = try store.peerRow(sender.peer)
        peerHasTombstones =
            try peer.flatMap { try store.first("SELECT 1 FROM tombstone WHERE peer = ? LIMIT 1", $0.id) { _ in true } } ?? false
        destination = Self.destination(for: peer, sender: sender, policy: policy)
        let day = now / 86_400_000
        if peer?.day != day {
            peer?.day = day
            peer?.dayHexes = 0
            peer?.dayBytes = 0
        }
        if store.counters.day != day, case .inboxWithDailyQuota = destination {
            store.counters.day = day
            store.counters.dayHexes = 0
            store.counters.dayBytes = 0
        }
    }

    private static func destination(for peer: PeerWriteColumns?, sender: Sender, policy: StrangerHexPolicy) -> Destination {
        // Trust in a peer of one kind never applies to a peer of another kind.
        if let peer, peer.kind != sender.kind { return .refused(.notAccepting, retryAfter: RetryAfter.notAccepting) }
        // Guests and drop tokens have no key. The user permitted them to send, and `policy` says whether their hexes are held.
        if !sender.kind.hasKey { return policy == .held ? .held : .inbox }
        // Trust belongs to a key, so a sender without a proved key is a stranger. A sender whose key differs from the recorded one is
        // refused. The UUID is derived from the key, and finding another key with the same UUID takes 2^122 attempts, so the record must be
        // damaged.
        if let known = peer?.fingerprint, let proved = sender.fingerprint, known != proved.bytes {
            return .refused(.notAccepting, retryAfter: RetryAfter.notAccepting)
        }
        let trust = sender.fingerprint == nil ? .stranger : peer?.trust ?? .stranger
        let receive = peer?.receive ?? .inbox
        if trust != .blocked, receive == .nothing { return .refused(.notAccepting, retryAfter: RetryAfter.notAccepting) }
        switch trust {
        case .trusted: return receive == .held ? .held : .inbox
        case .blocked: return .refused(.blocked, retryAfter: nil)
        case .stranger:
            switch policy {
            case .held: return .held
            case .everyone: return receive == .held ? .held : sender.isAccepted ? .inbox : .inboxWithDailyQuota
            case .trusted: return .refused(.notAccepting, retryAfter: RetryAfter.notAccepting)
            }
        }
    }

    mutating func take(_ batch: [IncomingHex]) throws -> [DeliveryResult] {
        var results: [DeliveryResult] = []
        results.reserveCapacity(batch.count)
        var rest = batch[...]
        var isNew = true
        while !rest.isEmpty {
            let some = rest.prefix(HexInserter.hexesPerStatement)
            rest = rest.dropFirst(some.count)
            if isNew, canInsertTogether(some) {
                if let ids = try insertTogether(some) {
                    results += ids.lazy.map { _ in .stored }
                    continue
                }
                isNew = false  // probably a repeated batch, for which inserts of several hexes at once would fail
            }
            for hex in some { results.append(try take(hex)) }
        }
        return results
    }

    private mutating func take(_ hex: IncomingHex) throws -> DeliveryResult {
        if case .refused(.blocked, let retryAfter) = destination { return .refused(.blocked, retryAfter: retryAfter) }
        if let refusal = refusals.reason(toRefuse: hex.messageID) { return refusal }
        guard hex.content.fitsBounds else { return .refused(.tooManyLinks) }
        switch destination {
        case .refused(let code, let retryAfter):
            if let status = try earlier(hex) { return .duplicate(of: status) }
            return refuse(hex, code, retryAfter: retryAfter)
        case .inbox:
            guard !isInboxFull, !isDiskFull else { return try refuseUnlessDuplicate(hex, .storageFull, RetryAfter.storageFull) }
            return try insert(hex)
        case .inboxWithDailyQuota:
            guard !isInboxFull, !isDiskFull else { return try refuseUnlessDuplicate(hex, .storageFull, RetryAfter.storageFull) }
            guard fitsDailyQuota(hex) else { return try refuseUnlessDuplicate(hex, .quotaExceeded, secondsToNextDay) }
            return try insertWithinDailyQuota(hex)
        case .held:
            if let status = try earlier(hex) { return .duplicate(of: status) }
            guard !isDiskFull else { return refuse(hex, .storageFull, retryAfter: RetryAfter.storageFull) }
            guard try sender.isAccepted || hasCapacity(for: hex) else {
                return refuse(hex, .quotaExceeded, retryAfter: RetryAfter.quotaExceeded)
            }
            return try hold(hex)
        }
    }

    /// Records the events of the stored hexes, a new key of the sender, a new name of a guest, and the daily counts.
    mutating func finish() throws {
        guard let peer, !insertedIDs.isEmpty else { return }
        if peer.fingerprint == nil, let fingerprint = sender.fingerprint {
            try store.run("UPDATE peer SET fingerprint = ? WHERE id = ?", fingerprint.bytes, peer.id)
        }
        if sender.kind == .guest, !PeerTextComparison.areEqual(peer.name, sender.name) {
            try store.run("UPDATE peer SET name = ? WHERE id = ?", sender.name, peer.id)
            store.changed(.peers)
        }
        switch destination {
        case .inbox, .refused: break
        case .inboxWithDailyQuota:
            try store.run(
                "UPDATE peer SET day = ?, dayHexes = ?, dayBytes = ? WHERE id = ?", peer.day, peer.dayHexes, peer.dayBytes, peer.id)
        case .held:
            store.changed(.peers)
            return try store.record(.hexHeld, at: now, peer: sender.peer, hexes: insertedIDs)
        }
        try store.record(.hexReceived, at: now, peer: sender.peer, hexes: insertedIDs)
    }

    // MARK: - Duplicates and refusals

    /// Returns the status of an earlier hex with the same sender and message id, even if that hex was deleted; `nil` if there was none.
    private func earlier(_ hex: IncomingHex) throws -> ReceiptStatus? {
        guard isProven, let id = hex.messageID, let peer else { return nil }
        if try hasTombstone(id, of: peer) { return .stored }
        return try store.first(
            "SELECT location FROM hex WHERE peer = ? AND messageID = ? AND isProven = 1", peer.id, id.uuid
        ) { $0.text(0) == HexLocation.held.rawValue ? .held : .stored }
    }

    private func hasTombstone(_ id: MessageID, of peer: PeerWriteColumns) throws -> Bool {
        guard peerHasTombstones else { return false }
        try tombstone.check(peer.id.bindValue(to: tombstone.handle, at: 1))
        try tombstone.check(id.uuid.bindValue(to: tombstone.handle, at: 2))
        defer { tombstone.reset() }
        return try tombstone.step()
    }

    private mutating func refuse(_ hex: IncomingHex, _ code: RefusalCode, retryAfter: Int?) -> DeliveryResult {
        let result = DeliveryResult.refused(code, retryAfter: retryAfter)
        if code.isTemporary, let id = hex.messageID { refusals.refused(id, for: result) }
        return result
    }

    private mutating func refuseUnlessDuplicate(_ hex: IncomingHex, _ code: RefusalCode, _ retryAfter: Int) throws -> DeliveryResult {
        if let status = try earlier(hex) { return .duplicate(of: status) }
        return refuse(hex, code, retryAfter: retryAfter)
    }

    // MARK: - Into the inbox

    private var isInboxFull: Bool {
        guard let limit = quotas.inboxHexes else { return false }
        return store.counters.inbox >= Int64(limit)
    }

    private mutating func insert(_ hex: IncomingHex) throws -> DeliveryResult {
        let peer = try peerRow()
        if isProven, let id = hex.messageID, try hasTombstone(id, of: peer) { return .duplicate(of: .stored) }
        let id = store.counters.nextHex
        let isNew = try inserter.insert(
            hex.content,
            HexInserter.Row(
                id: id, location: .inbox, inboxNumber: store.counters.nextInbox, peer: peer.id, messageID: hex.messageID,
                isProven: isProven, byteCount: hex.weight, receivedAt: now))
        guard isNew else {
            guard let status = try earlier(hex) else { throw StoreFault.lost }
            return .duplicate(of: status)
        }
        store.counters.nextHex &+= Int64(hex.content.hexCount)
        countArrival(of: id..<id &+ 1, from: peer)
        return .stored
    }

    /// Whether the hexes can be inserted into the inbox with one statement. This requires that none of them can be refused, and that no
    /// tombstones have to be looked up.
    private func canInsertTogether(_ hexes: ArraySlice<IncomingHex>) -> Bool {
        guard case .inbox = destination, hexes.count == HexInserter.hexesPerStatement, !isDiskFull, !peerHasTombstones, !refusals.isRefusing
        else {
            return false
        }
        if let limit = quotas.inboxHexes, store.counters.inbox &+ Int64(hexes.count) > Int64(limit) { return false }
        return hexes.allSatisfy { $0.content.children.isEmpty && $0.content.fitsBounds }
    }

    /// Inserts hexes for which `canInsertTogether` is true.
    /// - Returns: the ids of the hexes; `nil` if one of them is a duplicate. Then none is inserted.
    private mutating func insertTogether(_ hexes: ArraySlice<IncomingHex>) throws -> Range<Int64>? {
        let peer = try peerRow()
        let count = Int64(hexes.count)
        let ids = store.counters.nextHex..<store.counters.nextHex &+ count
        let row = HexInserter.Row(
            id: ids.lowerBound, location: .inbox, inboxNumber: store.counters.nextInbox, peer: peer.id, isProven: true, byteCount: 0,
            receivedAt: now)
        guard try inserter.insert(hexes, from: row) else { return nil }
        store.counters.nextHex &+= count
        countArrival(of: ids, from: peer)
        return ids
    }

    /// Updates the counters after hexes were inserted into the inbox.
    private mutating func countArrival(of ids: Range<Int64>, from peer: PeerWriteColumns) {
        let count = Int64(ids.count)
        store.counters.nextInbox &+= count
        store.counters.inbox &+= count
        store.counters.unread &+= count
        store.count(peer: peer.id) { delta in
            delta.hexes &+= count
            delta.unread &+= count
        }
        insertedIDs += ids
    }

    // MARK: - Into the inbox, within the daily quota

    private var secondsToNextDay: Int {
        let milliseconds = 86_400_000 - (now % 86_400_000 + 86_400_000) % 86_400_000
        return min(max(Int(milliseconds / 1_000), ProtocolLimits.retryAfterRange.lowerBound), ProtocolLimits.retryAfterRange.upperBound)
    }

    private func fitsDailyQuota(_ hex: IncomingHex) -> Bool {
        let bytes = Int64(hex.weight)
        let (hexes, size) = (peer?.dayHexes ?? 0, peer?.dayBytes ?? 0)
        return hexes < Int64(quotas.hexesPerPeer) && size &+ bytes <= Int64(quotas.bytesPerPeer)
            && store.counters.dayHexes < Int64(quotas.hexes) && store.counters.dayBytes &+ bytes <= Int64(quotas.bytes)
    }

    private mutating func insertWithinDailyQuota(_ hex: IncomingHex) throws -> DeliveryResult {
        let result = try insert(hex)
        guard case .stored = result else { return result }
        peer?.dayHexes &+= 1
        peer?.dayBytes &+= Int64(hex.weight)
        store.counters.dayHexes &+= 1
        store.counters.dayBytes &+= Int64(hex.weight)
        return result
    }

    // MARK: - Held

    private mutating func hasCapacity(for hex: IncomingHex) throws -> Bool {
        let capacity = try self.capacity ?? store.heldCapacity(of: peer, from: source, quotas: quotas)
        self.capacity = capacity
        return capacity.fits(bytes: Int64(hex.weight))
    }

    private mutating func hold(_ hex: IncomingHex) throws -> DeliveryResult {
        let peer = try peerRow()
        let id = store.counters.nextHex
        let isNew = try inserter.insert(
            hex.content,
            HexInserter.Row(
                id: id, location: .held, peer: peer.id, messageID: hex.messageID, isProven: isProven,
                byteCount: hex.weight, receivedAt: now, heldSince: store.lived, heldFrom: source))
        guard isNew else { throw StoreFault.lost }
        let bytes = Int64(hex.weight)
        store.counters.nextHex &+= Int64(hex.content.hexCount)
        store.counters.held &+= 1
        store.counters.heldBytes &+= bytes
        store.count(peer: peer.id) { delta in
            delta.hexes &+= 1
            delta.held &+= 1
            delta.heldBytes &+= bytes
        }
        capacity?.add(bytes: bytes)
        insertedIDs.append(id)
        return .held
    }

    private mutating func peerRow() throws -> PeerWriteColumns {
        if let peer { return peer }
        var row = try store.peerRow(making: sender.peer, kind: sender.kind, fingerprint: sender.fingerprint, name: sender.name)
        row.day = now / 86_400_000
        peer = row
        return row
    }
}
