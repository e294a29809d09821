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

    /// - Parameter events: `hex.received`, oldest first; `nil` where there are none.
    init?(hexes events: [EventShape]) {
        guard let first = events.first else { return nil }
        let senders = events.map { event in
            event.peer.map { PeerLabel($0, event.tag).shown(columns: Self.nameColumns) } ?? "unknown"
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
    init?(_ event: EventShape) {
        let name = event.peer.map { PeerLabel($0, event.tag).shown(.named, columns: Self.nameColumns) } ?? "Somebody"
        switch event.type {
        case "pairing.requested":
            summary = "\(name) asks to pair"
            body = "Compare the digits: `hexlist pair --list`"
        case "conflict.identity":
            let isOwn = event.tag == nil
            summary = isOwn ? "Another machine has this one's identity" : "Two machines are \(name)"
            body = Self.escaped("Nothing is sent to them or taken from them until one of them runs `hexlist id rotate`.")
        default: return nil
        }
    }

    private static func escaped(_ text: String) -> String {
        TerminalText.clean(text, columns: lineColumns).reduce(into: "") { line, character in
            switch character {
            case "&": line += "&amp;"
            case "<": line += "&lt;"
            case ">": line += "&gt;"
            default: line.append(character)
            }
        }
    }
}
