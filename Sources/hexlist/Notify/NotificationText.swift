import HexlistAPI
import HexlistModel

/// What a notification says. Texts of peers are cleaned and cut here.
struct NotificationText: Equatable {
    var summary: String
    /// With the markup of notifications, in which `<` and `&` are escaped.
    var body: String

    /// Hexes whose subjects are shown.
    private static let mostLines = 4
    private static let nameColumns = 44
    private static let lineColumns = 80
    private static let targetColumns = 40

    /// - Parameter events: `hex.received`, oldest first; `nil` where there are none.
    init?(hexes events: [EventJSON]) {
        guard let first = events.first else { return nil }
        let senders = events.map { event in
            event.peer.map { PeerDisplayName($0, event.tag).shown(columns: Self.nameColumns) } ?? "unknown"
        }
        guard events.count > 1 else {
            summary = senders[0]
            body = Self.escaped(first.subject ?? "")
            return
        }
        let different = Set(events.map(\.peer)).count
        summary = "\(events.count) hexes from \(different == 1 ? senders[0] : "\(different) peers")"
        var lines = zip(senders, events).suffix(Self.mostLines).map { sender, event in
            Self.escaped(different == 1 ? event.subject ?? "" : "\(sender): \(event.subject ?? "")")
        }
        if events.count > lines.count { lines.append("and \(events.count - lines.count) more") }
        body = lines.joined(separator: "\n")
    }

    /// - Parameter event: `pairing.requested` or `conflict.identity`; `nil` for another one.
    init?(_ event: EventJSON) {
        let name = event.peer.map { PeerDisplayName($0, event.tag).shown(.named, columns: Self.nameColumns) } ?? "Somebody"
        switch event.type {
        case "pairing.requested":
            summary = "\(name) asks to pair"
            body = "Compare the digits: `hexlist pair --list`"
        case "conflict.identity":
            let isOwn = event.tag == nil
            summary = isOwn ? "Another machine has this one's identity" : "Two machines are \(name)"
            body = "Nothing is sent to them or taken from them. To settle it: `hexlist id rotate` on one."
        default: return nil
        }
    }

    /// The text of the button that opens a link: it names the place a browser would go to. A long host keeps its end, which says whose it is.
    /// - Parameter target: `LinkJSON.opens`.
    static func opens(_ target: String) -> String {
        let shown = TerminalText.clean(target, columns: targetColumns * 8)
        return "Open " + (shown.count > targetColumns ? "…" + shown.suffix(targetColumns - 1) : shown)
    }

    /// Scalars, not characters: a sign of markup with a combining mark after it is one character, and still markup.
    private static func escaped(_ text: String) -> String {
        var line = ""
        for scalar in TerminalText.clean(text, columns: lineColumns).unicodeScalars {
            switch scalar {
            case "&": line += "&amp;"
            case "<": line += "&lt;"
            case ">": line += "&gt;"
            default: line.unicodeScalars.append(scalar)
            }
        }
        return line
    }
}
