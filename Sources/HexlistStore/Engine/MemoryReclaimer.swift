internal import Dispatch
internal import HexlistSystem
internal import Synchronization

/// Decides when the memory that a burst of work left behind is returned to the system: pages cached by SQLite's connections (16 MiB at
/// most), and free heap that glibc keeps.
///
/// A burst is over when little work was done for two seconds; before that the memory would be needed again at once.
///
/// Stays because of a bound: without it hexlistd kept 17 of the 23 MiB that a trusted peer's long texts had taken, for good
/// (`Tests/Faults/memory`, "texts": at most 8 MiB or half of it may be left).
final class MemoryReclaimer: Sendable {
    private let state = Mutex(MemoryReclaimerState())
    private let database: StoreDatabase
    private let queue: DispatchQueue

    /// - Parameter queue: the queue on which the database is closed, so that nothing of it is released meanwhile.
    init(of database: StoreDatabase, on queue: DispatchQueue) {
        self.database = database
        self.queue = queue
    }

    /// Counts work that was done. Called from any thread, after each piece of work.
    func passed(operations: Int, bytes: Int) {
        if state.withLock({ $0.passed(operations * MemoryReclaimerState.operation + bytes) }) { look() }
    }

    private func look() {
        queue.asyncAfter(deadline: .now() + 2) { [self] in
            guard state.withLock({ $0.isOver() }) else { return look() }
            database.releaseMemory()
            ProcessMemory.returnFreePages()
        }
    }
}

struct MemoryReclaimerState {
    /// The bytes that an operation counts as, besides its content: pages of the tree it walks down, its statement, its answer.
    static let operation = 16 << 10
    /// The bytes from which a burst is worth a release; and the bytes in two seconds at which it is over.
    static let burst = 8 << 20
    static let little = 2 << 20

    private enum Phase {
        case quiet(passed: Int)
        /// A check is due; `passed` counts the bytes since the previous one.
        case burst(passed: Int)
    }
    private var phase = Phase.quiet(passed: 0)

    /// - Returns: whether a burst began, so that `isOver` is to be called in two seconds.
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

    /// Whether the burst is over; if not, to be called again in two seconds.
    mutating func isOver() -> Bool {
        guard case .burst(let passed) = phase, passed > Self.little else {
            phase = .quiet(passed: 0)
            return true
        }
        phase = .burst(passed: 0)
        return false
    }
}
