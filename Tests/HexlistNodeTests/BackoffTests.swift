import TestSupport
import Testing

@testable import HexlistNode

@Suite("Backoff")
struct BackoffTests {
    /// Gives one number again and again.
    struct Constant: RandomNumberGenerator {
        var value: UInt64
        mutating func next() -> UInt64 { value }
    }

    @Test("the longest pause doubles up to 5 min; the shortest is 1 s, however often it failed")
    func bounds() {
        // Not 0, which `random(in:using:)` may ask for again for ever.
        var (least, most) = (Constant(value: 1 << 20), Constant(value: .max))
        var (quick, slow) = (Backoff(), Backoff())
        let longest = [2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300].map { Duration.seconds($0) }
        #expect(longest.map { _ in quick.failed(using: &least) } == longest.map { _ in .seconds(1) })
        #expect(longest.map { _ in slow.failed(using: &most) } == longest)
    }

    @Test("full jitter: the pauses after one number of failures lie all over the time up to the longest")
    func jitter() {
        var random = SeededGenerator(seed: 1)
        let pauses = (0..<4_000).map { _ in
            var backoff = Backoff()
            for _ in 0..<5 { _ = backoff.failed(using: &random) }
            return backoff.failed(using: &random)  // up to 64 s
        }
        // Eighths of it; the first has what is raised to 1 s as well.
        let counts = pauses.reduce(into: Array(repeating: 0, count: 8)) { $0[min(7, Int($1.components.seconds / 8))] += 1 }
        #expect(counts.allSatisfy { (400...600).contains($0) }, "\(counts)")
    }

    @Test("a success begins it anew; a thousand failures overflow nothing")
    func anew() {
        var most = Constant(value: .max)
        var backoff = Backoff()
        for _ in 0..<1_000 { _ = backoff.failed(using: &most) }
        backoff.succeeded()
        #expect(backoff.failed(using: &most) == .seconds(2))
    }
}
