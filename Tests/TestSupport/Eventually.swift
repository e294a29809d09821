/// Looks again and again until it holds, for what nothing tells of. The suite's time limit ends it.
public func eventually(isolation: isolated (any Actor)? = #isolation, _ holds: () async throws -> Bool) async throws {
    while try await !holds() { try await Task.sleep(for: .milliseconds(10)) }
}
