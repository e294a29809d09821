public import HexlistModel

// The inputs and outputs of the desk.
extension PairingCoordinator {
    public struct Limits: Sendable {
        /// The time that the window for requests is open, and that an own request runs.
        public var on: Duration = .seconds(120)
        /// The most exchanges, while pairing is on, in which this side's nonce is sent, with any outcome. A peer that has the nonce can
        /// know the digits and give up until they suit it. A machine in the middle has these guesses on both sides: nine of the ten.
        public var tries = 5
        /// The failures after which pairing is off until the user switches it on again.
        public var failures = 3
        /// The failures of one key within `memory`, including exchanges it gave up, after which its requests are no longer taken.
        public var failuresPerKey = 3
        public var memory: Duration = .seconds(600)
        /// The most keys that failed within `memory`. Beyond it no other key is taken until one is forgotten.
        public var keys = 256
        /// The time after a session was lost while its digits were shown in which no other peer's digits are shown: a peer that can cut a
        /// session must not get its own request under a finger that is about to say yes.
        public var reserved: Duration = .seconds(10)
        /// The time between two attempts of an own request.
        public var retry: Duration = .seconds(2)
        /// The most outcomes that can still be asked for.
        public var outcomes = 8
        public var timing = PairingStateMachine.Timing()
    }

    public enum Action: Sendable, Equatable {
        case send(Pairing, SessionKey)
        /// The peer's frame is refused.
        case refuse(SessionKey)
        /// An own request needs a session with the peer: `begin` on an existing one, or dial.
        case reach(PeerID)
        /// Digits are shown to the user, with the peer's name as it is now (`nameShown`); `wasAsked` for a request of the peer, which is
        /// news.
        case shown(PeerID, digits: String, wasAsked: Bool)
        /// Both users said yes: trust this key by the name that was shown, then call `stored`.
        case trust(PeerID, Fingerprint, number: Int, name: String?)
        case over(Outcome)
        /// The value of `items` has changed.
        case changed
    }

    /// An exchange, or the user's request while it has none.
    public struct Item: Sendable, Equatable {
        /// A number that rises. A request that begins again has a new one, because it has new digits.
        public var number: Int
        public var peer: PeerID
        /// Whether this side's user asked.
        public var isOwn: Bool
        public var stage: PairingStateMachine.Stage
        /// The name the peer gave itself when the digits were shown; `nil` before.
        public var name: String?
        public var fingerprint: Fingerprint?
        public var until: Instant
        /// The reason why an own request has no exchange yet.
        public var obstacle: Obstacle?
    }

    public enum Obstacle: Sendable, Equatable {
        case notReached, notTaken, givenUp, lost
    }

    public struct Outcome: Sendable, Equatable {
        public enum Result: Sendable, Equatable {
            /// Both users said yes; the trust is being written to the store.
            case agreed(digits: String)
            case paired
            case notStored(String)
            case ended(PairingStateMachine.End)
            /// The own request was never taken.
            case expired(Obstacle?)
        }

        public var number: Int
        public var peer: PeerID
        public var isOwn: Bool
        /// The name that was shown with the digits; `nil` if there were none.
        public var name: String?
        public var result: Result
        /// Whether this outcome used up the tries or the failures, so that pairing was switched off.
        public var isLast = false
        /// The attempts that the key has left within `memory`; `nil` if this one did not count.
        public var triesLeft: Int?
    }

    public enum Answer: Sendable, Equatable {
        case given
        /// No digits of this peer are shown, or they were answered already.
        case noDigits
        /// The digits that this answers are no longer shown.
        case outdated
    }
}
