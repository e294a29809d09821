import Foundation
import TestSupport
import Testing

/// Random histories of several machines: changes, partial exchanges, transactions that are rolled back, clocks up to 6 hours off, machines
/// that are away, restored backups and purges. At the end all exchange, and have to agree.
///
/// HEXLIST_LONG_TESTS=1 runs 10 000 histories of 300 operations.
@Suite("Random histories of lists") struct RandomHistoryTests {
    private static let runs = LongTests.areWanted ? 10_000 : 300
    private static let operations = LongTests.areWanted ? 300 : 60

    @Test("every machine ends with the same tree, which the definition gives too, and no link is missing", .offPool, arguments: 0..<4)
    func convergence(part: Int) throws {
        for seed in stride(from: part, to: Self.runs, by: 4) {
            do {
                var history = RandomHistory(seed: UInt64(seed), restores: seed % 4 / 2 == 1)
                try history.run(operations: Self.operations)
            } catch {
                Issue.record("seed \(seed): \(error)")
                return
            }
        }
    }

    @Test("two machines that were apart for a month, with thousands of changes each, agree after one exchange", .offPool)
    func monthApart() throws {
        var history = RandomHistory(seed: 4, restores: false, machines: 2)
        try history.run(operations: 100)
        for step in 0..<(LongTests.areWanted ? 5_000 : 400) { try history.changeSomething(step % 2) }
        try history.finish()
    }
}
