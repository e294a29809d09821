import TestSupport

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

    /// Waits until all is as wanted: see `eventually`.
    /// - Parameter failure: what is said if it does not come.
    static func until(
        seconds: Int = state, file: String = #fileID, line: Int = #line, or failure: @autoclosure () -> String,
        look: () async throws -> Bool
    ) async throws {
        try await eventually(within: .seconds(seconds), file: file, line: line, failure(), look)
    }
}
