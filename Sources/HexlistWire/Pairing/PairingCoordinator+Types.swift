public import HexlistModel

// Inputs and outputs of the coordinator.
extension PairingCoordinator {
    public struct Limits: Sendable {
        /// Time for which requests of peers are accepted after the user opened the window, and for which a request by the user is valid.
        public var on: Duration = .seconds(120)
        /// Maximum number of exchanges in which this side's nonce is sent while pairing is on. A peer that has the nonce can compute the
        /// digits and repeat the exchange until they suit it, so each exchange gives it one guess. A man in the middle can guess on both
        /// sides, nine times in total.
        public var tries = 5
        /// Maximum number of failed exchanges. When it is reached, pairing is switched off.
        public var failures = 3
        /// Maximum number of failures of a key within `memory`, including exchanges that its peer gave up. When it is reached, requests of
        /// the key are refused.
        public var failuresPerKey = 3
        public var memory: Duration = .seconds(600)
        /// Maximum number of keys with failures within `memory`. When it is reached, requests of other keys are refused.
        public var keys = 256
        /// Time for which requests of other peers are refused after a session was lost while its digits were shown. Otherwise a peer that
        /// can cut a session could present its own digits just as the user confirms.
        public var reserved: Duration = .seconds(10)
        /// Interval between attempts to start the exchange that the user requested.
        public var retry: Duration = .seconds(2)
        /// Maximum finished pairings that are remembered.
        public var outcomes = 8
        public var timing = PairingStateMachine.Timing()
    }

    public enum Action: Sendable, Equatable {
        case send(Pairing, SessionKey)
        /// Refuse the peer's frame.
        case refuse(SessionKey)
        /// The user's request needs a session with the peer: call `begin` on an existing one, or dial.
        case reach(PeerID)
        /// Show digits to the user, with the peer's current name (`nameShown`). `wasAsked`: whether the peer requested the pairing, so that
        /// the user must be notified.
        case shown(PeerID, digits: String, wasAsked: Bool)
        /// Both users confirmed: trust this key under the displayed name, then call `stored`.
        case trust(PeerID, Fingerprint, number: Int, name: String?)
        case finished(FinishedPairing)
        /// The value of `items` changed.
        case changed
    }

    /// A running exchange, or the user's request before its exchange.
    public struct Item: Sendable, Equatable {
        /// An increasing number that identifies the pairing. A repeated request has a new number, because it has new digits.
        public var number: Int
        public var peer: PeerID
        /// Whether the user of this side requested the pairing.
        public var isOwn: Bool
        public var stage: PairingStateMachine.Stage
        /// The peer's name when the digits were shown; `nil` before.
        public var name: String?
        public var fingerprint: Fingerprint?
        public var until: Instant
        /// The reason why the user's request has no exchange yet.
        public var obstacle: PendingReason?
    }

    public enum PendingReason: Sendable, Equatable {
        case notReached, notTaken, givenUp, lost
    }

    public struct FinishedPairing: Sendable, Equatable {
        public enum Result: Sendable, Equatable {
            /// Both users confirmed; the trust is being stored.
            case agreed(digits: String)
            case paired
            case notStored(String)
            case ended(PairingStateMachine.EndReason)
            /// The peer never accepted the user's request.
            case expired(PendingReason?)
        }

        public var number: Int
        public var peer: PeerID
        public var isOwn: Bool
        /// The name that was shown with the digits; `nil` if none were.
        public var name: String?
        public var result: Result
        /// Whether the pairing was the last permitted attempt, so that pairing was switched off.
        public var isLast = false
        /// Number of attempts that the key has left within `memory`; `nil` if this attempt did not count.
        public var triesLeft: Int?
    }

    public enum ConfirmationResult: Sendable, Equatable {
        case accepted
        /// This side shows no digits of this peer, or they were confirmed already.
        case noDigits
        /// This side no longer shows these digits.
        case outdated
    }
}
