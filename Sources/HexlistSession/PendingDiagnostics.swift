package import HexlistModel
package import HexlistWire

/// The pending diagnostic requests on a session. The closure of each is called once: with the result, or when the session ends.
package struct PendingDiagnostics {
    package var opened: ((Bool) -> Void)?
    package var ping: (message: String, done: (PingResult) -> Void)?
    package var dialBack: (token: BootNonce, done: (DialBack.Result?) -> Void)?

    package enum PingResult {
        case answered
        case unanswered
        /// A challenge replaced the Ping before the answer; a session has one Ping at a time.
        case displaced
    }

    mutating func ended() {
        opened.take()?(false)
        ping.take()?.done(.unanswered)
        dialBack.take()?.done(nil)
    }
}
