public import HexlistModel

// The types of the coordinator's limits, actions and results.
extension PairingCoordinator {
    public struct Limits: Sendable {
        /// Time for which the pairing window is open, and for which the user's own request is valid.
        public var on: Duration = .seconds(120)
        /// Maximum number of exchanges while pairing is on in which this machine sends its nonce. A peer that has the nonce can compute the
        /// digits, and may give up and ask again until it likes them, so each exchange is one guess. A man in the middle guesses at both
        /// machines, nine times in total.
        public var tries = 5
        /// Maximum number of failed exchanges while pairing is on. Pairing is then switched off.
        public var failures = 3
        /// Maximum number of failures of a key within `memory`. An exchange that the peer gave up also counts. Further requests with this
        /// key are then refused.
        public var failuresPerKey = 3
        /// Time for which failures of a key are remembered.
        public var memory: Duration = .seconds(600)
        /// Maximum number of keys with failures within `memory`. If there are so many, requests with other keys are refused.
        public var keys = 256
        /// Time for which requests of other peers are refused after a session ended while its digits were displayed. Otherwise a peer that
        /// can interrupt a session could display its own digits at the moment when the user confirms.
        public var reserved: Duration = .seconds(10)
        /// Interval of attempts to begin the exchange that the user requested.
        public var retry: Duration = .seconds(2)
        /// Maximum number of finished pairings that are remembered.
        public var outcomes = 8
        public var timing = PairingStateMachine.Timing()
    }

    public enum Action: Sendable, Equatable {
        case send(Pairing, SessionKey)
        /// Refuse the step that was received on this session.
        case refuse(SessionKey)
        /// A session with the peer is needed for the user's request. Call `begin` on an existing session, or dial the peer.
        case reach(PeerID)
        /// Display the digits with the peer's present name, and pass that name to `nameShown`. If `wasAsked`, the peer requested the
        /// pairing, so the user has to be notified.
        case shown(PeerID, digits: String, wasAsked: Bool)
        /// Both users confirmed the digits. Trust this key under the displayed name, and then call `stored`.
        case trust(PeerID, Fingerprint, number: Int, name: String?)
        /// A pairing ended. Notify the user.
        case finished(FinishedPairing)
        /// The value of `items` has changed.
        case changed
    }

    /// A running exchange, or a request of the user for which no exchange runs.
    public struct Item: Sendable, Equatable {
        /// Identifies the pairing. The number increases: a repeated request has another number, because it has other digits.
        public var number: Int
        public var peer: PeerID
        /// Whether the user of this machine requested the pairing.
        public var isOwn: Bool
        public var stage: PairingStateMachine.Stage
        /// The peer's name that was displayed with the digits; `nil` before.
        public var name: String?
        public var fingerprint: Fingerprint?
        /// The time at which the exchange or the request expires.
        public var until: Instant
        /// The reason why no exchange runs for the user's request; `nil` if none is known.
        public var obstacle: PendingReason?
    }

    public enum PendingReason: Sendable, Equatable {
        case notReached, notTaken, givenUp, lost
    }

    public struct FinishedPairing: Sendable, Equatable {
        public enum Result: Sendable, Equatable {
            /// Both users confirmed the digits. The trust is being stored.
            case agreed(digits: String)
            /// The trust was stored.
            case paired
            /// The trust could not be stored. The value is a sentence for the user.
            case notStored(String)
            case ended(PairingStateMachine.EndReason)
            /// The user's request expired before the peer accepted it.
            case expired(PendingReason?)
        }

        public var number: Int
        public var peer: PeerID
        public var isOwn: Bool
        /// The peer's name that was displayed with the digits; `nil` if no digits were displayed.
        public var name: String?
        public var result: Result
        /// Whether this was the last permitted attempt, after which pairing was switched off.
        public var isLast = false
        /// Number of attempts that the peer's key still has; `nil` if this exchange was not counted as an attempt.
        public var triesLeft: Int?
    }

    public enum ConfirmationResult: Sendable, Equatable {
        case accepted
        /// No digits of this peer are displayed, or they were already confirmed.
        case noDigits
        /// The digits are no longer displayed.
        case outdated
    }
}
