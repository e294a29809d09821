internal import GRDB
public import HexlistModel

extension HexStore {
    /// Stores a batch of hexes of one session, in order and in one transaction: in the inbox, as held, or not at all, by the sender's trust at
    /// that moment.
    ///
    /// After a temporary refusal of a hex with a message id, the later hexes of the batch are refused with the same code, until a refused
    /// one comes again, so that order is kept (Docs/Protocol.md, "Delivery").
    ///
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - policy: the policy for hexes of strangers.
    ///   - diskReserve: the bytes of the file system to leave free.
    ///   - completion: called on the writer's thread with an outcome per hex, which is durable.
    public func receive(
        _ batch: [IncomingHex], from sender: Sender, at now: Int64, policy: ReceivePolicy, quotas: HeldQuotas, diskReserve: Int64,
        completion: @escaping @Sendable (Result<[ReceiveOutcome], any Error>) -> Void
    ) {
        submit(
            rows: batch.reduce(0) { $0 + $1.rows },
            { try $0.receive(batch, from: sender, at: now, policy: policy, quotas: quotas, diskReserve: diskReserve) },
            completion: completion)
    }
}

extension StoreWriter {
    /// - Returns: an outcome for each hex. They are true once the piece is committed.
    func receive(
        _ batch: [IncomingHex], from sender: Sender, at now: Int64, policy: ReceivePolicy, quotas: HeldQuotas, diskReserve: Int64
    ) throws -> [ReceiveOutcome] {
        guard !batch.isEmpty else { return [] }
        passedBytes += batch.reduce(0) { $0 + $1.weight }
        self.diskReserve = diskReserve
        return try change {
            var reception = try BatchInsertion(
                self, sender: sender, now: now, policy: policy, quotas: quotas, isDiskFull: try isDiskFull(for: batch, reserve: diskReserve)
            )
            let outcomes = try reception.take(batch)
            try reception.finish()
            return outcomes
        }
    }

    private func isDiskFull(for batch: [IncomingHex], reserve: Int64) throws -> Bool {
        try isDiskFull(reserve: reserve, writing: batch.reduce(into: Int64(0)) { $0 &+= Int64($1.weight) &+ Self.pageBytes })
    }

    /// Whether less than the reserve would stay free once `bytes` are in the store's file and in its log; 0 is no reserve.
    func isDiskFull(reserve: Int64, writing bytes: Int64) throws -> Bool {
        guard reserve > 0, let free = StoreFile.freeBytes(path) else { return false }
        // Each byte is written twice: into the WAL now, into the database at the checkpoint. `unmovedBytes` includes the
        // pages that this transaction has made so far, though they are not in the log yet.
        let (needed, overflow) = reserve.addingReportingOverflow(2 * bytes + reservedBytes)
        guard !overflow, free >= needed else { return true }
        if free - needed < (try unmovedBytes()) { return true }
        reservedBytes += bytes
        return false
    }

    /// The bytes of pages that only one hex may touch, beyond its weight: a page of an index, or the one in which its texts end.
    private static let pageBytes: Int64 = 4_096

    /// The bytes by which the file will grow when the log is moved into it.
    private func unmovedBytes() throws -> Int64 {
        let pages = try first("PRAGMA page_count") { $0.int64(0) } ?? 0
        let pageSize = try first("PRAGMA page_size") { $0.int64(0) } ?? 0
        return Swift.max(0, pages &* pageSize &- StoreFile.fileBytes(path))
    }
}

/// A batch while it is stored.
private struct BatchInsertion {
    /// The destination of the sender's hexes.
    private enum Way {
        case inbox
        /// Into the inbox, counted against the stranger's daily quota.
        case inboxByDay
        case held
        case refused(RefusalCode, retryAfter: Int?)
    }

    private let store: StoreWriter
    private let sender: Sender
    private let now: Int64
    private let quotas: HeldQuotas
    private let isDiskFull: Bool
    private let way: Way
    /// Whether message ids identify duplicates. Not on plain TCP, where nobody has proved to be the sender; such hexes are also not taken in when
    /// the peer becomes trusted.
    private var isProven: Bool { sender.fingerprint != nil }
    private let inserter: HexInserter
    private let tombstone: SQLStatement
    /// Whether hexes of the sender were deleted lately; those of one without are not looked for one by one.
    private let hasTombstones: Bool
    /// The sender's row; `nil` until something of the sender is kept.
    private var peer: PeerRow?
    private lazy var source = HeldSource.of(sender.address)
    /// The room for held hexes; `nil` until a hex is to be held.
    private var room: HeldCapacity?
    private var arrived: [Int64] = []
    private var refusals = RefusalOrder<ReceiveOutcome>()

    init(
        _ store: StoreWriter, sender: Sender, now: Int64, policy: ReceivePolicy, quotas: HeldQuotas, isDiskFull: Bool
    ) throws {
        self.store = store
        self.sender = sender
        self.now = now
        self.quotas = quotas
        self.isDiskFull = isDiskFull
        inserter = try store.inserter()
        tombstone = try SQLStatement("SELECT 1 FROM tombstone WHERE peer = ? AND messageID = ?", on: store.db)
        peer = try store.peerRow(sender.peer)
        hasTombstones = try peer.flatMap { try store.first("SELECT 1 FROM tombstone WHERE peer = ? LIMIT 1", $0.id) { _ in true } } ?? false
        way = Self.way(of: peer, sender: sender, policy: policy)
        let day = now / 86_400_000
        if peer?.day != day {
            peer?.day = day
            peer?.dayHexes = 0
            peer?.dayBytes = 0
        }
        if store.tally.day != day, case .inboxByDay = way {
            store.tally.day = day
            store.tally.dayHexes = 0
            store.tally.dayBytes = 0
        }
    }

    private static func way(of peer: PeerRow?, sender: Sender, policy: ReceivePolicy) -> Way {
        // Trust belongs to the key. A sender that proved none is a stranger. One that proved another key than the one known by that UUID is
        // not admitted at all (such a key takes 2^122 tries to make, or the store is damaged).
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
            case .everyone: return receive == .held ? .held : .inboxByDay
            case .trusted: return .refused(.notAccepting, retryAfter: RetryAfter.notAccepting)
            }
        }
    }

    mutating func take(_ batch: [IncomingHex]) throws -> [ReceiveOutcome] {
        var outcomes: [ReceiveOutcome] = []
        outcomes.reserveCapacity(batch.count)
        var rest = batch[...]
        var isNew = true
        while !rest.isEmpty {
            let some = rest.prefix(HexInserter.hexesPerStatement)
            rest = rest.dropFirst(some.count)
            if isNew, takesTogether(some) {
                if let ids = try keepTogether(some) {
                    outcomes += ids.lazy.map { .stored($0) }
                    continue
                }
                isNew = false  // a batch that is sent again: a second try for each eight would take as long again
            }
            for hex in some { outcomes.append(try take(hex)) }
        }
        return outcomes
    }

    private mutating func take(_ hex: IncomingHex) throws -> ReceiveOutcome {
        if case .refused(.blocked, let retryAfter) = way { return .refused(.blocked, retryAfter: retryAfter) }
        if let refusal = refusals.reason(toRefuse: hex.messageID) { return refusal }
        guard hex.content.fitsBounds else { return .refused(.tooManyLinks, retryAfter: nil) }
        switch way {
        case .refused(let code, let retryAfter):
            if let status = try earlier(hex) { return .duplicate(of: status) }
            return refuse(hex, code, retryAfter: retryAfter)
        case .inbox:
            guard !isInboxFull, !isDiskFull else { return try refuseUnlessEarlier(hex, .storageFull, RetryAfter.storageFull) }
            return try keep(hex)
        case .inboxByDay:
            guard !isInboxFull, !isDiskFull else { return try refuseUnlessEarlier(hex, .storageFull, RetryAfter.storageFull) }
            guard fitsDay(hex) else { return try refuseUnlessEarlier(hex, .quotaExceeded, secondsToNextDay) }
            return try keepByDay(hex)
        case .held:
            if let status = try earlier(hex) { return .duplicate(of: status) }
            guard !isDiskFull else { return refuse(hex, .storageFull, retryAfter: RetryAfter.storageFull) }
            guard try hasRoom(for: hex) else { return refuse(hex, .quotaExceeded, retryAfter: RetryAfter.quotaExceeded) }
            return try hold(hex)
        }
    }

    /// Records the events and the counts of the day.
    mutating func finish() throws {
        guard let peer, !arrived.isEmpty else { return }
        if peer.fingerprint == nil, let fingerprint = sender.fingerprint {
            try store.run("UPDATE peer SET fingerprint = ? WHERE id = ?", fingerprint.bytes, peer.id)
        }
        switch way {
        case .inbox, .refused: break
        case .inboxByDay:
            try store.run(
                "UPDATE peer SET day = ?, dayHexes = ?, dayBytes = ? WHERE id = ?", peer.day, peer.dayHexes, peer.dayBytes, peer.id)
        case .held:
            store.changed(.peers)
            return try store.record(.hexHeld, at: now, peer: sender.peer, hexes: arrived)
        }
        try store.record(.hexReceived, at: now, peer: sender.peer, hexes: arrived)
    }

    // MARK: - Duplicates and refusals

    /// The status of an earlier hex with that sender and message id; `nil` if there is none.
    private func earlier(_ hex: IncomingHex) throws -> ReceiptStatus? {
        guard isProven, let id = hex.messageID, let peer else { return nil }
        if try isBuried(id, of: peer) { return .stored }
        return try store.first(
            "SELECT location FROM hex WHERE peer = ? AND messageID = ? AND isProven = 1", peer.id, id.uuid
        ) { $0.text(0) == HexLocation.held.rawValue ? .held : .stored }
    }

    private func isBuried(_ id: MessageID, of peer: PeerRow) throws -> Bool {
        guard hasTombstones else { return false }
        try tombstone.check(peer.id.bindValue(to: tombstone.handle, at: 1))
        try tombstone.check(id.uuid.bindValue(to: tombstone.handle, at: 2))
        defer { tombstone.reset() }
        return try tombstone.step()
    }

    private mutating func refuse(_ hex: IncomingHex, _ code: RefusalCode, retryAfter: Int?) -> ReceiveOutcome {
        let outcome = ReceiveOutcome.refused(code, retryAfter: retryAfter)
        if code.isTemporary, let id = hex.messageID { refusals.refused(id, for: outcome) }
        return outcome
    }

    private mutating func refuseUnlessEarlier(_ hex: IncomingHex, _ code: RefusalCode, _ retryAfter: Int) throws -> ReceiveOutcome {
        if let status = try earlier(hex) { return .duplicate(of: status) }
        return refuse(hex, code, retryAfter: retryAfter)
    }

    // MARK: - Into the inbox

    private var isInboxFull: Bool {
        guard let limit = quotas.inboxHexes else { return false }
        return store.tally.inbox >= Int64(limit)
    }

    private mutating func keep(_ hex: IncomingHex) throws -> ReceiveOutcome {
        let peer = try knownPeer()
        if isProven, let id = hex.messageID, try isBuried(id, of: peer) { return .duplicate(of: .stored) }
        let id = store.tally.nextHex
        let isNew = try inserter.insert(
            hex.content,
            HexInserter.Row(
                id: id, location: .inbox, inboxNumber: store.tally.nextInbox, peer: peer.id, messageID: hex.messageID,
                isProven: isProven, byteCount: hex.weight, receivedAt: now))
        guard isNew else {
            guard let status = try earlier(hex) else { throw StoreFault.lost }
            return .duplicate(of: status)
        }
        store.tally.nextHex &+= Int64(hex.content.hexCount)
        countArrival(of: id..<id &+ 1, from: peer)
        return .stored(id)
    }

    /// Whether all of some hexes go into the inbox unless they are there already.
    private func takesTogether(_ hexes: ArraySlice<IncomingHex>) -> Bool {
        guard case .inbox = way, hexes.count == HexInserter.hexesPerStatement, !isDiskFull, !hasTombstones, !refusals.isRefusing else {
            return false
        }
        if let limit = quotas.inboxHexes, store.tally.inbox &+ Int64(hexes.count) > Int64(limit) { return false }
        return hexes.allSatisfy { $0.content.children.isEmpty && $0.content.fitsBounds }
    }

    /// Keeps hexes for which `takesTogether` holds.
    /// - Returns: their ids; `nil` if one of them is there already, and then none was kept.
    private mutating func keepTogether(_ hexes: ArraySlice<IncomingHex>) throws -> Range<Int64>? {
        let peer = try knownPeer()
        let count = Int64(hexes.count)
        let ids = store.tally.nextHex..<store.tally.nextHex &+ count
        let row = HexInserter.Row(
            id: ids.lowerBound, location: .inbox, inboxNumber: store.tally.nextInbox, peer: peer.id, isProven: true, byteCount: 0,
            receivedAt: now)
        guard try inserter.insert(hexes, from: row) else { return nil }
        store.tally.nextHex &+= count
        countArrival(of: ids, from: peer)
        return ids
    }

    /// Counts hexes that were put into the inbox.
    private mutating func countArrival(of ids: Range<Int64>, from peer: PeerRow) {
        let count = Int64(ids.count)
        store.tally.nextInbox &+= count
        store.tally.inbox &+= count
        store.tally.unread &+= count
        store.count(peer: peer.id) { delta in
            delta.hexes &+= count
            delta.unread &+= count
        }
        arrived += ids
    }

    // MARK: - Into the inbox, within a day's quota

    private var secondsToNextDay: Int {
        let milliseconds = 86_400_000 - (now % 86_400_000 + 86_400_000) % 86_400_000
        return min(max(Int(milliseconds / 1_000), ProtocolLimits.retryAfterRange.lowerBound), ProtocolLimits.retryAfterRange.upperBound)
    }

    private func fitsDay(_ hex: IncomingHex) -> Bool {
        let bytes = Int64(hex.weight)
        let (hexes, size) = (peer?.dayHexes ?? 0, peer?.dayBytes ?? 0)
        return hexes < Int64(quotas.hexesPerPeer) && size &+ bytes <= Int64(quotas.bytesPerPeer)
            && store.tally.dayHexes < Int64(quotas.hexes) && store.tally.dayBytes &+ bytes <= Int64(quotas.bytes)
    }

    private mutating func keepByDay(_ hex: IncomingHex) throws -> ReceiveOutcome {
        let outcome = try keep(hex)
        guard case .stored = outcome else { return outcome }
        peer?.dayHexes &+= 1
        peer?.dayBytes &+= Int64(hex.weight)
        store.tally.dayHexes &+= 1
        store.tally.dayBytes &+= Int64(hex.weight)
        return outcome
    }

    // MARK: - Held

    private mutating func hasRoom(for hex: IncomingHex) throws -> Bool {
        let room = try self.room ?? store.heldRoom(of: peer, from: source, quotas: quotas)
        self.room = room
        return room.fits(bytes: Int64(hex.weight))
    }

    private mutating func hold(_ hex: IncomingHex) throws -> ReceiveOutcome {
        let peer = try knownPeer()
        let id = store.tally.nextHex
        let isNew = try inserter.insert(
            hex.content,
            HexInserter.Row(
                id: id, location: .held, peer: peer.id, messageID: hex.messageID, isProven: isProven,
                byteCount: hex.weight, receivedAt: now, heldSince: store.lived, heldFrom: source))
        guard isNew else { throw StoreFault.lost }
        let bytes = Int64(hex.weight)
        store.tally.nextHex &+= Int64(hex.content.hexCount)
        store.tally.held &+= 1
        store.tally.heldBytes &+= bytes
        store.count(peer: peer.id) { delta in
            delta.hexes &+= 1
            delta.held &+= 1
            delta.heldBytes &+= bytes
        }
        room?.add(bytes: bytes)
        arrived.append(id)
        return .held(id)
    }

    private mutating func knownPeer() throws -> PeerRow {
        if let peer { return peer }
        var row = try store.peerRow(making: sender.peer, fingerprint: sender.fingerprint, name: sender.name)
        row.day = now / 86_400_000
        peer = row
        return row
    }
}
