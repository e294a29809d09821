import HexlistModel
import Synchronization
import Testing

@testable import HexlistRclone

@Suite("Request queue", .timeLimit(.minutes(5))) struct RequestQueueTests {
    private static let now = ContinuousClock.now
    private static func key(_ number: Int) -> SuspendedRequestKey { .link(path: .init("\(number)")) }

    private struct Stage {
        var queue = RequestQueue()
        var begun: [RequestID] = []
        var now = RequestQueueTests.now

        mutating func add(_ number: Int, force: Bool = false) -> RequestQueue.Admission {
            let (admission, begin) = queue.add(RequestQueueTests.key(number), force: force, now: now)
            begun += begin
            #expect(queue.runningCount <= RequestQueue.slotCount)
            return admission
        }

        mutating func taken(_ number: Int, force: Bool = false) throws -> RequestID {
            guard case .accepted(let id) = add(number, force: force) else { throw Refused() }
            return id
        }

        mutating func end(_ id: RequestID, _ outcome: RequestQueue.AttemptResult) -> RequestQueue.NextStep {
            let (next, begin) = queue.ended(id, outcome, now: now)
            begun += begin
            #expect(queue.runningCount <= RequestQueue.slotCount)
            return next
        }
    }

    private struct Refused: Error {}

    @Test("four run at once; each end starts the next in order of arrival") func places() throws {
        var stage = Stage()
        let ids = try (0..<7).map { try stage.taken($0) }
        #expect(stage.begun == Array(ids[..<4]))
        #expect(stage.end(ids[2], .done) == .finished)
        #expect(stage.begun == Array(ids[..<5]))
        #expect(stage.end(ids[0], .final) == .finished)
        #expect(stage.begun == Array(ids[..<6]) && stage.queue.count == 5)
    }

    @Test("three attempts with growing pauses that free the slot; then the same request is refused for 3 minutes")
    func attempts() throws {
        var stage = Stage()
        let id = try stage.taken(1)
        #expect(stage.end(id, .temporaryFailure) == .retry(after: .seconds(1)))
        #expect(stage.queue.runningCount == 0)
        #expect(stage.queue.ready(id) == [id])
        #expect(stage.end(id, .temporaryFailure) == .retry(after: .seconds(2)))
        #expect(stage.queue.ready(id) == [id])
        #expect(stage.end(id, .temporaryFailure) == .finished)
        #expect(stage.add(1) == .paused(until: stage.now + .seconds(180)))
        _ = try stage.taken(2)
        stage.now += .seconds(179)
        #expect(stage.add(1) == .paused(until: Self.now + .seconds(180)))
        stage.now += .seconds(1)
        _ = try stage.taken(1)
    }

    @Test("force starts a paused request; a permanent refusal causes no pause") func force() throws {
        var stage = Stage()
        for _ in 0..<2 {
            let id = try stage.taken(1, force: true)
            #expect(stage.end(id, .temporaryFailure) == .retry(after: .seconds(1)))
            _ = stage.queue.ready(id)
            #expect(stage.end(id, .temporaryFailure) == .retry(after: .seconds(2)))
            _ = stage.queue.ready(id)
            #expect(stage.end(id, .temporaryFailure) == .finished)
        }
        let other = try stage.taken(2)
        #expect(stage.end(other, .final) == .finished)
        _ = try stage.taken(2)
    }

    @Test("results of a cancelled request are dropped, and its slot is free") func cancelled() throws {
        var stage = Stage()
        let ids = try (0..<6).map { try stage.taken($0) }
        #expect(stage.queue.cancel(ids[4]).isEmpty, "it waited")
        #expect(stage.queue.cancel(ids[0]) == [ids[5]])
        #expect(stage.end(ids[0], .done) == .dropped && stage.end(ids[4], .temporaryFailure) == .dropped)
        #expect(stage.queue.cancel(ids[0]).isEmpty && stage.queue.ready(ids[0]).isEmpty)
        // A request can also be cancelled between two attempts.
        #expect(stage.end(ids[1], .temporaryFailure) == .retry(after: .seconds(1)))
        #expect(stage.queue.cancel(ids[1]).isEmpty)
        #expect(stage.queue.ready(ids[1]).isEmpty && stage.queue.count == 3)
    }

    @Test("memory is bounded, whatever fails") func bounds() throws {
        var stage = Stage()
        for number in 0..<RequestQueue.maximumCount { _ = try stage.taken(number) }
        #expect(stage.add(-1) == .full)
        var last = 0
        while stage.queue.count > 0 {
            let id = stage.begun[last]
            last += 1
            if case .retry = stage.end(id, .temporaryFailure) { stage.begun += stage.queue.ready(id) }
            #expect(stage.queue.bookkeepingCount <= 2 * RequestQueue.maximumCount + 4 + FailureBackoff<SuspendedRequestKey>.maximumKeys)
        }
        #expect(stage.queue.bookkeepingCount == FailureBackoff<SuspendedRequestKey>.maximumKeys)
    }

    // MARK: Driver

    /// Attempts that wait until the test releases them.
    private final class Gate: Sendable {
        private let waiting = Mutex<[AsyncStream<Void>.Continuation]>([])
        let (entered, enter) = AsyncStream.makeStream(of: Void.self)

        func pass() async {
            let (opened, open) = AsyncStream.makeStream(of: Void.self)
            waiting.withLock { $0.append(open) }
            enter.yield()
            for await _ in opened {}
        }

        func open() {
            for attempt in waiting.withLock({
                let all = $0; $0 = []; return all
            }) { attempt.finish() }
        }
    }

    @Test("the driver attempts three times with pauses, then reports the error; meanwhile the same request is refused")
    func attemptsOfTheShell()
        async throws
    {
        let pauses = Mutex<[Duration]>([])
        let scheduler = RequestScheduler { pause in pauses.withLock { $0.append(pause) } }
        let tries = Mutex(0)
        let fault = RcloneFault.refused(status: 500, message: "too_many_requests/..")
        await #expect(throws: fault) {
            try await scheduler.perform(Self.key(1), force: false) { () async throws -> Int in
                tries.withLock { $0 += 1 }
                throw fault
            }
        }
        #expect(tries.withLock { $0 } == 3 && pauses.withLock { $0 } == [.seconds(1), .seconds(2)])
        await #expect {
            try await scheduler.perform(Self.key(1), force: false) { 1 }
        } throws: { error in
            if case .paused(let seconds)? = error as? RcloneFault { (1...180).contains(seconds) } else { false }
        }
        #expect(try await scheduler.perform(Self.key(1), force: true) { 1 } == 1)
        #expect(scheduler.count == 0)
    }

    @Test("an answer that comes after its request was cancelled is dropped; the next request gets its slot") func lateAnswer() async throws
    {
        let scheduler = RequestScheduler { _ in }
        let gate = Gate()
        var entered = gate.entered.makeAsyncIterator()
        await withThrowingTaskGroup(of: Int.self) { group in
            for number in 1...4 {
                group.addTask {
                    try await scheduler.perform(Self.key(number), force: false) {
                        await gate.pass()
                        return number
                    }
                }
            }
            for _ in 1...4 { await entered.next() }
            group.cancelAll()
            // The four cancelled requests hold no slots any more, although their attempts are still running.
            let fifth = try? await Task { try await scheduler.perform(Self.key(5), force: false) { 5 } }.value
            #expect(fifth == 5)
            #expect(scheduler.count == 0)
            gate.open()
            for _ in 1...4 {
                let result = await group.nextResult()
                #expect(throws: CancellationError.self) { try result?.get() }
            }
        }
    }

    @Test("a request waiting for a slot is cancelled at once") func cancelledInTheLine() async throws {
        let scheduler = RequestScheduler { _ in }
        let gate = Gate()
        var entered = gate.entered.makeAsyncIterator()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 1...4 { group.addTask { try await scheduler.perform(Self.key(number), force: false) { await gate.pass() } } }
            for _ in 1...4 { await entered.next() }
            let waits = Task { try await scheduler.perform(Self.key(5), force: false) { Issue.record("it began") } }
            waits.cancel()
            await #expect(throws: CancellationError.self) { try await waits.value }
            gate.open()
            try await group.waitForAll()
        }
        #expect(scheduler.count == 0)
    }
}
