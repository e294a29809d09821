import TestSupport

/// Maximum waits for expected events. They measure no time: on a slow or loaded machine everything takes longer, and a missing event
/// finally fails the test.
enum Patience {
    /// Seconds, for a state reached without help. Includes the protocol's back-offs: over a minute after earlier failures.
    static let state = 180
    /// Seconds for one command, and for an expected line of output.
    static let command = 300
    /// Seconds, for a program that runs beside a test: longer than the test's limit.
    static let server = 1_500
    /// Minutes for one test.
    static let test = 20

    /// Waits until a condition holds: see `eventually`.
    /// - Parameter failure: the message if it does not.
    static func until(
        seconds: Int = state, file: String = #fileID, line: Int = #line, or failure: @autoclosure () -> String,
        look: () async throws -> Bool
    ) async throws {
        try await eventually(within: .seconds(seconds), file: file, line: line, failure(), look)
    }
}
