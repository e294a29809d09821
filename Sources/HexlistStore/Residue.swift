internal import CGlibc
internal import Dispatch
internal import GRDB
internal import Synchronization

/// What passed through the store, and when what it left behind in memory is given back to the system: pages that SQLite's connections
/// remember (16 MiB at most), and room of the heap that is free again, which glibc keeps.
///
/// A burst is over when little passed for two seconds; until then both are needed again at once.
final class Residue: Sendable {
    private let state = Mutex(ResidueState())
    private let pool: DatabasePool
    private let queue: DispatchQueue

    /// - Parameter queue: where the pool is closed: nothing of it is released meanwhile.
    init(of pool: DatabasePool, on queue: DispatchQueue) {
        self.pool = pool
        self.queue = queue
    }

    /// Any thread, after each piece of work.
    func passed(operations: Int, bytes: Int) {
        if state.withLock({ $0.passed(operations * ResidueState.operation + bytes) }) { look() }
    }

    private func look() {
        queue.asyncAfter(deadline: .now() + 2) { [self] in
            guard state.withLock({ $0.isOver() }) else { return look() }
            pool.releaseMemory()
            hexlist_return_memory()
        }
    }
}

struct ResidueState {
    /// Bytes one operation counts, beside its content: pages of the tree it walks down, its statement, its answer.
    static let operation = 16 << 10
    /// Bytes from which a burst is worth it; and so few in two seconds that it is over.
    static let burst = 8 << 20
    static let little = 2 << 20

    private enum Phase {
        case quiet(passed: Int)
        /// A look is due; `passed` since the last one.
        case burst(passed: Int)
    }
    private var phase = Phase.quiet(passed: 0)

    /// - Returns: whether a burst began: `isOver` is to be asked in two seconds.
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

    /// Whether it is over; if not it is to be asked again in two seconds.
    mutating func isOver() -> Bool {
        guard case .burst(let passed) = phase, passed > Self.little else {
            phase = .quiet(passed: 0)
            return true
        }
        phase = .burst(passed: 0)
        return false
    }
}
