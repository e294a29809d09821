public import HexlistWire

extension Session.EndReason {
    /// The reason as a sentence for users. May contain untrusted text of the peer.
    public var text: String {
        switch self {
        case .lost: "The connection was lost."
        case .own(.receiptTimeout): "The peer received hexes, but did not answer for 30 s."
        case .own(.silent): "The peer fell silent."
        case .own(.conflict): "Two machines use this peer's identity."
        case .peer(.conflict, _): "The peer says that another machine uses this machine's identity too."
        case .own(let code): "The session was ended (\(code.rawValue))."
        case .peer(let code, let text): "The peer ended the session (\(code?.rawValue ?? "unknown")\(text.isEmpty ? "" : ": \(text)"))."
        }
    }
}
