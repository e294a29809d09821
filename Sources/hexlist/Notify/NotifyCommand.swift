import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel
import HexlistSystem

struct NotifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notify", abstract: "Turn on desktop notifications.",
        discussion: """
            --install adds a hook for `hex.received`, `hex.held`, `device.asked`, `pairing.requested`, `conflict.identity`, \
            `invitation.guessed`, `list.offered`, `list.ended`, `list.resumed`, `list.deleted` and `list.stuck`. hexlistd runs it for each such event, and it shows a notification with notify-send; hexes that arrive \
            within two seconds share one. If the desktop supports it, a notification has buttons: open the link of the hex, with the host \
            it leads to; save its files into the download folder; mark it as read. A hex that waits for approval has a button to accept \
            it; such notifications appear at most once a minute.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Install the hook.")
    var install = false

    @Flag(help: "Remove the hook.")
    var remove = false

    @Option(help: ArgumentHelp(valueName: "range", visibility: .hidden))
    var show: NotifiedRange?

    func validate() throws {
        if install && remove { throw ValidationError("Give --install or --remove, not both.") }
    }

    func run() async throws {
        if install { return try await HookInstallation(common).install() }
        if remove { return try await HookInstallation(common).remove() }
        if let show { return try await showHexes(show) }
        guard isatty(STDIN_FILENO) == 0 else {
            throw HexlistError(
                .badRequest, "Only hexlistd runs this command, with an event on standard input.",
                hint: "To turn on notifications: `hexlist notify --install`.")
        }
        let event = try event()
        switch event.type {
        case NotifiedHexKind.received.rawValue: try await arrived(event, .received)
        case NotifiedHexKind.held.rawValue: try await arrived(event, .held)
        case "device.asked":
            // Any machine on the network can cause a request.
            let last = LastNotifiedEvent(common.paths, file: "notified-devices")
            guard !last.isYounger(than: Self.requestPause), let text = NotificationText(event) else { return }
            try last.write(event.number)
            try await NotifySend.show(text)
        case "pairing.requested", "conflict.identity", "invitation.guessed", "list.offered", "list.ended", "list.resumed",
            "list.deleted", "list.stuck":
            if let text = NotificationText(event) { try await NotifySend.show(text) }
        default:
            throw HexlistError(
                .badRequest, "There is no notification for `\(TerminalText.clean(event.type, columns: 40))`.",
                hint:
                    "It handles hex.received, hex.held, device.asked, pairing.requested, conflict.identity, invitation.guessed, "
                    + "list.offered, list.ended, list.resumed, list.deleted and list.stuck.")
        }
    }

    private func event() throws -> EventJSON {
        let bytes = try InputFile.read("-", limit: LocalAPI.bodyBytes)
        do {
            return try EventJSON(jsonBytes: bytes)
        } catch {
            throw HexlistError(
                .badRequest, "Standard input is not an event: \(error).", hint: "To turn on notifications: `hexlist notify --install`.")
        }
    }

    // MARK: Hexes

    /// Time to wait for further hexes before showing one notification for all.
    private static let collectionTime = Duration.seconds(2)
    /// Minimum time in seconds between two notifications of requests.
    private static let requestPause = 60
    /// Maximum number of hexes in one notification.
    private static let hexLimit = 1_000

    /// Shows one notification for a burst of hexes. hexlistd runs this command once per event, in order. The first run waits, shows all
    /// hexes received meanwhile, and records the number of the last event. Later runs find that their event is already covered.
    private func arrived(_ event: EventJSON, _ hexes: NotifiedHexKind) async throws {
        let lastNotified = LastNotifiedEvent(common.paths, hexes)
        if let last = lastNotified.read(), last >= event.number, try await last <= newest() { return }
        // Any machine on the network can cause a request.
        if hexes == .held, lastNotified.isYounger(than: Self.requestPause) { return }
        try await Task.sleep(for: Self.collectionTime)
        let (events, downloads) = try await common.withClient { client in
            let events = try await Self.events(client, hexes, after: event.number - 1, through: nil)
            if let last = events.last { try lastNotified.write(last.number) }
            let wanted = try await Self.wanted(events, client)
            return (wanted, await Self.downloads(wanted, client))
        }
        guard let first = events.first, let last = events.last else { return }
        let range = NotifiedRange(hexes: hexes, numbers: first.number...last.number)
        if await NotifySend.showInUnit(range, common.paths) { return }
        guard let text = NotificationText(hexes: events, downloads: downloads) else { return }
        try await NotifySend.show(text)
    }

    /// Returns the number of the newest event. A recorded number that is larger was written for another store.
    private func newest() async throws -> Int64 {
        var number: Int64 = 0
        try await common.withClient { client in _ = try await client.events(.last(1), limit: 1) { number = $0.number } }
        return number
    }

    private static func events(
        _ client: HexlistClient, _ hexes: NotifiedHexKind, after number: Int64, through last: Int64?
    ) async throws -> [EventJSON] {
        var events: [EventJSON] = []
        var next: Int64? = number
        while let since = next, events.count < hexLimit {
            let cursor = try await client.events(.after(since), types: [hexes.rawValue], limit: LocalAPI.pageLimit) { event in
                if events.count < hexLimit, event.number <= last ?? .max { events.append(event) }
            }
            next = cursor.flatMap(Int64.init)
            if let last, let reached = next, reached >= last { break }
        }
        return events
    }

    /// Removes the events of peers for which the user turned notifications off (`peer set --notify off`).
    private static func wanted(_ events: [EventJSON], _ client: HexlistClient) async throws -> [EventJSON] {
        let quiet = Set(try await client.peers(all: true).filter { $0.notify == false }.compactMap(\.uuid))
        return events.filter { event in event.peer.map { !quiet.contains($0) } ?? true }
    }

    /// Returns a line about the files of a hex that are downloaded automatically; `nil` if there are none, or for several hexes.
    private static func downloads(_ events: [EventJSON], _ client: HexlistClient) async -> String? {
        guard events.count == 1, let hex = events[0].hex, let peer = events[0].peer,
            let sender = try? await client.peer(peer.description), sender.fetchTo?.known == .downloads,
            let transfers = try? await client.transfers(limit: LocalAPI.pageLimit)
        else { return nil }
        return NotificationText.downloads(transfers.items.filter { $0.hex == hex })
    }

    /// Shows the notification and waits until a button is pressed. Runs in its own systemd unit, because a hook may not run that long.
    private func showHexes(_ range: NotifiedRange) async throws {
        try await common.withClient { client in
            let all = try await Self.events(client, range.hexes, after: range.numbers.lowerBound - 1, through: range.numbers.upperBound)
            let events = try await Self.wanted(all, client)
            let downloads = await Self.downloads(events, client)
            guard let text = NotificationText(hexes: events, downloads: downloads) else { return }
            let ids = events.compactMap(\.hex)
            // Labels and actions come from the same reply, so that they match.
            let hex = ids.count == 1 ? try? await client.hex(ids[0]) : nil
            let buttons = Self.buttons(range.hexes, hex, isDownloading: downloads != nil)
            switch try await NotifySend.show(text, buttons) {
            case .open?:
                if let link = hex?.links?.first?.url {
                    try LinkProgram.run(LinkProgram.program(nil, browser: Environment.value("BROWSER")), link: link)
                }
                await client.markAsRead(ids)
            case .save?: if let hex { try await save(hex, text.summary, client) }
            case .accept?: _ = try await client.accept(.ids(ids))
            case .read?: await client.markAsRead(ids)
            case nil: break
            }
        }
    }

    /// Returns the buttons of a notification.
    /// - Parameters:
    ///   - hex: the hex, if there is only one.
    ///   - isDownloading: whether the files of the hex are downloaded automatically.
    static func buttons(_ hexes: NotifiedHexKind, _ hex: HexJSON?, isDownloading: Bool) -> [NotifySend.Button] {
        // A notification of several requests has no button, because it does not show all of them.
        if hexes == .held { return hex?.location == "held" ? [.accept] : [] }
        var buttons: [NotifySend.Button] = []
        if let hex {
            if hex.links?.count == 1, let target = hex.links?.first?.opens { buttons.append(.open(target)) }
            let files = fileCount(hex.links, hex.children)
            if files > 0, !isDownloading { buttons.append(.save(files)) }
        }
        return buttons + [.markAsRead]
    }

    /// Returns the number of files in a hex and the hexes inside.
    private static func fileCount(_ links: [LinkJSON]?, _ children: [InnerHexJSON]?) -> Int {
        (links ?? []).count { FileArgument.isLink($0.url) } + (children ?? []).reduce(0) { $0 + fileCount($1.links, $1.children) }
    }

    /// Starts to save the files of a hex into the download folder, and reports it in a notification.
    private func save(_ hex: HexJSON, _ sender: String, _ client: HexlistClient) async throws {
        guard let folder = try await client.configuration().items.first(where: { $0.key == "files.downloads" })?.value, !folder.isEmpty
        else { throw HexlistError(.notSupported, "There is no download folder.", hint: "Set `files.downloads`: `hexlist config`.") }
        try FileWriter.makeFolders(folder)
        let start = try await client.fetch(TransferRequest(hex: hex.id, folder: true, to: folder, umask: 0o022))
        await client.markAsRead([hex.id])
        try await NotifySend.show(NotificationText(saving: start, from: sender, to: folder))
    }
}

/// The hexes that a notification is about, by the type of their events.
enum NotifiedHexKind: String {
    /// Hexes in the inbox.
    case received = "hex.received"
    /// Hexes that wait for approval.
    case held = "hex.held"
}

/// The events that one notification reports. As an argument: `hex.received:5-9`.
struct NotifiedRange: ExpressibleByArgument, Equatable {
    var hexes: NotifiedHexKind
    var numbers: ClosedRange<Int64>

    init(hexes: NotifiedHexKind, numbers: ClosedRange<Int64>) {
        self.hexes = hexes
        self.numbers = numbers
    }

    init?(argument: String) {
        let parts = argument.split(separator: ":")
        guard parts.count == 2, let hexes = NotifiedHexKind(rawValue: String(parts[0])) else { return nil }
        let ends = parts[1].split(separator: "-").compactMap { Int64($0) }
        guard ends.count == 2, ends[0] > 0, ends[0] <= ends[1] else { return nil }
        self.init(hexes: hexes, numbers: ends[0]...ends[1])
    }

    var text: String { "\(hexes.rawValue):\(numbers.lowerBound)-\(numbers.upperBound)" }
}

/// A file in the runtime folder with the number of the last event that a notification has covered.
private struct LastNotifiedEvent {
    let path: String

    init(_ paths: HexlistPaths, _ hexes: NotifiedHexKind) { self.init(paths, file: hexes == .held ? "notified-requests" : "notified") }

    /// - Parameter file: the name of the file in the runtime folder.
    init(_ paths: HexlistPaths, file: String) { path = HexlistPaths.join(HexlistPaths.folder(of: paths.socket), file) }

    /// Whether the file was written less than this many seconds ago, by the wall clock.
    func isYounger(than seconds: Int) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else { return false }
        return (0..<seconds).contains(time(nil) - status.st_mtim.tv_sec)
    }

    /// Returns the recorded number; `nil` if the file is missing or invalid.
    func read() -> Int64? {
        (try? SmallFile.read(path, limit: 32)).flatMap { Int64($0.split(whereSeparator: \.isWhitespace).first ?? "") }
    }

    func write(_ number: Int64) throws { try FileWriter.write("\(number)\n", to: path, mode: 0o600) }
}

/// Writes files atomically, and creates folders.
enum FileWriter {
    /// Writes a text to a new file and renames it to `path`.
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

    /// Creates a folder and its missing parents, all with mode 0700.
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

/// Implements `hexlist notify --install` and `--remove`.
private struct HookInstallation {
    private static let events = [
        "hex.received", "hex.held", "device.asked", "pairing.requested", "conflict.identity", "invitation.guessed",
        "list.offered", "list.ended", "list.resumed", "list.deleted", "list.stuck",
    ]
    /// A comment line in each hook, which shows that this command wrote it.
    private static let marker = "# Made by `hexlist notify --install`."

    let common: CommonOptions

    init(_ common: CommonOptions) { self.common = common }

    func install() async throws {
        let folder = common.paths.hookFolder
        try FileWriter.makeFolders(folder)
        let hook = """
            #!/bin/sh
            \(Self.marker) Delete this file to end the notifications.
            exec \(ShellText.quoted(NotifySend.ownPath)) notify

            """
        var (made, others): ([String], [String]) = ([], [])
        for event in Self.events {
            let path = HexlistPaths.join(folder, event)
            switch state(of: path) {
            case .missing, .own:
                try FileWriter.write(hook, to: path, mode: 0o755)
                made.append(event)
            case .foreign: others.append(path)
            }
        }
        let output = common.output
        if output.json {
            try output.object(InstalledJSON(installed: made, kept: others))
        } else if !made.isEmpty {
            try output.line("Notifications are on for \(made.joined(separator: ", ")) (\(folder)).")
        }
        try output.flush()
        if NotifySend.path == nil {
            StandardError.note("Nothing is shown until notify-send is installed: `sudo apt install libnotify-bin`.")
        }
        try await reload()
        guard others.isEmpty else {
            throw HexlistError(
                .badRequest, "You already have a hook: \(others.map { TerminalText.clean($0) }.joined(separator: ", ")).",
                hint: "It was not changed. To show notifications, call `hexlist notify` in it, with the event on standard input.")
        }
    }

    func remove() async throws {
        var removed: [String] = []
        for event in Self.events {
            let path = HexlistPaths.join(common.paths.hookFolder, event)
            guard state(of: path) == .own else { continue }
            guard unlink(path) == 0 else {
                throw HexlistError(.internal, "\(TerminalText.clean(path)) cannot be removed (\(SystemError.last)).")
            }
            removed.append(event)
        }
        let output = common.output
        if output.json {
            try output.object(RemovedJSON(removed: removed))
        } else {
            try output.line(removed.isEmpty ? "Nothing to remove." : "Notifications are off.")
        }
        try output.flush()
        if !removed.isEmpty { try await reload() }
    }

    private enum HookState { case missing, own, foreign }

    private func state(of path: String) -> HookState {
        switch Result(catching: { () throws(SmallFile.Fault) in try SmallFile.read(path, limit: 64 << 10) }) {
        case .failure(.missing): .missing
        case .success(let text) where text.contains(Self.marker): .own
        case .success, .failure: .foreign
        }
    }

    /// Makes a running daemon reload its configuration and hooks.
    private func reload() async throws {
        guard let status = try? await common.withClient({ try await $0.status() }) else { return }
        // If the daemon runs in a container, its process id may belong to another process here.
        let name = try? SmallFile.read("/proc/\(status.pid)/comm", limit: 64)
        if name?.hasPrefix("hexlistd") ?? false, kill(pid_t(status.pid), SIGHUP) == 0 { return }
        StandardError.note("To apply it now, reload hexlistd: `systemctl --user reload hexlistd` or `kill -HUP \(status.pid)`.")
    }
}

private struct RemovedJSON: Encodable, JSONEncodable {
    var removed: [String]
}

private struct InstalledJSON: Encodable, JSONEncodable {
    var installed: [String]
    /// The hooks written by the user, which are left unchanged.
    var kept: [String]
}
