import HexlistEnvelope
import HexlistModel

/// The running tests of one route: letters from this machine to itself. A letter may be read before the route confirms that it was posted.
struct RouteTestLetters {
    typealias Completion = @Sendable (RouteFault?) -> Void

    /// The time for the round trip.
    static let time = Duration.seconds(30)
    /// Maximum number of letters of this machine that were read before their post was confirmed. Further ones can only be replays.
    private static let readLimit = 64

    private struct Test {
        /// `nil` until the post is confirmed.
        var envelope: Envelope.ID?
        var completion: Completion
    }

    private var tests: [Int: Test] = [:]
    private var next = 0
    private var readEnvelopes: Set<Envelope.ID> = []

    var isEmpty: Bool { tests.isEmpty }

    /// - Returns: the number of a new test.
    mutating func begin(_ completion: @escaping Completion) -> Int {
        next += 1
        tests[next] = Test(completion: completion)
        return next
    }

    /// Handles the confirmed post of a test.
    /// - Returns: the completion of the test if its letter was read before.
    mutating func posted(_ test: Int, as envelope: Envelope.ID) -> Completion? {
        guard tests[test] != nil else { return nil }
        tests[test]?.envelope = envelope
        return readEnvelopes.contains(envelope) ? end(test) : nil
    }

    /// Handles a letter of this machine to itself.
    /// - Returns: the completion of its test if its post was confirmed.
    mutating func read(_ envelope: Envelope.ID) -> Completion? {
        if let test = tests.first(where: { $0.value.envelope == envelope })?.key { return end(test) }
        if !tests.isEmpty, readEnvelopes.count < Self.readLimit { readEnvelopes.insert(envelope) }
        return nil
    }

    /// - Returns: the completion of the test; `nil` if it has ended.
    mutating func end(_ test: Int) -> Completion? {
        defer { if tests.isEmpty { readEnvelopes = [] } }
        return tests.removeValue(forKey: test)?.completion
    }

    /// - Returns: the completions of all tests.
    mutating func endAll() -> [Completion] {
        defer { (tests, readEnvelopes) = ([:], []) }
        return tests.values.map(\.completion)
    }
}
