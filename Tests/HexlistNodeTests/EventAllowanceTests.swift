import HexlistModel
import Testing

@testable import HexlistNode

@Suite("Rate limit of events caused by peers")
struct EventAllowanceTests {
    private static let start = ContinuousClock.Instant.now
    private static let peer = PeerID(UUIDBytes(high: 1, low: 1))
    private static let other = PeerID(UUIDBytes(high: 2, low: 2))

    /// The number of recorded events of a series.
    private func record(
        _ count: Int, _ source: EventAllowance.Source, at now: ContinuousClock.Instant, in allowance: inout EventAllowance
    ) -> Int {
        (0..<count).reduce(into: 0) { recorded, _ in if allowance.take(source, now: now) { recorded += 1 } }
    }

    static let minutes: [(EventAllowance.Source, Int)] = [
        (.strangers, 20), (.alerts(of: peer), 10), (.peerPresence(of: peer), 20), (.impostors(of: peer), 5),
    ]

    @Test("a number per minute, then one event with the count of the rest, even if no event follows", arguments: minutes)
    func minute(_ source: EventAllowance.Source, _ most: Int) {
        var allowance = EventAllowance()
        #expect(record(most, source, at: Self.start, in: &allowance) == most)
        #expect(allowance.nextDeadline == nil)  // nothing was dropped, so no timer is needed
        #expect(record(9_000, source, at: Self.start + .seconds(59), in: &allowance) == 0)
        #expect(allowance.nextDeadline == Self.start + .seconds(60))
        #expect(allowance.takeDue(now: Self.start + .seconds(59)).isEmpty)
        #expect(allowance.takeDue(now: Self.start + .seconds(60)) == [.init(source: source, count: 9_000)])
        #expect(allowance.takeDue(now: Self.start + .seconds(60)).isEmpty && allowance.nextDeadline == nil)
        #expect(record(most + 1, source, at: Self.start + .seconds(61), in: &allowance) == most)
        #expect(allowance.takeAll() == [.init(source: source, count: 1)])
        #expect(allowance.takeAll().isEmpty)
    }

    @Test("sources are independent")
    func sources() {
        var allowance = EventAllowance()
        #expect(record(1_000, .strangers, at: Self.start, in: &allowance) == 20)
        #expect(record(1_000, .alerts(of: Self.peer), at: Self.start, in: &allowance) == 10)
        #expect(record(5, .alerts(of: Self.other), at: Self.start, in: &allowance) == 5)
        #expect(record(5, .peerPresence(of: Self.peer), at: Self.start, in: &allowance) == 5)
        #expect(record(5, .impostors(of: Self.peer), at: Self.start, in: &allowance) == 5)
        #expect(record(5, .impostors(of: Self.other), at: Self.start, in: &allowance) == 5)
        #expect(Set(allowance.takeAll().map(\.count)) == [980, 990])
    }

    /// The count is recorded each minute at a deadline, and a day's events fit the log's size for a month.
    @Test(
        "a source that continues all day gets no further",
        arguments: [(EventAllowance.Source.strangers, 2_000), (.alerts(of: peer), 500), (.impostors(of: peer), 100)])
    func day(_ source: EventAllowance.Source, _ most: Int) {
        var allowance = EventAllowance()
        var (recorded, told) = (0, 0)
        for minute in 0..<1_440 {
            let now = Self.start + .seconds(60 * minute)
            told += allowance.takeDue(now: now).reduce(0) { $0 + $1.count }
            recorded += record(30, source, at: now, in: &allowance)
        }
        told += allowance.takeAll().reduce(0) { $0 + $1.count }
        #expect(recorded == most && recorded + told == 1_440 * 30)
        #expect(record(1, source, at: Self.start + .seconds(86_400), in: &allowance) == 1)
    }

    @Test("events that could not be written are included in the next count")
    func notWritten() {
        var allowance = EventAllowance()
        allowance.omitted(3, .strangers, now: Self.start)
        #expect(record(30, .strangers, at: Self.start, in: &allowance) == 20)
        #expect(allowance.nextDeadline == Self.start + .seconds(60))
        #expect(allowance.takeDue(now: Self.start + .seconds(90)) == [.init(source: .strangers, count: 13)])
    }

    @Test("a source is forgotten after a day without events")
    func memory() {
        var allowance = EventAllowance()
        for day in 0..<20 {
            for number in 0..<100 {
                let peer = PeerID(UUIDBytes(high: UInt64(day), low: UInt64(number)))
                _ = allowance.take(.alerts(of: peer), now: Self.start + .seconds(86_400 * day))
            }
            #expect(allowance.sources <= 200)
        }
    }
}
