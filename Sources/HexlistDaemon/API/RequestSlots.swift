import HexlistModel
import NIOCore
import Synchronization

/// An asynchronous semaphore that limits how many requests of one kind run at the same time. Further requests wait in the order of their
/// arrival; their bodies are not read meanwhile. The setting `api.connections` bounds the number of waiting requests.
final class RequestSlots: Sendable {
    /// A slot of the semaphore, which is released when this object is deinitialised.
    final class Slot: Sendable {
        private let slots: RequestSlots

        fileprivate init(of slots: RequestSlots) { self.slots = slots }

        deinit { slots.release() }
    }

    private struct Waiter {
        let number: Int
        /// `nil` until the request is suspended.
        var continuation: CheckedContinuation<Bool, Never>?
    }

    private struct State {
        var free: Int
        var nextWaiter = 0
        /// The waiting requests, oldest first. A request is removed when it gets a slot, and when its wait ends.
        var waiting: [Waiter] = []
        /// The numbers of the requests that got a slot before they were suspended.
        var granted: Set<Int> = []
    }

    private let state: Mutex<State>

    init(_ count: Int) { state = Mutex(State(free: count)) }

    var isFree: Bool { state.withLock { $0.free > 0 } }

    /// Number of waiting requests.
    var waiting: Int { state.withLock(\.waiting.count) }

    /// Returns a slot if one is free; `nil` otherwise.
    func acquireIfFree() -> Slot? {
        let isFree = state.withLock { state in
            guard state.free > 0 else { return false }
            state.free -= 1
            return true
        }
        return isFree ? Slot(of: self) : nil
    }

    /// Waits for a slot.
    /// - Parameters:
    ///   - limit: maximum time to wait.
    ///   - loop: the event loop of the timer.
    /// - Returns: `nil` on timeout.
    /// - Throws: `CancellationError` if the task is cancelled.
    func acquire(within limit: TimeAmount, on loop: any EventLoop) async throws -> Slot? {
        let number = state.withLock { state -> Int? in
            guard state.free == 0 else {
                state.free -= 1
                return nil
            }
            defer { state.nextWaiter += 1 }
            state.waiting.append(Waiter(number: state.nextWaiter))
            return state.nextWaiter
        }
        guard let number else { return Slot(of: self) }
        let timer = loop.scheduleTask(in: limit) { self.end(number) }
        defer { timer.cancel() }
        let hasSlot = await withTaskCancellationHandler {
            await withCheckedContinuation { wait(number, $0) }
        } onCancel: {
            end(number)
        }
        let slot = hasSlot ? Slot(of: self) : nil
        try Task.checkCancellation()
        return slot
    }

    /// Stores the continuation of a waiting request. Resumes it immediately if the request has already got a slot, or its wait has already
    /// ended.
    private func wait(_ number: Int, _ continuation: CheckedContinuation<Bool, Never>) {
        let hasSlot = state.withLock { state -> Bool? in
            if state.granted.remove(number) != nil { return true }
            guard let index = state.waiting.firstIndex(where: { $0.number == number }) else { return false }
            state.waiting[index].continuation = continuation
            return nil
        }
        if let hasSlot { continuation.resume(returning: hasSlot) }
    }

    /// Ends the wait of a request: removes it from the queue, and resumes it without a slot.
    private func end(_ number: Int) {
        let waiter = state.withLock { state in
            state.waiting.firstIndex { $0.number == number }.flatMap { state.waiting.remove(at: $0).continuation }
        }
        waiter?.resume(returning: false)
    }

    private func release() {
        let next = state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.free += 1
                return nil as CheckedContinuation<Bool, Never>?
            }
            let waiter = state.waiting.removeFirst()
            if waiter.continuation == nil { state.granted.insert(waiter.number) }
            return waiter.continuation
        }
        next?.resume(returning: true)
    }
}
