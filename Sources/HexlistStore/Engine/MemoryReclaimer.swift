internal import Dispatch
internal import HexlistSystem
internal import Synchronization

/// Returns memory to the operating system after a burst of work: the page caches of SQLite's connections, at most 16 MiB, and free heap
/// memory that glibc keeps.
///
/// The first release follows two seconds with at most 2 MiB of work: memory that is returned earlier would be needed again immediately.
/// Further releases follow every two seconds until an interval had no work at all, because on a slow machine the remaining work of a burst
/// takes longer.
///
/// Required by a bound of `Tests/Faults/memory`, "texts": after a trusted peer sent long texts, at most 8 MiB or half of the added memory
/// may stay in use. Without this type hexlistd keeps 17 of 23 MiB.
final class MemoryReclaimer: Sendable {
    private let state = Mutex(MemoryReclaimerState())
    private let database: StoreDatabase
    private let queue: DispatchQueue

    /// - Parameter queue: the serial queue on which the database is closed. Memory is released on the same queue, so never while the
    ///   database is being closed.
    init(of database: StoreDatabase, on queue: DispatchQueue) {
        self.database = database
        self.queue = queue
    }

    /// Counts completed operations and the bytes of their texts. May be called on any thread.
    func passed(operations: Int, bytes: Int) {
        if state.withLock({ $0.passed(operations * MemoryReclaimerState.operation + bytes) }) { scheduleCheck() }
    }

    private func scheduleCheck() {
        queue.asyncAfter(deadline: .now() + 2) { [self] in
            let check = state.withLock { $0.check() }
            if check.releases {
                database.releaseMemory()
                ProcessMemory.returnFreePages()
            }
            if check.isRepeated { scheduleCheck() }
        }
    }
}

struct MemoryReclaimerState {
    /// Bytes that one operation counts as in addition to its content, for B-tree pages, the statement and the result.
    static let operation = 16 << 10
    /// Bytes of work after which a burst begins: the texts of operations, plus `operation` for each of them.
    static let burst = 8 << 20
    /// Memory is released after two seconds with at most this number of bytes of work.
    static let little = 2 << 20

    private enum Phase {
        case quiet(passed: Int)
        /// A burst, during which a check is always scheduled. `passed` is the number of bytes since the previous check.
        case burst(passed: Int)
    }
    private var phase = Phase.quiet(passed: 0)

    /// Counts bytes of work.
    /// - Returns: whether a burst began. If `true`, the caller has to call `check` in two seconds.
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

    /// Looks at the work since the previous check, or since the burst began. The burst is over if there was none.
    /// - Returns: whether memory is to be released, and whether the caller has to call this method again in two seconds.
    mutating func check() -> (releases: Bool, isRepeated: Bool) {
        guard case .burst(let passed) = phase, passed > 0 else {
            phase = .quiet(passed: 0)
            return (releases: true, isRepeated: false)
        }
        phase = .burst(passed: 0)
        return (releases: passed <= Self.little, isRepeated: true)
    }
}
