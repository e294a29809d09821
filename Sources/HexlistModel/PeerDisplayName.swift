/// The unique display name of a peer: its alias, which only the user of this machine assigns, or else its own name with the short UUID,
/// because peers can choose any name. Unless the peer is trusted, the trust follows in parentheses.
///
///     Bob                       an alias, trusted
///     Bob (blocked)             an alias
///     Bob 0C6F1B22 (stranger)   a name
///     0C6F1B22 (stranger)       no name
///     "Anna" 10.0.0.7 (guest)   a guest, which has neither alias nor trust
///     iPhone (drop)             a drop token, which has neither
public struct PeerDisplayName: Sendable, Equatable {
    /// The peer's UUID; `nil` if its announcement has none.
    public var uuid: String?
    /// The last name that the peer announced. Untrusted text.
    public var name: String
    public var alias: String?
    /// The trust as text: `trusted`, `stranger` or `blocked`; `guest` or `drop` for a sender without a key; empty if unknown. A newer
    /// daemon may return other values.
    public var trust: String

    public init(uuid: String?, name: String, alias: String?, trust: String) {
        self.uuid = uuid
        self.name = name
        self.alias = alias
        self.trust = trust
    }

    public init(_ peer: PeerID, kind: PeerKind = .hexlist, name: String, alias: String?, trust: Trust) {
        self.init(uuid: peer.description, name: name, alias: alias, trust: kind.hasKey ? trust.rawValue : kind.rawValue)
    }

    /// Whether the peer is a guest or a drop token. Their names come from this machine or its user, and are shown without UUID.
    private var hasNoKey: Bool { PeerKind.allCases.contains { !$0.hasKey && $0.rawValue == trust } }

    public enum Detail: Sendable {
        /// The form in the table of `PeerDisplayName`.
        case short
        /// The form in the table of `PeerDisplayName`, but without the trust, for sentences that state it themselves.
        case named
        /// The form that always has the short UUID and the trust, for decisions about trust.
        case full
        /// The form with the complete UUID and the trust, for a list of peers to choose from.
        case whole
    }

    /// The alias or name without UUID and trust, cleaned for display on one line.
    public var head: String { PeerName.line(alias ?? name) }

    /// Returns the display name, cleaned for display on one line. If the alias or name is too long, it is truncated, but the UUID and trust
    /// after it are not. A truncated alias is followed by the UUID.
    ///
    /// - Parameters:
    ///   - columns: maximum columns, at least 40.
    ///   - cut: a function that returns the longest prefix of a clean text that fits into the given columns.
    public func text(
        _ detail: Detail = .short, columns: Int = 64, cut: (String, Int) -> String = { TerminalText.clean($0, columns: $1) }
    ) -> String {
        let head = head
        if hasNoKey, !head.isEmpty, detail != .whole {
            let tail = " (\(trust))"
            return cut(head, columns - tail.utf8.count) + tail
        }
        // An alias created with the short UUID (`PeerAlias.made`) already contains it.
        let containsID = alias != nil && uuid.map { head.utf8.suffix(9).elementsEqual(" \($0.prefix(8))".utf8) } ?? false
        if alias != nil, detail == .short || detail == .named || detail == .full && containsID {
            let tail = tail(detail, hasID: false)
            if cut(head, columns - tail.utf8.count).utf8.elementsEqual(head.utf8) { return head + tail }
        }
        let tail = tail(detail, hasID: true)
        // A complete UUID does not reduce the columns of the name.
        let room = detail == .whole ? columns : columns - tail.utf8.count
        return head.isEmpty ? String(tail.dropFirst()) : cut(head, room) + tail
    }

    private func tail(_ detail: Detail, hasID: Bool) -> String {
        var tail = ""
        if hasID, let uuid { tail += " " + TerminalText.clean(uuid.prefix(detail == .whole ? 36 : 8)) }
        let showsTrust = detail == .short ? !trust.utf8.elementsEqual(Trust.trusted.rawValue.utf8) : detail != .named
        if showsTrust, !trust.isEmpty { tail += " (\(TerminalText.clean(trust, columns: 12)))" }
        return tail
    }
}
