import HexlistModel
import TestSupport
import Testing

@Suite("Backoff") struct BackoffTests {
    private static let backoff = Backoff(from: .seconds(2), to: .seconds(300))

    /// Returns one number repeatedly.
    private struct Constant: RandomNumberGenerator {
        var value: UInt64
        mutating func next() -> UInt64 { value }
    }

    @Test(
        "the pause doubles with each failure, up to the maximum",
        arguments: [
            (Backoff(from: .seconds(5), to: .seconds(300)), [5, 10, 20, 40, 80, 160, 300, 300]),
            (Backoff(from: .seconds(5), to: .seconds(60)), [5, 10, 20, 40, 60, 60]),
            (Backoff(from: .seconds(1), to: .seconds(30)), [1, 2, 4, 8, 16, 30, 30]),
            (Backoff(from: .seconds(1), to: .seconds(16)), [1, 2, 4, 8, 16, 16]), (Backoff(from: .seconds(9), to: .seconds(3)), [3, 3]),
        ]) func pauses(of backoff: Backoff, seconds: [Int])
    {
        #expect((1...seconds.count).map(backoff.pause(after:)) == seconds.map { .seconds($0) })
    }

    @Test("any number of failures, including none", arguments: [Int.min, -1, 0, 1, 1_000, .max])
    func extremes(failures: Int) {
        #expect(Self.backoff.pause(after: failures) == (failures > 1 ? .seconds(300) : .seconds(2)))
    }

    @Test("with jitter the pause is between the minimum and the pause without jitter")
    func bounds() {
        // A generator of zeros would make `random(in:using:)` loop for ever.
        var (least, most) = (Constant(value: 1 << 20), Constant(value: .max))
        for failures in 1...20 {
            #expect(Self.backoff.jitteredPause(after: failures, shortest: .seconds(1), using: &least) == .seconds(1))
            let longest = Self.backoff.jitteredPause(after: failures, shortest: .seconds(1), using: &most)
            #expect(longest == Self.backoff.pause(after: failures))
        }
    }

    @Test("full jitter: pauses are spread over the whole time up to the maximum")
    func jitter() {
        var random = SeededGenerator(seed: 1)
        let pauses = (0..<4_000).map { _ in
            Self.backoff.jitteredPause(after: 6, shortest: .seconds(1), using: &random)  // up to 64 s
        }
        // The number of pauses in each eighth of 64 s. The first eighth includes pauses that were raised to 1 s.
        let counts = pauses.reduce(into: Array(repeating: 0, count: 8)) { $0[min(7, Int($1.components.seconds / 8))] += 1 }
        #expect(counts.allSatisfy { (400...600).contains($0) }, "\(counts)")
    }
}
