public import HexlistModel

/// The exit status of `hexlist`. Scripts depend on the numbers.
public enum ExitStatus: Int32, Sendable, CaseIterable {
    case done = 0
    case failed = 1
    /// The command line or the input is invalid.
    case usage = 2
    /// The hexes are accepted, but not delivered to all recipients yet: some are queued, or wait for approval.
    case pending = 3
    /// A peer refused the hex.
    case refused = 4
    /// The daemon is not running.
    case noDaemon = 5
    /// A peer or hex is unknown, or the name of a peer is ambiguous.
    case notFound = 6

    public init(_ code: HexlistError.Code) {
        switch code {
        case .badRequest, .tooLarge, .headTooLarge, .configuration: self = .usage
        case .notFound, .ambiguous: self = .notFound
        case .daemonUnreachable: self = .noDaemon
        case .refused: self = .refused
        case .versionMismatch, .forbidden, .methodNotAllowed, .alreadyRunning, .identity, .storeUnusable, .portInUse, .stateFolder,
            .keyConflict, .changed, .outboxFull, .storageFull, .gone, .recentlyFailed, .notSupported, .internal:
            self = .failed
        }
    }

    /// Makes the exit status for the outcome of one send.
    /// - Parameter wait: the outcome that the caller waited for.
    public init(outcome: OutboxState, wait: SendWaitGoal) {
        switch outcome {
        case .stored: self = .done
        case .queued, .sending: self = wait == .queued ? .done : .pending
        case .held: self = .pending
        case .rejected: self = .refused
        case .expired, .cancelled, .failed: self = .failed
        }
    }

    /// Returns the exit status for several outcomes: the first one present in the order 5, 6, 1, 4, 2, 3, 0.
    public static func combined(_ statuses: [ExitStatus]) -> ExitStatus {
        let order: [ExitStatus] = [.noDaemon, .notFound, .failed, .refused, .usage, .pending]
        return order.first(where: statuses.contains) ?? .done
    }
}

/// The outcome for which the reply to a send waits.
public enum SendWaitGoal: String, Sendable, CaseIterable {
    /// The hex is durable in this machine's outbox.
    case queued
    /// Each peer has stored the hex, or is known to be away.
    case stored
}
