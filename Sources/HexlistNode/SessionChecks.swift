import HexlistModel
import HexlistWire

/// The callers that wait for something from one session, to examine it. Each is called once, at the latest when the session ends.
struct SessionChecks {
    var opened: ((Bool) -> Void)?
    var ping: (message: String, done: (PingEnd) -> Void)?
    var dialBack: (token: BootNonce, done: (DialBack.Result?) -> Void)?

    enum PingEnd {
        case answered
        case unanswered
        /// Another question took its place before it was answered; a session is asked one thing at a time.
        case displaced
    }

    mutating func ended() {
        opened.take()?(false)
        ping.take()?.done(.unanswered)
        dialBack.take()?.done(nil)
    }
}
