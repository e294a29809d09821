/// How a peer is told apart from every other wherever a person reads of it: by its alias, which only this machine's user gives, or by
/// its own name with the short UUID behind it, since anyone can take any name; and by its trust, where it is not trusted.
///
///     Bob                       an alias, trusted
///     Bob (blocked)             an alias
///     Bob 0C6F1B22 (stranger)   a name
///     0C6F1B22 (stranger)       no name
public struct PeerLabel: Sendable, Equatable {
    /// A UUID; `nil` for an announcement without one.
    public var uuid: String?
    /// What the peer calls itself, as last told. Peer text.
    public var name: String
    public var alias: String?
    /// `trusted`, `stranger` or `blocked`; a newer daemon may know more. Empty where nothing says.
    public var trust: String

    public init(uuid: String?, name: String, alias: String?, trust: String) {
        self.uuid = uuid
        self.name = name
        self.alias = alias
        self.trust = trust
    }

    public init(_ peer: PeerID, name: String, alias: String?, trust: Trust) {
        self.init(uuid: peer.description, name: name, alias: alias, trust: trust.rawValue)
    }

    public enum Detail: Sendable {
        /// As above.
        case short
        /// Without the trust, for a sentence that tells it.
        case named
        /// With the short UUID and the trust whatever they are: where somebody is about to trust.
        case full
        /// With the whole UUID and the trust: among candidates.
        case whole
    }

    /// The alias or the name alone, on one line. Clean.
    public var head: String { PeerName.line(alias ?? name) }

    /// Clean, of one line. The alias or name is cut where it is too long, never what stands behind it; an alias that was cut has the
    /// UUID behind it like any name.
    ///
    /// - Parameters:
    ///   - columns: the most it takes, from 40 up.
    ///   - cut: the longest beginning of a clean text that fits into so many columns.
    public func text(
        _ detail: Detail = .short, columns: Int = 64, cut: (String, Int) -> String = { TerminalText.clean($0, columns: $1) }
    ) -> String {
        let head = head
        // An alias that the rule made with the short UUID has it once.
        let isTold = alias != nil && uuid.map { head.utf8.suffix(9).elementsEqual(" \($0.prefix(8))".utf8) } ?? false
        if alias != nil, detail == .short || detail == .named || detail == .full && isTold {
            let tail = tail(detail, hasID: false)
            if cut(head, columns - tail.utf8.count).utf8.elementsEqual(head.utf8) { return head + tail }
        }
        let tail = tail(detail, hasID: true)
        // The whole UUID stands beside the name, not in its place.
        let room = detail == .whole ? columns : columns - tail.utf8.count
        return head.isEmpty ? String(tail.dropFirst()) : cut(head, room) + tail
    }

    private func tail(_ detail: Detail, hasID: Bool) -> String {
        var tail = ""
        if hasID, let uuid { tail += " " + TerminalText.clean(uuid.prefix(detail == .whole ? 36 : 8)) }
        let tellsTrust = detail == .short ? !trust.utf8.elementsEqual(Trust.trusted.rawValue.utf8) : detail != .named
        if tellsTrust, !trust.isEmpty { tail += " (\(TerminalText.clean(trust, columns: 12)))" }
        return tail
    }
}
