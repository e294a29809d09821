import HexlistModel
import HexlistWire

// What goes in and comes out of the desk.
extension PairingDesk {
    struct Limits {
        /// How long the window is open, and an own request runs.
        var on: Duration = .seconds(120)
        /// Exchanges in which the own nonce is sent while pairing is on, whatever becomes of them. Who has it can know the digits and
        /// give up until they suit, so with both sides of a machine in the middle counted these are its guesses: nine of the ten.
        var tries = 5
        /// After so many failures pairing is off until a person switches it on again.
        var failures = 3
        /// Of one key within `memory`, exchanges it gave up among them: then it is not taken any more.
        var failuresPerKey = 3
        var memory: Duration = .seconds(600)
        /// That failed within `memory`. Where there are more, no other key is taken until one is forgotten.
        var keys = 256
        /// After a session was lost while its digits were shown, no other peer's digits are: whoever can cut a session does not
        /// get its own request under a finger that is about to say yes.
        var reserved: Duration = .seconds(10)
        /// Between two tries of an own request.
        var retry: Duration = .seconds(2)
        /// Outcomes that can still be asked for.
        var outcomes = 8
        var timing = PairingStateMachine.Timing()
    }

    enum Action: Equatable {
        case send(Pairing, SessionKey)
        /// The peer's frame is not taken.
        case refuse(SessionKey)
        /// An own request wants a session to the peer: `begin` on it, or dial.
        case reach(PeerID)
        /// Digits are there for a person, with the name as it is now (`nameShown`); those of a request that came are news.
        case shown(PeerID, digits: String, wasAsked: Bool)
        /// Both said yes: trust this key by the name that was shown, then `stored`.
        case trust(PeerID, Fingerprint, number: Int, name: String?)
        case over(Outcome)
        /// What `items` gives has changed.
        case changed
    }

    /// An exchange, or the request of a person that has none just now.
    struct Item: Equatable {
        /// Rises. A request that begins again has a new one, because it has new digits.
        var number: Int
        var peer: PeerID
        /// Whether the own person asked.
        var isOwn: Bool
        var stage: PairingStateMachine.Stage
        /// What the peer called itself when the digits were shown; `nil` before.
        var name: String?
        var fingerprint: Fingerprint?
        var until: Instant
        /// Why an own request has no exchange yet.
        var obstacle: Obstacle?
    }

    enum Obstacle: Equatable {
        case notReached, notTaken, givenUp, lost
    }

    struct Outcome: Equatable {
        enum Result: Equatable {
            /// Both said yes; the trust is on its way into the store.
            case agreed(digits: String)
            case paired
            case notStored(String)
            case ended(PairingStateMachine.End)
            /// The own request was never taken.
            case expired(Obstacle?)
        }

        var number: Int
        var peer: PeerID
        var isOwn: Bool
        /// What was shown with its digits; `nil` where there were none.
        var name: String?
        var result: Result
        /// With it the tries or the failures were used up: pairing was switched off.
        var isLast = false
        /// How many more that key has within `memory`; `nil` where this one was none of them.
        var triesLeft: Int?
    }

    enum Answer: Equatable {
        case given
        /// No digits of this peer are shown, or an answer was given.
        case noDigits
        /// The digits this is the answer to are shown no longer.
        case outdated
    }
}
