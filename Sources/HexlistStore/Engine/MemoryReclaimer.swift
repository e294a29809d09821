internal import Dispatch
internal import HexlistSystem
internal import Synchronization

/// Returns memory to the system after a burst of work: pages cached by SQLite's connections, at most 16 MiB, and free heap that glibc
/// keeps.
///
/// A burst ends after two seconds of little work; earlier the memory would be needed again at once.
///
/// Stays because of a bound: without it hexlistd keeps 17 of the 23 MiB that a trusted peer's long texts take (`Tests/Faults/memory`,
/// "texts": at most 8 MiB or half may remain).
final class MemoryReclaimer: Sendable {
    private let state = Mutex(MemoryReclaimerState())
    private let database: StoreDatabase
    private let queue: DispatchQueue

    /// - Parameter queue: the queue on which the database is closed, so that memory is not released at the same time.
    init(of database: StoreDatabase, on queue: DispatchQueue) {
        self.database = database
        self.queue = queue
    }

    /// Counts completed work, from any thread.
    func passed(operations: Int, bytes: Int) {
        if state.withLock({ $0.passed(operations * MemoryReclaimerState.operation + bytes) }) { scheduleCheck() }
    }

    private func scheduleCheck() {
        queue.asyncAfter(deadline: .now() + 2) { [self] in
            guard state.withLock({ $0.isOver() }) else { return scheduleCheck() }
            database.releaseMemory()
            ProcessMemory.returnFreePages()
        }
    }
}

struct MemoryReclaimerState {
    /// Bytes that an operation counts as besides its content: pages of B-trees, statement, result.
    static let operation = 16 << 10
    /// Bytes of work from which it is a burst.
    static let burst = 8 << 20
    /// Bytes of work in two seconds below which a burst is over.
    static let little = 2 << 20

    private enum Phase {
        case quiet(passed: Int)
        /// A check is scheduled; `passed` counts the bytes since the previous one.
        case burst(passed: Int)
    }
    private var phase = Phase.quiet(passed: 0)

    /// - Returns: whether a burst began. If so, call `isOver` in two seconds.
    mutating func passed(_ bytes: Int) -> Bool {
        switch phase {
        case .quiet(let before) where before + bytes >= Self.burst:
            phase = .burst(passed: 0)
            return true
        case .quiet(let before):
            phase = .quiet(passed: before + bytes)
        case .burst(let before):
            phase = .burst(passed: before + bytes)
        }
        return false
    }

    /// Whether the burst is over. If not, call it again in two seconds.
    mutating func isOver() -> Bool {
        guard case .burst(let passed) = phase, passed > Self.little else {
            phase = .quiet(passed: 0)
            return true
        }
        phase = .burst(passed: 0)
        return false
    }
}
