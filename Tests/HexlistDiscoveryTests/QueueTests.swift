import HexlistModel
import TestSupport
import Testing

@testable import HexlistDiscovery

@Suite struct QueueTests {
    @Test func budgetHoldsAndLetsNewcomersHurry() {
        let base = ContinuousClock.now
        var queue = ProbeQueue(rate: 2, burst: 8)
        for number in 0..<100 { queue.enqueue(.peer(Stage.peer(UInt64(number))), as: .newcomer) }
        var taken = 0
        while queue.next(now: base) != nil { taken += 1 }
        #expect(taken == 8)
        while let permit = queue.nextTokenTime(now: base), permit <= base + .seconds(10) {
            if queue.next(now: permit) != nil { taken += 1 }
        }
        #expect((27...28).contains(taken))  // 8 at once, then 2 a second
    }

    @Test func routineLeavesWhatWasSavedUp() {
        let base = ContinuousClock.now
        var queue = ProbeQueue(rate: 2, burst: 8)
        for number in 0..<20 { queue.enqueue(.peer(Stage.peer(UInt64(number))), as: .routine) }
        var taken = 0
        while queue.next(now: base) != nil { taken += 1 }
        #expect(taken == 2)
        queue.enqueue(.peer(Stage.peer(99)), as: .newcomer)
        #expect(queue.next(now: base) == .peer(Stage.peer(99)))
    }

    @Test func noClassStarves() {
        let base = ContinuousClock.now
        var queue = ProbeQueue(rate: 2, burst: 8)
        var taken: [ProbeQueue.Urgency: Int] = [:]
        var numbers: [ProbeTarget: ProbeQueue.Urgency] = [:]
        var number: UInt64 = 0
        func fill() {
            for urgency in ProbeQueue.Urgency.allCases {
                for _ in 0..<3 {
                    number += 1
                    let target = ProbeTarget.peer(Stage.peer(number))
                    numbers[target] = urgency
                    queue.enqueue(target, as: urgency)
                }
            }
        }
        for second in 0..<200 {
            fill()
            while let target = queue.next(now: base + .seconds(second)) { taken[numbers[target] ?? .retry, default: 0] += 1 }
        }
        #expect(taken[.trusted, default: 0] > 150)
        for urgency in [ProbeQueue.Urgency.lost, .newcomer, .routine] { #expect(taken[urgency, default: 0] > 40) }
        #expect(taken[.retry, default: 0] == 0)
    }

    @Test func resolversTakeTurns() {
        let base = ContinuousClock.now
        var resolverSlots = ResolverSlots(limit: 8)
        let records = (0..<40).map { Stage.record("r\($0)") }
        let trusted = (0..<4).map { Stage.record("t\($0)") }
        var open: Set<Record> = []
        var everOpen: Set<Record> = []
        func act(_ actions: [ResolverSlots.Action]) {
            for action in actions {
                switch action {
                case .open(let record):
                    #expect(open.insert(record).inserted)
                    everOpen.insert(record)
                case .close(let record): #expect(open.remove(record) != nil)
                }
            }
            #expect(open.count <= 8 && open.count == resolverSlots.openCount)
        }
        for record in records { resolverSlots.request(record, isTrusted: false) }
        act(resolverSlots.advance(now: base))
        #expect(open.count == 8)
        for record in trusted { resolverSlots.request(record, isTrusted: true) }
        act(resolverSlots.advance(now: base + .seconds(1)))
        #expect(open.isSuperset(of: trusted))
        var now = base + .seconds(1)
        for _ in 0..<20 {
            guard let next = resolverSlots.nextTimeSliceEnd else { break }
            #expect(next >= now)
            now = max(next, now)
            act(resolverSlots.advance(now: now))
            #expect(open.isSuperset(of: trusted))  // untrusted records do not displace trusted ones
        }
        #expect(everOpen.isSuperset(of: records))
        for record in records + trusted where resolverSlots.remove(record) { open.remove(record) }
        #expect(resolverSlots.openCount == 0 && open.isEmpty && resolverSlots.nextTimeSliceEnd == nil)
    }

    @Test("forged trust does not starve the others") func resolversKeepPlacesForTheRest() {
        let base = ContinuousClock.now
        var resolverSlots = ResolverSlots(limit: 8)
        for number in 0..<50 { resolverSlots.request(Stage.record("t\(number)"), isTrusted: true) }
        _ = resolverSlots.advance(now: base)
        resolverSlots.request(Stage.record("newcomer"), isTrusted: false)
        let later = resolverSlots.advance(now: base + .seconds(10))
        #expect(later.contains(.open(Stage.record("newcomer"))))
    }
}
