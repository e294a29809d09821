/// The longest waits for what must come. Tests do not measure time by them: on a slow or busy machine everything takes as long as it
/// takes, and what never comes fails the test in the end.
enum Patience {
    /// Seconds, for a state that comes about by itself. Backoffs of the protocol are in it: a minute and more where something failed before.
    static let state = 180
    /// Seconds, for one command, and for a line that is waited for.
    static let command = 300
    /// Seconds, for a program that runs beside a test: longer than the test may take.
    static let server = 1_500
    /// Minutes, for a test.
    static let test = 20

    /// Looks again and again until all is as wanted. Where the time is up, the last look is one begun after that: a test that was held up
    /// for long does not fail for what is there.
    /// - Parameter failure: what is said where it does not come.
    static func until(seconds: Int = state, or failure: @autoclosure () -> String, look: () async throws -> Bool) async throws {
        let deadline = ContinuousClock.now + .seconds(seconds)
        while true {
            let isLast = ContinuousClock.now >= deadline
            if try await look() { return }
            guard !isLast else { throw Command.Failure("not within \(seconds) s: \(failure())") }
            try await Task.sleep(for: .milliseconds(100))
        }
    }
}
