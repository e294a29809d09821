public import Dispatch

/// A test's wait that ended without the awaited condition.
public struct NotInTime: Error, CustomStringConvertible {
    public var description: String

    public init(_ what: String, _ limit: Duration, _ file: String, _ line: Int) {
        description = "\(file):\(line): not within \(limit.components.seconds) s\(what.isEmpty ? "" : ": \(what)")"
    }
}

extension Duration {
    /// Maximum wait of a test for one event. It is far above any delay on a loaded machine.
    public static let longestWait = Duration.seconds(240)
}

/// Checks a condition every 10 ms until it holds, for states without an event. Cancellation, as by a time limit, ends the wait.
/// - Parameter what: the condition in words, for the error message.
/// - Throws: `NotInTime` after `limit`. The last check begins after that, so a delayed test does not fail.
public func eventually(
    within limit: Duration = .longestWait, isolation: isolated (any Actor)? = #isolation, file: String = #fileID, line: Int = #line,
    _ what: @autoclosure () -> String = "", _ holds: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + limit
    while true {
        let isLast = ContinuousClock.now >= deadline
        if try await holds() { return }
        guard !isLast else { throw NotInTime(what(), limit, file, line) }
        try await Task.sleep(for: .milliseconds(10))
    }
}

/// Runs a query every 10 ms until it returns a value other than `nil`, and returns this value: see `eventually`.
public func eventualValue<Value>(
    within limit: Duration = .longestWait, isolation: isolated (any Actor)? = #isolation, file: String = #fileID, line: Int = #line,
    _ what: @autoclosure () -> String = "", _ look: () async throws -> Value?
) async throws -> Value {
    var found: Value?
    try await eventually(within: limit, file: file, line: line, what()) {
        found = try await look()
        return found != nil
    }
    guard let found else { throw CancellationError() }
    return found
}

/// Waits until a callback is called, and returns the value passed to it. `begin` gets the callback. Cancellation ends the wait.
/// - Throws: `NotInTime` after `limit`.
public func called<Value: Sendable>(
    within limit: Duration = .longestWait, isolation: isolated (any Actor)? = #isolation, file: String = #fileID, line: Int = #line,
    _ begin: (@escaping @Sendable (Value) -> Void) throws -> Void
) async throws -> Value {
    let (values, continuation) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: .bufferingOldest(1))
    try begin { continuation.yield($0) }
    return try await withThrowingTaskGroup(of: Value.self) { group in
        group.addTask {
            for await value in values { return value }
            throw CancellationError()
        }
        group.addTask {
            try await Task.sleep(for: limit)
            throw NotInTime("no callback", limit, file, line)
        }
        defer { group.cancelAll() }
        guard let value = try await group.next() else { throw CancellationError() }
        return value
    }
}

extension DispatchSemaphore {
    /// Blocks until a signal, for synchronous code.
    /// - Throws: `NotInTime` after `limit`.
    public func take(within limit: Duration = .longestWait, file: String = #fileID, line: Int = #line) throws {
        guard wait(timeout: .now() + .seconds(Int(limit.components.seconds))) == .success else {
            throw NotInTime("no signal", limit, file, line)
        }
    }
}
