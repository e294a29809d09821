/// The label that distinguishes a peer from every other one wherever a person reads of it: the alias, which only this machine's user
/// gives, or the peer's own name with the short UUID after it, since anyone can take any name; then the trust, unless it is trusted.
///
///     Bob                       an alias, trusted
///     Bob (blocked)             an alias
///     Bob 0C6F1B22 (stranger)   a name
///     0C6F1B22 (stranger)       no name
public struct PeerDisplayName: Sendable, Equatable {
    /// The peer's UUID; `nil` for an announcement without one.
    public var uuid: String?
    /// The name the peer last gave itself. Peer text.
    public var name: String
    public var alias: String?
    /// `trusted`, `stranger` or `blocked`; a newer daemon may have more. Empty if unknown.
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
        /// As in the table above.
        case short
        /// Without the trust, for a sentence that states it.
        case named
        /// Always with the short UUID and the trust: where somebody is about to trust the peer.
        case full
        /// With the whole UUID and the trust: in a list of candidates.
        case whole
    }

    /// The alias or the name alone, cleaned, on one line.
    public var head: String { PeerName.line(alias ?? name) }

    /// The label, cleaned, on one line. A long alias or name is cut, the part after it never; an alias that was cut is followed by the UUID
    /// as a name is.
    ///
    /// - Parameters:
    ///   - columns: the most columns of the label, 40 or more.
    ///   - cut: returns the longest prefix of a clean text that fits into a number of columns.
    public func text(
        _ detail: Detail = .short, columns: Int = 64, cut: (String, Int) -> String = { TerminalText.clean($0, columns: $1) }
    ) -> String {
        let head = head
        // An alias made with the short UUID (`PeerAlias.made`) contains it already.
        let isTold = alias != nil && uuid.map { head.utf8.suffix(9).elementsEqual(" \($0.prefix(8))".utf8) } ?? false
        if alias != nil, detail == .short || detail == .named || detail == .full && isTold {
            let tail = tail(detail, hasID: false)
            if cut(head, columns - tail.utf8.count).utf8.elementsEqual(head.utf8) { return head + tail }
        }
        let tail = tail(detail, hasID: true)
        // The whole UUID comes on top of the columns for the name.
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
