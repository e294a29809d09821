import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel
import HexlistSystem

struct NotifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notify", abstract: "Show desktop notifications of what arrives: a ready hook.",
        discussion: """
            --install makes it the hook of `hex.received`, `pairing.requested` and `conflict.identity`. hexlistd then runs it for each such \
            event, with the event on standard input, and it shows a notification through notify-send; hexes that arrive within two \
            seconds share one. Where the desktop can, a notification has buttons to mark it read and, with the place it leads to, to open the only link.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Put the hook into the folder of hooks.")
    var install = false

    @Option(help: ArgumentHelp(valueName: "first-last", visibility: .hidden))
    var show: String?

    func run() async throws {
        if install { return try await HookInstallation(common).run() }
        if let show { return try await showReceived(show) }
        guard isatty(STDIN_FILENO) == 0 else {
            throw HexlistError(
                .badRequest, "hexlistd runs this command, with an event on its standard input.",
                hint: "`hexlist notify --install` makes it a hook.")
        }
        let event = try event()
        switch event.type {
        case "hex.received": try await received(event)
        case "pairing.requested", "conflict.identity": if let text = NotificationText(event) { try await NotifySend.show(text) }
        default:
            throw HexlistError(
                .badRequest, "There is no notification for `\(TerminalText.clean(event.type, columns: 40))`.",
                hint: "It is a hook of hex.received, pairing.requested and conflict.identity.")
        }
    }

    private func event() throws -> EventJSON {
        let bytes = try InputFile.read("-", limit: LocalAPI.bodyBytes)
        do {
            return try EventJSON(jsonBytes: bytes)
        } catch {
            throw HexlistError(
                .badRequest, "Standard input is no event: \(error).", hint: "`hexlist notify --install` makes this command a hook.")
        }
    }

    // MARK: Hexes

    /// How long a hex waits for others to share its notification.
    private static let gathering = Duration.seconds(2)
    /// Hexes that are looked at for one notification; of more the number is told.
    private static let most = 1_000

    /// hexlistd runs this for one event after the other. The first run of a burst waits, tells of all that came meanwhile, and notes the
    /// last of them; the runs of the others find that they were told.
    private func received(_ event: EventJSON) async throws {
        let mark = LastNotifiedEvent(common.paths)
        if let told = mark.read(), told >= event.number, try await told <= newest() { return }
        try await Task.sleep(for: Self.gathering)
        let events = try await common.withClient { client in
            let events = try await Self.events(client, after: event.number - 1, through: nil)
            if let last = events.last { try mark.write(last.number) }
            return try await Self.wanted(events, client)
        }
        guard let first = events.first, let last = events.last else { return }
        if await NotifySend.showApart(first.number, last.number, common.paths) { return }
        guard let text = NotificationText(hexes: events) else { return }
        try await NotifySend.show(text)
    }

    /// The number of the newest event. A mark beyond it is of another store.
    private func newest() async throws -> Int64 {
        var number: Int64 = 0
        try await common.withClient { client in _ = try await client.events(.last(1), limit: 1) { number = $0.number } }
        return number
    }

    private static func events(_ client: HexlistClient, after number: Int64, through last: Int64?) async throws -> [EventJSON] {
        var events: [EventJSON] = []
        var next: Int64? = number
        while let since = next, events.count < most {
            let cursor = try await client.events(.after(since), types: ["hex.received"], limit: LocalAPI.pageLimit) { event in
                if events.count < most, event.number <= last ?? .max { events.append(event) }
            }
            next = cursor.flatMap(Int64.init)
            if let last, let reached = next, reached >= last { break }
        }
        return events
    }

    /// Leaves out the events of peers for which `peer set --notify off` was said.
    private static func wanted(_ events: [EventJSON], _ client: HexlistClient) async throws -> [EventJSON] {
        let quiet = Set(try await client.peers(all: true).filter { $0.notify == false }.compactMap(\.uuid))
        return events.filter { event in event.peer.map { !quiet.contains($0) } ?? true }
    }

    /// Shows the notification of events and waits for a button: in a unit of its own, outside of the hook.
    private func showReceived(_ range: String) async throws {
        let ends = range.split(separator: "-").compactMap { Int64($0) }
        guard ends.count == 2, ends[0] > 0, ends[0] <= ends[1] else { throw ValidationError("--show takes the numbers of two events.") }
        try await common.withClient { client in
            let events = try await Self.wanted(Self.events(client, after: ends[0] - 1, through: ends[1]), client)
            guard let text = NotificationText(hexes: events) else { return }
            let ids = events.compactMap(\.hex)
            var link: (url: String, target: String)?
            // Both of one answer: what is opened is what the button named.
            if ids.count == 1, let hex = try? await client.hex(ids[0]), let only = hex.links?.first, hex.links?.count == 1,
                let target = only.opens
            {
                link = (only.url, target)
            }
            switch try await NotifySend.show(text, opens: link?.target, marks: true) {
            case .open?:
                if let link { try Opener.run(Opener.program(nil, browser: Environment.value("BROWSER")), link: link.url) }
                await client.markAsRead(ids)
            case .read?: await client.markAsRead(ids)
            case nil: break
            }
        }
    }
}

/// The number of the newest event of which a notification told, in the runtime folder.
private struct LastNotifiedEvent {
    let path: String

    init(_ paths: HexlistPaths) { path = HexlistPaths.join(HexlistPaths.folder(of: paths.socket), "notified") }

    /// `nil` if there is none, or none that can be read.
    func read() -> Int64? {
        (try? SmallFile.read(path, limit: 32)).flatMap { Int64($0.split(whereSeparator: \.isWhitespace).first ?? "") }
    }

    func write(_ number: Int64) throws { try OwnFile.write("\(number)\n", to: path, mode: 0o600) }
}

/// Files that this program makes.
enum OwnFile {
    /// Writes a file whole or not at all.
    static func write(_ text: String, to path: String, mode: mode_t) throws(HexlistError) {
        let new = "\(path).\(getpid())"
        let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw failed(path, .last) }
        defer { close(descriptor) }
        do throws(SystemError) {
            guard fchmod(descriptor, mode) == 0 else { throw SystemError.last }
            try BlockingWrite.write(Array(text.utf8), to: descriptor)
            guard rename(new, path) == 0 else { throw SystemError.last }
        } catch {
            unlink(new)
            throw failed(path, error)
        }
    }

    /// Makes a folder of this user alone, and those above it that are not there.
    static func makeFolders(_ path: String) throws(HexlistError) {
        guard !HexlistPaths.isFolder(path) else { return }
        let above = HexlistPaths.folder(of: path)
        if above != path, above != "." { try makeFolders(above) }
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw HexlistError(.internal, "\(TerminalText.clean(path)) cannot be made (\(String(cString: strerror(errno)))).")
        }
    }

    private static func failed(_ path: String, _ error: SystemError) -> HexlistError {
        HexlistError(.internal, "\(TerminalText.clean(path, columns: 200)) cannot be written (\(error)).")
    }
}

/// `hexlist notify --install`
private struct HookInstallation {
    private static let events = ["hex.received", "pairing.requested", "conflict.identity"]
    /// The line by which a hook of this command is known.
    private static let sign = "# Made by `hexlist notify --install`."

    let common: CommonOptions

    init(_ common: CommonOptions) { self.common = common }

    func run() async throws {
        let folder = common.paths.hookFolder
        try OwnFile.makeFolders(folder)
        let hook = """
            #!/bin/sh
            \(Self.sign) Delete this file to end the notifications.
            exec \(ShellText.quoted(NotifySend.ownPath)) notify

            """
        var (made, others): ([String], [String]) = ([], [])
        for event in Self.events {
            let path = HexlistPaths.join(folder, event)
            switch Result(catching: { () throws(SmallFile.Fault) in try SmallFile.read(path, limit: 64 << 10) }) {
            case .failure(.missing):
                try OwnFile.write(hook, to: path, mode: 0o755)
                made.append(event)
            case .success(let text) where text.contains(Self.sign):
                try OwnFile.write(hook, to: path, mode: 0o755)
                made.append(event)
            case .success, .failure: others.append(path)
            }
        }
        let output = common.output
        if output.json {
            try output.object(InstalledJSON(installed: made, kept: others))
        } else if !made.isEmpty {
            try output.line("Notifications of \(made.joined(separator: ", ")): \(folder)")
        }
        try output.flush()
        if NotifySend.path == nil {
            StandardError.note("notify-send is not installed, so nothing is shown yet: `sudo apt install libnotify-bin`")
        }
        if let status = try? await common.withClient({ try await $0.status() }) {
            StandardError.note(
                "hexlistd sees new hooks when it reads its configuration: `systemctl --user reload hexlistd` or `kill -HUP \(status.pid)`.")
        }
        guard others.isEmpty else {
            throw HexlistError(
                .badRequest, "There is a hook of yours already: \(others.map { TerminalText.clean($0) }.joined(separator: ", ")).",
                hint: "It stays. `hexlist notify` in it shows the notification, with the event on its standard input.")
        }
    }
}

private struct InstalledJSON: Encodable, JSONEncodable {
    var installed: [String]
    /// Hooks of the user's own, which stay.
    var kept: [String]
}
