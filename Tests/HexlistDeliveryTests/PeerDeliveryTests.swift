import HexlistModel
import Testing

@testable import HexlistDelivery

@Suite("Delivery of one peer's rows")
struct PeerDeliveryTests {
    let start = ContinuousClock.Instant.now

    static func row(_ id: Int64, bytes: Int = 10) -> OutgoingHex {
        OutgoingHex(id: id, messageID: MessageID(UUIDBytes(high: UInt64(id), low: 1)), body: ArraySlice(repeating: 0x20, count: bytes))
    }

    /// Performs the steps of a delivery until `wait`, loading rows from `outbox`.
    static func drain(_ delivery: inout PeerDelivery, outbox: [OutgoingHex], now: ContinuousClock.Instant, room: Int = .max)
        -> [PeerDelivery.Step]
    {
        var steps: [PeerDelivery.Step] = []
        var sent = 0
        while true {
            let step = delivery.next(now: now) { _ in sent < room }
            switch step {
            case .wait: return steps
            case .load(let after, let epoch):
                delivery.loaded(outbox.filter { $0.id > after }, hasMore: false, epoch: epoch)
                continue
            case .send: sent += 1
            case .reject, .end: break
            }
            steps.append(step)
            if step == .end { return steps }
        }
    }

    static func kept(_ ids: [Int64]) -> [RowResult] { ids.map { RowResult(id: $0, .stored) } }

    static func connected(limit: Int = 1 << 20) -> PeerDelivery {
        var delivery = PeerDelivery()
        delivery.connected(frameLimit: limit)
        return delivery
    }

    @Test("rows are sent in order, within the window, once each")
    func order() {
        let rows = (1...5).map { Self.row($0) }
        var delivery = Self.connected()
        #expect(Self.drain(&delivery, outbox: rows, now: start, room: 3) == rows[0..<3].map { .send($0) })
        #expect(Self.drain(&delivery, outbox: rows, now: start) == rows[3...].map { .send($0) })
        #expect(delivery.hasWork)
        let results = delivery.settled(Self.kept([1, 2, 3, 4, 5]), isCurrent: true, now: start)
        #expect(results.map(\.result) == Array(repeating: .stored, count: 5))
        delivery.written()
        #expect(!delivery.hasWork)
        #expect(Self.drain(&delivery, outbox: rows, now: start).isEmpty)
        delivery.rowsAdded()
        #expect(Self.drain(&delivery, outbox: rows + [Self.row(6)], now: start) == [.send(Self.row(6))])
    }

    @Test("new rows are sent from memory while delivery has caught up; others are read from the store")
    func handedOver() {
        var delivery = Self.connected()
        #expect(Self.drain(&delivery, outbox: [Self.row(1)], now: start) == [.send(Self.row(1))])
        delivery.appended([Self.row(2), Self.row(3)], isDurable: true)
        #expect(Self.drain(&delivery, outbox: [], now: start) == [.send(Self.row(2)), .send(Self.row(3))])
        // The store reports rows 5 and 6 after their commit. A load that is running may already contain some of them.
        delivery.rowsAdded()
        guard case .load(3, let epoch) = delivery.next(now: start, fitsWindow: { _ in true }) else { return #expect(Bool(false)) }
        delivery.appended([Self.row(5), Self.row(6)], isDurable: true)
        delivery.loaded([Self.row(4), Self.row(5)], hasMore: false, epoch: epoch)
        let all = (1...6).map { Self.row($0) }
        #expect(Self.drain(&delivery, outbox: all, now: start) == all[3...].map { .send($0) })
        // Rows that a load already contains are not sent twice.
        delivery.appended([Self.row(6), Self.row(7)], isDurable: true)
        #expect(Self.drain(&delivery, outbox: [], now: start) == [.send(Self.row(7))])
    }

    @Test("rows sent before their commit are offered again once committed, and not sent twice")
    func handedOverTwice() {
        var delivery = Self.connected()
        _ = Self.drain(&delivery, outbox: [], now: start)
        #expect(!delivery.hasKnownRows)
        delivery.appended([Self.row(1)], isDurable: false)
        #expect(Self.drain(&delivery, outbox: [], now: start) == [.send(Self.row(1))])
        _ = delivery.settled([RowResult(id: 1, .stored)], isCurrent: true, now: start)
        delivery.written()
        delivery.appended([Self.row(1)], isDurable: true)
        #expect(!delivery.hasKnownRows && !delivery.hasWork)
        // If the order became uncertain meanwhile, the rows are read from the store. A read that is too early does no harm.
        delivery.appended([Self.row(2)], isDurable: false)
        delivery.rowsChanged()
        #expect(Self.drain(&delivery, outbox: [], now: start).isEmpty)
        delivery.appended([Self.row(2)], isDurable: true)
        #expect(Self.drain(&delivery, outbox: [], now: start) == [.send(Self.row(2))])
    }

    @Test("a row sent before its commit while the order was uncertain is not skipped by the next one", arguments: [false, true])
    func missedAhead(wasTaken: Bool) {
        var delivery = Self.connected()
        if wasTaken {
            _ = Self.drain(&delivery, outbox: [], now: start)
            delivery.appended([Self.row(1)], isDurable: false)
            delivery.connected(frameLimit: ProtocolLimits.trustedFrameBytes)
        } else {
            delivery.appended([Self.row(1)], isDurable: false)
        }
        #expect(Self.drain(&delivery, outbox: [], now: start).isEmpty)
        delivery.appended([Self.row(2)], isDurable: false)
        #expect(Self.drain(&delivery, outbox: [], now: start).isEmpty)
        delivery.appended([Self.row(1)], isDurable: true)
        delivery.appended([Self.row(2)], isDurable: true)
        #expect(Self.drain(&delivery, outbox: [Self.row(1), Self.row(2)], now: start) == [.send(Self.row(1)), .send(Self.row(2))])
        // After the commits in their order, rows are again sent before their commit.
        delivery.appended([Self.row(3)], isDurable: false)
        #expect(Self.drain(&delivery, outbox: [], now: start) == [.send(Self.row(3))])
    }

    @Test("a row is not sent before earlier rows whose commit is pending")
    func comingBefore() {
        var delivery = Self.connected()
        _ = Self.drain(&delivery, outbox: [], now: start)
        delivery.enqueueBegan()
        #expect(!delivery.isIdle)
        delivery.appended([Self.row(3)], isDurable: false)
        #expect(Self.drain(&delivery, outbox: [], now: start).isEmpty)
        delivery.enqueueEnded()
        delivery.appended([Self.row(1), Self.row(2)], isDurable: true)
        delivery.appended([Self.row(3)], isDurable: true)
        #expect(Self.drain(&delivery, outbox: [], now: start) == (1...3).map { .send(Self.row($0)) })
    }

    @Test("an early row whose commit failed is forgotten; a delivery that never saw it is unchanged")
    func uncommittedLost() {
        var delivery = Self.connected()
        _ = Self.drain(&delivery, outbox: [], now: start)
        var isLost = delivery.uncommittedLost(upTo: 1)
        #expect(!isLost && !delivery.hasWork)
        delivery.appended([Self.row(1)], isDurable: false)
        isLost = delivery.uncommittedLost(upTo: 1)
        #expect(isLost)
        #expect(Self.drain(&delivery, outbox: [], now: start).isEmpty)
        #expect(!delivery.hasKnownRows && !delivery.hasWork)
        delivery.appended([Self.row(2)], isDurable: false)
        #expect(Self.drain(&delivery, outbox: [], now: start) == [.send(Self.row(2))])
    }

    @Test("a failed commit does not drop later early rows")
    func lostBeforeAnother() {
        var delivery = Self.connected()
        _ = Self.drain(&delivery, outbox: [], now: start)
        delivery.appended([Self.row(1)], isDurable: false)
        delivery.appended([Self.row(2)], isDurable: false)
        let isLost = delivery.uncommittedLost(upTo: 1)
        #expect(isLost && !delivery.isIdle)
        #expect(Self.drain(&delivery, outbox: [], now: start).isEmpty)
        delivery.appended([Self.row(3)], isDurable: false)
        #expect(Self.drain(&delivery, outbox: [], now: start).isEmpty)
        delivery.appended([Self.row(2)], isDurable: true)
        delivery.appended([Self.row(3)], isDurable: true)
        #expect(Self.drain(&delivery, outbox: [], now: start) == [.send(Self.row(2)), .send(Self.row(3))])
    }

    @Test("an empty load that began before rows were queued proves nothing")
    func staleLook() {
        var delivery = PeerDelivery()
        delivery.rowsAdded()
        let noted = delivery.queueRevision
        delivery.appended([Self.row(1)], isDurable: true)
        var isNone = delivery.foundNone(at: noted)
        #expect(!isNone && delivery.hasKnownRows)
        isNone = delivery.foundNone(at: delivery.queueRevision)
        #expect(isNone && !delivery.hasKnownRows)
    }

    @Test("at most about two loads are kept in memory: the rest is read from the store")
    func handedOverBound() {
        var delivery = Self.connected()
        _ = Self.drain(&delivery, outbox: [], now: start)
        let large = (1...9).map { Self.row($0, bytes: (1 << 20) - 256) }
        for row in large { delivery.appended([row], isDurable: true) }
        var taken: [Int64] = []
        var step = delivery.next(now: start, fitsWindow: { _ in true })
        while case .send(let row) = step {
            taken.append(row.id)
            step = delivery.next(now: start, fitsWindow: { _ in true })
        }
        #expect(taken.count < large.count)
        guard case .load(let after, _) = step else { return #expect(Bool(false)) }
        #expect(after == taken.last)
    }

    @Test("a stream is throttled while more than half a load is in memory, but not once rows must be read")
    func behind() {
        var delivery = PeerDelivery()
        let half = Self.row(1, bytes: PeerDelivery.loadBytes / 2)
        delivery.appended([half, Self.row(2)], isDurable: true)
        #expect(!delivery.isBufferFilling)  // rows are not buffered without a session
        delivery.connected(frameLimit: 16 << 20)
        _ = Self.drain(&delivery, outbox: [], now: start)
        delivery.appended([half], isDurable: true)
        #expect(!delivery.isBufferFilling)
        delivery.appended([Self.row(2)], isDurable: true)
        #expect(delivery.isBufferFilling)
        delivery.appended([Self.row(3, bytes: PeerDelivery.loadBytes)], isDurable: true)
        delivery.appended([Self.row(4)], isDurable: true)  // the buffer is full, so row 4 is not added
        #expect(!delivery.isBufferFilling)
        delivery.disconnected()
        #expect(!delivery.isBufferFilling)
    }

    @Test("a newer session continues at the lowest pending row, once all receipts are written")
    func anotherSession() {
        let rows = (1...4).map { Self.row($0) }
        var delivery = Self.connected()
        _ = Self.drain(&delivery, outbox: rows, now: start)
        _ = delivery.settled(Self.kept([1, 2]), isCurrent: true, now: start)
        delivery.connected(frameLimit: 1 << 20)
        #expect(Self.drain(&delivery, outbox: Array(rows[2...]), now: start).isEmpty)  // the results of rows 1 and 2 are being written
        delivery.written()
        #expect(Self.drain(&delivery, outbox: Array(rows[2...]), now: start) == rows[2...].map { .send($0) })
    }

    @Test("a load requested before the rewind is discarded")
    func staleLoad() {
        var delivery = Self.connected()
        guard case .load(_, let epoch) = delivery.next(now: start, fitsWindow: { _ in true }) else { return #expect(Bool(false)) }
        delivery.connected(frameLimit: 1 << 20)
        guard case .load(_, let next) = delivery.next(now: start, fitsWindow: { _ in true }) else { return #expect(Bool(false)) }
        #expect(next != epoch)
        delivery.loaded([Self.row(9)], hasMore: false, epoch: epoch)
        let step = delivery.next(now: start, fitsWindow: { _ in true })
        #expect(step == .wait)
    }

    @Test("after a temporary refusal it pauses, then sends one refused row first")
    func refusedForNow() {
        let rows = (1...3).map { Self.row($0) }
        var delivery = Self.connected()
        _ = Self.drain(&delivery, outbox: rows, now: start)
        let refusals = [2, 3].map { RowResult(id: $0, .refused(.storageFull, message: "full", retryAfter: 60)) }
        _ = delivery.settled(Self.kept([1]) + refusals, isCurrent: true, now: start)
        delivery.written()
        #expect(Self.drain(&delivery, outbox: Array(rows[1...]), now: start + .seconds(59)).isEmpty)
        // Only one of the refused rows is sent, as a probe.
        #expect(Self.drain(&delivery, outbox: Array(rows[1...]), now: start + .seconds(61)) == [.send(rows[1])])
        _ = delivery.settled(Self.kept([2]), isCurrent: true, now: start + .seconds(61))
        delivery.written()
        #expect(Self.drain(&delivery, outbox: Array(rows[2...]), now: start + .seconds(61)) == [.send(rows[2])])
    }

    @Test("a returning peer is served at once unless it asked for the pause")
    func back() {
        var delivery = Self.connected()
        delivery.pause(until: start + .seconds(200))
        delivery.peerIsBack()
        #expect(Self.drain(&delivery, outbox: [Self.row(1)], now: start) == [.send(Self.row(1))])
        _ = delivery.settled([RowResult(id: 1, .refused(.internal, message: "", retryAfter: 60))], isCurrent: true, now: start)
        delivery.written()
        delivery.pause(until: start + .seconds(200))
        delivery.peerIsBack()
        #expect(Self.drain(&delivery, outbox: [Self.row(1)], now: start + .seconds(59)).isEmpty)
        #expect(Self.drain(&delivery, outbox: [Self.row(1)], now: start + .seconds(61)) == [.send(Self.row(1))])
    }

    @Test("after a failure one row is in flight, and twice as many with each receipt")
    func allowance() {
        let rows = (1...3_000).map { Self.row($0) }
        var delivery = Self.connected()
        delivery.pause(until: start)
        var sent: [Int] = []
        var next: Int64 = 1
        while next <= 3_000 {
            let batch = Self.drain(&delivery, outbox: rows, now: start)
            sent.append(batch.count)
            _ = delivery.settled(Self.kept(Array(next..<next + Int64(batch.count))), isCurrent: true, now: start)
            delivery.written()
            next += Int64(batch.count)
        }
        #expect(sent == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 953])
        delivery.pause(until: start)
        delivery.rowsAdded()
        let more = (3_001...3_005).map { Self.row($0) }
        #expect(Self.drain(&delivery, outbox: more, now: start) == [.send(more[0])])
    }

    @Test("without a refused row to probe with, the session is ended first")
    func refusedAndCancelled() {
        var delivery = Self.connected()
        _ = Self.drain(&delivery, outbox: [Self.row(1)], now: start)
        _ = delivery.settled([RowResult(id: 1, .refused(.internal, message: "", retryAfter: nil))], isCurrent: true, now: start)
        delivery.written()
        #expect(Self.drain(&delivery, outbox: [Self.row(2)], now: start + .seconds(61)) == [.end])
    }

    @Test("retryAfter is clamped to 5 … 3600 s and outlives the session", arguments: [(0, 5), (7, 7), (1_000_000, 3_600)])
    func retryAfter(told: Int, taken: Int) {
        var delivery = Self.connected()
        _ = Self.drain(&delivery, outbox: [Self.row(1)], now: start)
        _ = delivery.settled([RowResult(id: 1, .refused(.internal, message: "", retryAfter: told))], isCurrent: true, now: start)
        delivery.written()
        delivery.disconnected()
        delivery.connected(frameLimit: 1 << 20)
        #expect(Self.drain(&delivery, outbox: [Self.row(1)], now: start + .seconds(taken) - .milliseconds(1)).isEmpty)
        #expect(Self.drain(&delivery, outbox: [Self.row(1)], now: start + .seconds(taken)) == [.send(Self.row(1))])
    }

    /// A delivery with one row that the peer refused for an hour.
    private func refusedForAnHour() -> PeerDelivery {
        var delivery = Self.connected()
        delivery.greeted(boot: BootNonce(1), frameLimit: 64 << 10, now: start)
        _ = Self.drain(&delivery, outbox: [Self.row(1)], now: start)
        refuse(&delivery, at: start)
        return delivery
    }

    private func refuse(_ delivery: inout PeerDelivery, at now: ContinuousClock.Instant) {
        _ = delivery.settled([RowResult(id: 1, .refused(.notAccepting, message: "", retryAfter: 3_600))], isCurrent: true, now: now)
        delivery.written()
    }

    @Test("a later Hello ends only a pause that the peer asked for, at most every 5 s")
    func laterHello() {
        var delivery = refusedForAnHour()
        #expect(Self.drain(&delivery, outbox: [Self.row(1)], now: start + .seconds(1)).isEmpty)
        delivery.greetedAgain(frameLimit: 64 << 10, now: start + .seconds(1))
        #expect(Self.drain(&delivery, outbox: [Self.row(1)], now: start + .seconds(1)) == [.send(Self.row(1))])
        // A peer that alternates refusals and Hellos is retried no more often than with a retryAfter of 5 s.
        refuse(&delivery, at: start + .seconds(2))
        for _ in 0..<3 { delivery.greetedAgain(frameLimit: 64 << 10, now: start + .seconds(3)) }
        #expect(delivery.pausedUntil == start + .seconds(6))
        #expect(Self.drain(&delivery, outbox: [Self.row(1)], now: start + .seconds(6)) == [.send(Self.row(1))])
        // A failure is not a refusal, so a later Hello does not end its pause.
        refuse(&delivery, at: start + .seconds(60))
        delivery.pause(until: start + .seconds(70))
        delivery.greetedAgain(frameLimit: 64 << 10, now: start + .seconds(61))
        #expect(delivery.pausedUntil == start + .seconds(70))
    }

    @Test("a later Hello counts on any session; its capacity applies to its own session")
    func laterHelloElsewhere() {
        var delivery = refusedForAnHour()
        let limit = delivery.frameLimit
        delivery.greetedAgain(frameLimit: nil, now: start + .seconds(1))
        #expect(Self.drain(&delivery, outbox: [Self.row(1)], now: start + .seconds(1)) == [.send(Self.row(1))])
        #expect(delivery.frameLimit == limit)
    }

    @Test(
        "a refusal outlives the session unless the peer restarted or accepts longer frames",
        arguments: [(1, 64 << 10, false), (1, 32 << 10, false), (1, 1 << 20, true), (2, 64 << 10, true)])
    func laterSession(boot: UInt64, frameLimit: Int, isOver: Bool) {
        var delivery = refusedForAnHour()
        delivery.disconnected()
        delivery.greeted(boot: BootNonce(boot), frameLimit: frameLimit, now: start + .seconds(1))
        delivery.connected(frameLimit: frameLimit)
        #expect(Self.drain(&delivery, outbox: [Self.row(1)], now: start + .seconds(1)) == (isOver ? [.send(Self.row(1))] : []))
    }

    @Test("trusting the peer ends the pause it asked for")
    func ownTrust() {
        var delivery = refusedForAnHour()
        delivery.trustBegan()
        #expect(Self.drain(&delivery, outbox: [Self.row(1)], now: start + .seconds(1)) == [.send(Self.row(1))])
    }

    @Test("a refusal of a retried row starts a new round: earlier refusals no longer count")
    func refusedAgain() {
        let rows = (1...2).map { Self.row($0) }
        var delivery = Self.connected()
        _ = Self.drain(&delivery, outbox: rows, now: start)
        let refusal = DeliveryResult.refused(.internal, message: "", retryAfter: 5)
        _ = delivery.settled(rows.map { RowResult(id: $0.id, refusal) }, isCurrent: true, now: start)
        delivery.written()
        #expect(Self.drain(&delivery, outbox: rows, now: start + .seconds(6)) == [.send(rows[0])])
        _ = delivery.settled([RowResult(id: 1, refusal)], isCurrent: true, now: start + .seconds(6))
        delivery.written()
        // Row 1 was cancelled. Row 2 was refused before, but not since.
        #expect(Self.drain(&delivery, outbox: [rows[1]], now: start + .seconds(12)) == [.end])
    }

    @Test("a refusal without retryAfter pauses for 60 s; a duplicate without details counts as stored")
    func defaults() {
        var delivery = Self.connected()
        _ = Self.drain(&delivery, outbox: [Self.row(1), Self.row(2)], now: start)
        let results = delivery.settled(
            [
                RowResult(id: 1, .duplicate(of: .stored)),
                RowResult(id: 2, .refused(.internal, message: "", retryAfter: nil)),
            ], isCurrent: true, now: start)
        #expect(results.first?.result.state == .stored)
        #expect(delivery.pausedUntil == start + .seconds(60))
    }

    @Test("a row over a stranger's frame limit waits for trust and is passed over; over the maximum it is rejected")
    func tooLong() {
        let rows = [Self.row(1, bytes: 70_000), Self.row(2)]
        var delivery = Self.connected(limit: 64 << 10)
        #expect(delivery.waitsForTrust(bytes: 70_000))
        #expect(Self.drain(&delivery, outbox: rows, now: start) == [.send(rows[1])])
        _ = delivery.settled(Self.kept([2]), isCurrent: true, now: start)
        delivery.written()
        delivery.limitRaised(to: 1 << 20)
        #expect(Self.drain(&delivery, outbox: [rows[0]], now: start) == [.send(rows[0])])

        var trusted = Self.connected()
        #expect(Self.drain(&trusted, outbox: [Self.row(1, bytes: 2 << 20), Self.row(2)], now: start) == [.reject(1), .send(Self.row(2))])
    }

    @Test("receipts of an older session settle rows but do not open the newer session's window")
    func olderReceipts() {
        let rows = (1...2).map { Self.row($0) }
        var delivery = Self.connected()
        _ = Self.drain(&delivery, outbox: rows, now: start)
        delivery.connected(frameLimit: 1 << 20)
        _ = Self.drain(&delivery, outbox: rows, now: start)
        #expect(delivery.inFlight == 2)
        let results = delivery.settled(Self.kept([1]), isCurrent: false, now: start)
        #expect(results.count == 1)
        #expect(delivery.inFlight == 2)
    }

    @Test("only the first row refused since the last send is retried first; later ones were refused as a consequence")
    func leading() {
        let rows = (1...3).map { Self.row($0) }
        var delivery = Self.connected()
        _ = Self.drain(&delivery, outbox: rows, now: start)
        func refuse(_ id: Int64) -> [RowResult] {
            [RowResult(id: id, .refused(.internal, message: "", retryAfter: 5))]
        }
        // Two refusals arrive in one receipt, and the third one in another receipt.
        let first = delivery.settled(refuse(1) + refuse(2), isCurrent: true, now: start)
        let second = delivery.settled(refuse(3), isCurrent: true, now: start)
        #expect((first + second).map(\.isFirstRefused) == [true, false, false])
        delivery.written()
        delivery.written()
        #expect(Self.drain(&delivery, outbox: rows, now: start + .seconds(6)) == [.send(rows[0])])
        let again = delivery.settled(refuse(1), isCurrent: true, now: start + .seconds(6))
        #expect(again.map(\.isFirstRefused) == [true])
    }

    @Test("refusals on a session that is not used for sending count against no row")
    func olderRefusals() {
        var delivery = Self.connected()
        _ = Self.drain(&delivery, outbox: [Self.row(1)], now: start)
        let results = delivery.settled(
            [RowResult(id: 1, .refused(.internal, message: "", retryAfter: 5))], isCurrent: false, now: start)
        #expect(results.map(\.isFirstRefused) == [false])
    }

    @Test("refusals of rows in flight during a later Hello start no long pause")
    func refusedOnItsWay() {
        func refuse(_ row: Int64, at now: ContinuousClock.Instant) {
            let refusal = RowResult(id: row, .refused(.quotaExceeded, message: "", retryAfter: 3_600))
            _ = delivery.settled([refusal], isCurrent: true, now: now)
            delivery.written()
        }
        var delivery = Self.connected()
        let rows = (1...80).map { Self.row($0) }
        #expect(Self.drain(&delivery, outbox: rows, now: start).count == 80)
        refuse(1, at: start)
        #expect(delivery.pausedUntil == start + .seconds(3_600))
        delivery.greetedAgain(frameLimit: 1 << 20, now: start + .seconds(1))
        #expect(!delivery.isPaused(now: start + .seconds(1)))
        // The delivery is retried after the minimum pause, regardless of the number of refused rows.
        for row in 2...80 as ClosedRange<Int64> {
            refuse(row, at: start + .seconds(2))
            #expect(delivery.pausedUntil == start + .seconds(7))
        }
        #expect(Self.drain(&delivery, outbox: rows, now: start + .seconds(7)) == [.send(rows[0])])
        // Rows sent since then are refused for the peer's full retryAfter.
        refuse(1, at: start + .seconds(8))
        #expect(delivery.pausedUntil == start + .seconds(3_608))
    }

    @Test("a peer that answers each hex with a Hello and a refusal is retried at most every 5 s")
    func helloBeforeEachRefusal() {
        var delivery = refusedForAnHour()
        delivery.greetedAgain(frameLimit: 64 << 10, now: start + .seconds(1))
        var now = start + .seconds(20)
        for _ in 0..<5 {
            #expect(Self.drain(&delivery, outbox: [Self.row(1)], now: now) == [.send(Self.row(1))])
            delivery.greetedAgain(frameLimit: 64 << 10, now: now)
            refuse(&delivery, at: now)
            #expect(Self.drain(&delivery, outbox: [Self.row(1)], now: now + .milliseconds(4_999)).isEmpty)
            now += .seconds(5)
        }
    }

    @Test("rows refused on another session were sent before this one began, so they are soon retried on this one")
    func refusedElsewhere() {
        var delivery = Self.connected()
        let refusals = (1...80).map { RowResult(id: $0, .refused(.quotaExceeded, message: "", retryAfter: 3_600)) }
        _ = delivery.settled(refusals, isCurrent: false, now: start)
        delivery.written()
        #expect(delivery.pausedUntil == start + .seconds(5))
    }

    @Test("a later pause never shortens an earlier one; a person can end it")
    func pauses() {
        var delivery = Self.connected()
        _ = Self.drain(&delivery, outbox: [Self.row(1)], now: start)
        _ = delivery.settled([RowResult(id: 1, .refused(.storageFull, message: "", retryAfter: 60))], isCurrent: true, now: start)
        delivery.written()
        delivery.disconnected()
        delivery.pause(until: start + .seconds(2))
        #expect(delivery.pausedUntil == start + .seconds(60))
        delivery.connected(frameLimit: 1 << 20)
        #expect(Self.drain(&delivery, outbox: [Self.row(1)], now: start + .seconds(3)).isEmpty)
        delivery.retryNow()
        #expect(Self.drain(&delivery, outbox: [Self.row(1)], now: start + .seconds(3)) == [.send(Self.row(1))])
    }

    @Test("on a fallback to the older session, rows in flight are awaited before others are sent")
    func fallingBack() {
        let rows = (1...4).map { Self.row($0) }
        var delivery = Self.connected()
        _ = Self.drain(&delivery, outbox: rows, now: start, room: 2)
        // A newer session began and ended. On the older one, two rows are still without a receipt.
        delivery.connected(frameLimit: 1 << 20)
        delivery.connected(frameLimit: 1 << 20, inFlight: 2)
        #expect(Self.drain(&delivery, outbox: rows, now: start).isEmpty)
        _ = delivery.settled(Self.kept([1]), isCurrent: true, now: start)
        delivery.written()
        #expect(Self.drain(&delivery, outbox: rows, now: start).isEmpty)
        _ = delivery.settled(Self.kept([2]), isCurrent: true, now: start)
        delivery.written()
        #expect(Self.drain(&delivery, outbox: Array(rows[2...]), now: start) == rows[2...].map { .send($0) })
    }

    @Test("it is quiet once nothing is in flight, being written or being loaded")
    func quiet() {
        var delivery = Self.connected()
        #expect(delivery.isIdle)
        _ = delivery.next(now: start) { _ in true }
        #expect(!delivery.isIdle)  // a load is running
        delivery.disconnected()
        delivery.connected(frameLimit: 1 << 20)
        _ = Self.drain(&delivery, outbox: [Self.row(1)], now: start)
        #expect(!delivery.isIdle)  // a row is in flight
        _ = delivery.settled(Self.kept([1]), isCurrent: true, now: start)
        #expect(!delivery.isIdle)  // a result is being written
        delivery.written()
        #expect(delivery.isIdle)
    }

    @Test("returned rows come before loaded ones")
    func requeued() {
        let rows = (1...3).map { Self.row($0) }
        var delivery = Self.connected()
        #expect(Self.drain(&delivery, outbox: [rows[1]], now: start) == [.send(rows[1])])
        delivery.rowsAdded()
        delivery.rowsChanged()
        #expect(Self.drain(&delivery, outbox: rows, now: start).isEmpty)  // row 2 is in flight
        _ = delivery.settled(Self.kept([2]), isCurrent: true, now: start)
        delivery.written()
        #expect(Self.drain(&delivery, outbox: [rows[0], rows[2]], now: start) == [.send(rows[0]), .send(rows[2])])
    }

    @Test("bytes of a slot count from its grant")
    func bytesOfATurn() {
        var delivery = Self.connected()
        delivery.slotBegan()
        _ = Self.drain(&delivery, outbox: [Self.row(1, bytes: 1_000), Self.row(2, bytes: 1_000)], now: start)
        #expect(delivery.bytesThisSlot == 2 * (1_000 + ProtocolLimits.wrapperBytes))
        delivery.slotBegan()
        #expect(delivery.bytesThisSlot == 0)
    }
}

@Suite("Send slots")
struct SlotTests {
    static let peers = (1...6).map { PeerID(UUIDBytes(high: $0, low: 0)) }

    @Test("four peers hold slots, the others queue in order")
    func turns() {
        var turns = SendSlots(limit: 4)
        let asked = Self.peers.map { turns.request($0, now: .now) }
        #expect(asked == [true, true, true, true, false, false])
        let next = turns.release(Self.peers[1])
        #expect(next == Self.peers[4])
        let last = turns.request(Self.peers[5], now: .now)
        #expect(!last)  // the freed slot is reserved for the first peer in the queue
        let front = turns.request(Self.peers[4], now: .now)
        let again = turns.request(Self.peers[1], now: .now)
        #expect(front && !again)
        let after = turns.release(Self.peers[0])
        #expect(after == Self.peers[5])
    }
}
