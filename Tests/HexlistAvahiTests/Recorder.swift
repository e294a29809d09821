import HexlistDiscovery
import Synchronization
import TestSupport

/// Records the events of a discovery and lets a test wait for them.
final class Recorder: Sendable {
    private struct State: Sendable {
        var events: [DiscoveryEvent] = []
        var waiting: [(isMet: @Sendable ([DiscoveryEvent]) -> Bool, done: @Sendable (Void) -> Void)] = []
    }
    private let state = Mutex(State())

    var events: [DiscoveryEvent] { state.withLock { $0.events } }

    func take(_ event: DiscoveryEvent) {
        let met = state.withLock { state in
            state.events.append(event)
            let events = state.events
            let met = state.waiting.filter { $0.isMet(events) }
            state.waiting.removeAll { $0.isMet(events) }
            return met.map(\.done)
        }
        met.forEach { $0(()) }
    }

    func clear() { state.withLock { $0.events = [] } }

    /// Waits for a recorded event that satisfies the condition.
    func until(
        file: String = #fileID, line: Int = #line, _ fits: @escaping @Sendable (DiscoveryEvent) -> Bool
    ) async throws {
        try await called(file: file, line: line) { done in
            let isMet = state.withLock { state in
                let isMet = state.events.contains(where: fits)
                if !isMet { state.waiting.append(({ $0.contains(where: fits) }, done)) }
                return isMet
            }
            if isMet { done(()) }
        }
    }
}

extension DiscoveryEvent {
    var isUnavailable: Bool { if case .backend(.unavailable) = self { true } else { false } }
    var isRunning: Bool { self == .backend(.running) }

    func isAppearance(of name: String) -> Bool {
        if case .appeared(let record, _) = self { record.key.name == name } else { false }
    }

    func isWithdrawal(of name: String) -> Bool {
        if case .withdrawn(let record) = self { record.key.name == name } else { false }
    }

    func isResolution(of name: String, port: UInt16, ipv6: Bool = false) -> Bool {
        if case .resolved(let record, let resolution) = self {
            record.key.name == name && resolution.port == port && record.ipv6 == ipv6
        } else {
            false
        }
    }
}
