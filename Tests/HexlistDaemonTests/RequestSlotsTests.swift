import NIOPosix
import TestSupport
import Testing

@testable import HexlistDaemon

@Suite(.timeLimit(.minutes(5))) struct RequestSlotsTests {
    private let loop = MultiThreadedEventLoopGroup.singleton.next()

    /// Waits until the given number of requests wait.
    private func awaitWaiting(_ count: Int, _ slots: RequestSlots) async throws {
        try await eventually { slots.waiting == count }
    }

    @Test("slots are granted in order of request")
    func order() async throws {
        let slots = RequestSlots(2)
        var held = [try await slots.acquire(within: .hours(1), on: loop), try await slots.acquire(within: .hours(1), on: loop)]
        #expect(held.allSatisfy { $0 != nil })
        let (order, taken) = AsyncStream.makeStream(of: (Int, RequestSlots.Slot?).self)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<3 {
                group.addTask { [loop] in taken.yield((number, try await slots.acquire(within: .hours(1), on: loop))) }
                try await awaitWaiting(number + 1, slots)
            }
            var next = order.makeAsyncIterator()
            held.removeFirst()
            for number in 0..<3 {
                // The released slot is granted at once to the next request.
                let taken = await next.next()
                #expect(taken?.0 == number && taken?.1 != nil)
            }
            try await group.waitForAll()
        }
        #expect(slots.waiting == 0)
        #expect(try await slots.acquire(within: .hours(1), on: loop) != nil, "all were given back")
        #expect(slots.acquireIfFree() != nil)
    }

    @Test("a wait ends without a slot after its timeout, and when its task is cancelled")
    func ends() async throws {
        let slots = RequestSlots(1)
        let held = try await slots.acquire(within: .hours(1), on: loop)
        // A timeout can be over before the request is suspended.
        for _ in 0..<1_000 { #expect(try await slots.acquire(within: .nanoseconds(1), on: loop) == nil) }
        #expect(slots.acquireIfFree() == nil)
        let waits = Task { [loop] in try await slots.acquire(within: .hours(1), on: loop) }
        try await awaitWaiting(1, slots)
        waits.cancel()
        await #expect(throws: CancellationError.self) { _ = try await waits.value }
        let late = Task { [loop] in
            withUnsafeCurrentTask { $0?.cancel() }
            return try await slots.acquire(within: .hours(1), on: loop)
        }
        await #expect(throws: CancellationError.self) { _ = try await late.value }
        #expect(slots.waiting == 0)
        withExtendedLifetime(held) {}
    }
}
