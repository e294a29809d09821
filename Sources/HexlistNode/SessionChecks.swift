import HexlistModel
import HexlistWire

/// The callers that wait for something from one session, to examine it. Each is called once, at the latest when the session ends.
struct SessionChecks {
    var opened: ((Bool) -> Void)?
    var ping: (message: String, done: (Bool) -> Void)?
    var dialBack: (token: BootNonce, done: (DialBack.Result?) -> Void)?

    mutating func ended() {
        opened.take()?(false)
        ping.take()?.done(false)
        dialBack.take()?.done(nil)
    }
}
