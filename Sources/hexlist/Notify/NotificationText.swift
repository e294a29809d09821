import HexlistAPI
import HexlistModel

/// The text of a desktop notification. Text of peers is cleaned and cut to a maximum width.
struct NotificationText: Equatable {
    var summary: String
    /// The body in notification markup: `<` and `&` are escaped.
    var body: String

    /// Maximum number of hexes whose subjects are shown.
    private static let lineLimit = 4
    private static let nameColumns = 44
    private static let lineColumns = 80
    private static let targetColumns = 40

    /// Creates the text for received hexes; `nil` if there are none.
    /// - Parameters:
    ///   - events: events of type `hex.received`, or all of type `hex.held`, oldest first.
    ///   - downloads: a line about the files that are downloaded; `nil` for none.
    init?(hexes events: [EventJSON], downloads: String? = nil) {
        guard let first = events.first else { return nil }
        let senders = events.map { event in
            event.peer.map { PeerDisplayName($0, event.tag).shown(columns: Self.nameColumns) } ?? "unknown"
        }
        let isRequest = first.type == "hex.held"
        guard events.count > 1 else {
            summary = isRequest ? "Request from \(senders[0])" : senders[0]
            body = ([first.subject ?? ""] + [downloads].compactMap(\.self)).map(Self.escaped).joined(separator: "\n")
            return
        }
        let different = Set(events.map(\.peer)).count
        summary = "\(events.count) \(isRequest ? "requests" : "hexes") from \(different == 1 ? senders[0] : "\(different) peers")"
        var lines = zip(senders, events).suffix(Self.lineLimit).map { sender, event in
            Self.escaped(different == 1 ? event.subject ?? "" : "\(sender): \(event.subject ?? "")")
        }
        if events.count > lines.count { lines.append("and \(events.count - lines.count) more") }
        body = lines.joined(separator: "\n")
    }

    /// Creates the text for files whose download the user started with the button *Save*.
    init(saving start: TransferStartResult, from sender: String, to folder: String) {
        summary = sender
        let count = start.first.flatMap { first in start.last.map { Int(clamping: $0 - first + 1) } } ?? 0
        let files = HumanText.count(count, "file", "files")
        body = Self.escaped(count == 0 ? "The files are in \(folder) already" : "Saving \(files) to \(folder)")
    }

    /// Returns a line about files that are downloaded automatically: `3 files in /home/ada/Downloads`; `nil` if there are none.
    static func downloads(_ transfers: [TransferView]) -> String? {
        guard let folder = transfers.map(\.folder).min(by: { $0.utf8.count < $1.utf8.count }) else { return nil }
        let isDone = transfers.allSatisfy { $0.state.known == .done }
        return "\(isDone ? "" : "Downloading ")\(HumanText.count(transfers.count, "file", "files")) \(isDone ? "in" : "to") \(folder)"
    }

    /// Creates the text for a single event; `nil` for a type without a notification.
    /// - Parameter event: an event of type `device.asked`, `pairing.requested`, `conflict.identity`, `invitation.guessed`,
    ///   `list.offered`, `list.ended`, `list.resumed`, `list.deleted` or `list.stuck`.
    init?(_ event: EventJSON) {
        let name = event.peer.map { PeerDisplayName($0, event.tag).shown(.named, columns: Self.nameColumns) } ?? "Somebody"
        switch event.type {
        case "device.asked":
            let count = event.number("files").map { Int(clamping: $0) } ?? 0
            summary =
                "\(name) wants to send you \(HumanText.count(count, "file", "files"))"
                + (event.number("bytes").map { " (\(ByteCountText.of($0)))" } ?? "")
            body = "It waits two minutes for your answer: `hexlist transfers accept \(event.number("request") ?? 0)`, or the page."
        case "pairing.requested":
            summary = "\(name) wants to pair"
            body = "Compare the digits: `hexlist pair --list`"
        case "conflict.identity":
            let isOwn = event.tag == nil
            summary = isOwn ? "Another machine uses the identity of this one" : "Two machines use the identity of \(name)"
            body = "Nothing is sent to or accepted from either. Run `hexlist id rotate` on one of them."
        case "invitation.guessed":
            summary = "Your invitations ended"
            body = "Somebody on this network tried too many keys. To invite again: `hexlist invite`"
        case "list.offered":
            let canEdit = event.text("access").map { PeerTextComparison.areEqual($0, ShareAccess.write.rawValue) } ?? false
            let links = SharingText.links(event.number("links").map { Int(clamping: $0) } ?? 0)
            summary = "\(name) wants to share \(SharingText.title(event.text("title") ?? "")) with you"
            body = "\(links); you can \(canEdit ? "edit" : "read") it. To join: `hexlist mine join`"
        case "list.ended":
            let end = SharingEnd(event)
            summary = end.summary(name)
            if end.isEnd {
                body = "You keep it as it is.\(end.hex.map { " To remove it: `hexlist mine rm \($0)`" } ?? "")"
            } else {
                body = end.rejection ?? "You can still read it."
            }
        case "list.resumed":
            let resumption = SharingResumption(event)
            summary = resumption.summary(name)
            body = "\(resumption.access) To see it: `\(resumption.command)`"
        case "list.deleted":
            let deletion = LargeDeletion(event)
            summary = deletion.summary(name)
            body = "To restore them: `\(deletion.command)`"
        case "list.stuck":
            summary = "Changes are not exchanged with \(name)"
            let isFull = event.text("reason").map { PeerTextComparison.areEqual($0, "full") } ?? false
            body =
                "For the reason: `hexlist status`"
                + (isFull ? ". A hex that you share can be renewed: `hexlist mine share HEX --renew`" : "")
        default: return nil
        }
    }

    /// Returns the label of the button that opens a link. It shows the host of the link; a long host is cut at the beginning, because its
    /// end identifies its owner.
    /// - Parameter target: the host, from `LinkJSON.opens`.
    static func opens(_ target: String) -> String {
        let shown = TerminalText.clean(target, columns: targetColumns * 8)
        return "Open " + (shown.count > targetColumns ? "…" + shown.suffix(targetColumns - 1) : shown)
    }

    /// Escapes markup. Compares scalars instead of characters, because `<` with a combining mark is one character but still begins markup.
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

/// The event that another machine of the user deleted many links at once.
struct LargeDeletion: Equatable {
    var links: Int
    /// The number of links before the deletion.
    var linksBefore: Int
    /// The numbers of the changes to undo.
    var changes: [Int64]

    init(_ event: EventJSON) {
        links = Int(clamping: event.number("links") ?? 0)
        linksBefore = Int(clamping: event.number("of") ?? 0)
        changes = event.text("changes")?.split(separator: " ").compactMap { Int64($0) } ?? []
    }

    func summary(_ name: String) -> String { "\(name) deleted \(HumanText.grouped(links)) of \(HumanText.grouped(linksBefore)) links" }

    /// The command that restores the links.
    var command: String { "hexlist mine undo \(changes.map(String.init).joined(separator: " "))" }
}

extension EventJSON {
    /// Returns a number in the details of the event, where numbers are texts.
    func number(_ name: String) -> Int64? { text(name).flatMap { Int64($0) } }

    func text(_ name: String) -> String? {
        data?.members?.first { PeerTextComparison.areEqual($0.name, name) }?.value.string
    }
}
