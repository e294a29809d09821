import Foundation
public import Testing

/// Whether this is a long run (`make test-long`), with longer inputs, more rounds, and tests that wait for the protocol's own times.
public enum LongTests {
    public static let areWanted = ProcessInfo.processInfo.environment["HEXLIST_LONG_TESTS"] == "1"
    /// The reason that is shown for a test of long runs.
    public static let reason: Comment = "in `make test-long` only: it waits for the protocol's own times"
}
