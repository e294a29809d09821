package import HexlistModel
package import HexlistWire

/// The callers that wait for something from one session, to examine it. Each is called once, at the latest when the session ends.
package struct SessionChecks {
    package var opened: ((Bool) -> Void)?
    package var ping: (message: String, done: (PingEnd) -> Void)?
    package var dialBack: (token: BootNonce, done: (DialBack.Result?) -> Void)?

    package enum PingEnd {
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
