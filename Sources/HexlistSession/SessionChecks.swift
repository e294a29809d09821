package import HexlistModel
package import HexlistWire

/// The diagnostic requests on a session. Each closure is called once, at the latest when the session ends.
package struct SessionChecks {
    package var opened: ((Bool) -> Void)?
    package var ping: (message: String, done: (PingEnd) -> Void)?
    package var dialBack: (token: BootNonce, done: (DialBack.Result?) -> Void)?

    package enum PingEnd {
        case answered
        case unanswered
        /// Another challenge replaced the Ping before its answer; a session has one challenge at a time.
        case displaced
    }

    mutating func ended() {
        opened.take()?(false)
        ping.take()?.done(.unanswered)
        dialBack.take()?.done(nil)
    }
}
