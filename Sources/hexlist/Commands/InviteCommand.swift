import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel
import UnixSignals

struct InviteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invite", abstract: "Let a phone or any browser in this network send you links and files.",
        discussion: """
            Prints a QR code and an address. Anyone who opens it can send you texts and files, and read the HEXes and FILEs that you name, \
            until you press Ctrl-C or the time is over. What guests send goes to the inbox.

            The connection is not encrypted: others on the same network can read it, and can act as that guest until the end. Use it in \
            networks you trust.
            """)

    @OptionGroup var common: CommonOptions

    @Option(name: .customLong("for"), help: ArgumentHelp("How long: 1m to 24h. Default: 10m.", valueName: "duration"))
    var time: String?

    @Flag(help: "End after the first hex.")
    var once = false

    @Flag(help: "Hold what guests send until you accept it.")
    var held = false

    @Option(help: ArgumentHelp("The address of this machine in the QR code.", valueName: "address"))
    var address: String?

    @Flag(name: .customLong("print"), help: "Print only the address and return. The invitation lasts until its time is over.")
    var isPrinted = false

    @Flag(help: "List the active invitations.")
    var list = false

    @Flag(help: "End the invitations with these ids, or all.")
    var end = false

    @Argument(
        help: ArgumentHelp("Hexes, by id, and files or folders that guests may read. With --end: invitations.", valueName: "hex|file"),
        completion: .file())
    var names: [String] = []

    func validate() throws {
        guard [list, end, isPrinted].count(where: { $0 }) <= 1 else { throw ValidationError("Give only one of --list, --end and --print.") }
        if list || end, time != nil || once || held || address != nil {
            throw ValidationError("\(list ? "--list" : "--end") takes no option for a new invitation.")
        }
        if list, !names.isEmpty { throw ValidationError("--list takes no hex or file.") }
        if end, let wrong = names.first(where: { Int($0) == nil }) { throw ValidationError("`\(wrong)` is not the id of an invitation.") }
        if let time, InviteText.seconds(time) == nil { throw ValidationError("`\(time)` is not 1m to 24h, such as 30m.") }
    }

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            if list {
                try show(try await client.invitations(), output)
            } else if end {
                try await endThem(client, output)
            } else {
                let invitation = try await client.invite(request)
                if isPrinted {
                    if output.json { try output.object(invitation) } else { try output.line(invitation.url) }
                } else {
                    try await InvitationDialog(client: client, output: output).run(invitation)
                }
            }
        }
        try output.flush()
    }

    private var request: InvitationRequest {
        let hexes = names.compactMap { Int64($0) }
        let paths = names.filter { Int64($0) == nil }.map { HexlistPaths.absolute($0) }
        return InvitationRequest(
            hexes: hexes.isEmpty ? nil : hexes, paths: paths.isEmpty ? nil : paths, seconds: time.flatMap(InviteText.seconds),
            once: once ? true : nil, held: held ? true : nil, address: address)
    }

    private func show(_ invitations: [Invitation], _ output: Output) throws {
        if output.json { return try invitations.forEach { try output.object($0) } }
        guard !invitations.isEmpty else { return StandardError.note("No invitation is active.") }
        var table = Table(["ID", "ENDS", "GUESTS", "HEXES", "ADDRESS"])
        for invitation in invitations {
            table.add([
                Table.Cell("\(invitation.id)"), Table.Cell(HumanText.time(invitation.until)), Table.Cell("\(invitation.guests.count)"),
                Table.Cell("\(invitation.hexes.count)"), Table.Cell(invitation.url, columns: 200),
            ])
        }
        try output.table(table)
    }

    private func endThem(_ client: HexlistClient, _ output: Output) async throws {
        let ids = names.isEmpty ? try await client.invitations().map(\.id) : names.compactMap { Int($0) }
        if ids.isEmpty, !output.json { StandardError.note("No invitation is active.") }
        for id in ids {
            let ended = try await client.endInvitation(id)
            if output.json { try output.object(ended) } else { try output.line("Invitation \(id) ended.") }
        }
    }
}

/// Shows an invitation with its guests and their hexes, until its end or Ctrl-C.
private struct InvitationDialog {
    private enum Event: Sendable {
        case changed(Invitation)
        case stop
        case failed(any Error)
    }

    let client: HexlistClient
    let output: Output

    func run(_ invitation: Invitation) async throws {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup)
        try begin(invitation)
        // The buffer needs no limit: an invitation changes only with its guests and hexes, whose numbers are limited.
        let (events, incoming) = AsyncStream.makeStream(of: Event.self)
        let last = try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [client] in
                do {
                    try await client.watchInvitation(invitation.id) { seen in
                        incoming.yield(.changed(seen))
                        return seen.ended == nil
                    }
                } catch {
                    incoming.yield(.failed(error))
                }
            }
            group.addTask { for await _ in signals { incoming.yield(.stop) } }
            defer { group.cancelAll() }
            var before = invitation
            for await event in events {
                switch event {
                case .failed(let error): throw error
                case .stop: return try await client.endInvitation(invitation.id)
                case .changed(let now):
                    try show(now, after: before)
                    before = now
                    if now.ended != nil { return now }
                }
            }
            return before
        }
        guard !output.json else { return }
        if let text = InviteText.end(last) { StandardError.note(text) }
    }

    private func begin(_ invitation: Invitation) throws {
        guard !output.json else {
            try output.object(invitation)
            return try output.flush()
        }
        if output.terminal.isInteractive { try QRCodeText.write(invitation.url, output) }
        try output.line("\(invitation.url)     not encrypted; ends at \(InviteText.clock(invitation.until))")
        if !invitation.urls.isEmpty, output.terminal.isInteractive {
            try output.line("If a phone cannot open it: \(invitation.urls.joined(separator: "  "))")
        }
        try output.flush()
    }

    private func show(_ now: Invitation, after before: Invitation) throws {
        if output.json {
            if now != before { try output.object(now) }
        } else {
            for guest in now.guests.dropFirst(before.guests.count) { try output.line(InviteText.opened(guest)) }
            for hex in now.hexes.dropFirst(before.hexes.count) { try output.line(InviteText.received(hex)) }
        }
        try output.flush()
    }
}

/// Texts about invitations.
enum InviteText {
    /// Parses the duration of an invitation; `nil` unless it is from 1 minute to 24 hours.
    static func seconds(_ text: String) -> Int? {
        let durations = InvitationRequest.durations
        guard let seconds = DurationText.seconds(text), (Double(durations.lowerBound)...Double(durations.upperBound)).contains(seconds)
        else { return nil }
        return Int(seconds)
    }

    static func opened(_ guest: InvitationGuest) -> String {
        "\(clock(guest.at))  opened on \(guest.address)" + (guest.device.map { " (\(TerminalText.clean($0, columns: 20)))" } ?? "")
    }

    static func received(_ hex: InvitationHex) -> String {
        let files = hex.files == 0 ? "" : ": \(HumanText.count(hex.files, "file", "files")), \(ByteCountText.of(hex.size))"
        return "\(clock(hex.at))  received hex \(hex.hex) from \(hex.label.shown(columns: 80))\(files)"
    }

    /// A sentence about an end that the user may not expect; `nil` for any other end.
    static func end(_ invitation: Invitation) -> String? {
        switch invitation.ended?.known {
        case .time: "The invitation is over."
        case .keys: "The invitation ended: somebody on this network tried too many keys. Start another one if you trust the network."
        case .stopped: "The invitation ended because hexlistd stopped."
        case .user, .once, nil: nil
        }
    }

    /// Returns hour and minute.
    static func clock(_ moment: Timestamp) -> String { String(HumanText.time(moment).suffix(5)) }
}
