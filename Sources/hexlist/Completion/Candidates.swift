import ArgumentParser
import Dispatch
import HexlistAPI
import HexlistClient
import HexlistModel
import Synchronization

/// A word that the shell offers as a completion.
struct Candidate: Equatable {
    var word: String
    /// The description, which zsh and fish show.
    var about: String

    /// Returns the line to print for a shell. Bash does not support descriptions.
    func line(for shell: CompletionShell?) -> String {
        let about = TerminalText.clean(about, columns: 60)
        switch shell {
        case .some(.zsh) where !about.isEmpty: return "\(word):\(about)"
        case .some(.fish) where !about.isEmpty: return "\(word)\t\(about)"
        default: return word
        }
    }

    /// Whether a word is safe to offer. Bash expands the words that a completion returns (`compgen -W`), even `$(…)`, and inserts the
    /// chosen one without quotes. A peer whose name is not safe is offered as its short UUID.
    /// - Parameter shell: zsh and fish quote spaces themselves, so words with spaces are safe there.
    static func isPlain(_ word: String, in shell: CompletionShell? = CompletionShell.requesting) -> Bool {
        guard !word.isEmpty, word.utf8.count <= 64, word.utf8.first != UInt8(ascii: "-") else { return false }
        let hasQuoting = shell == .zsh || shell == .fish
        return word.unicodeScalars.allSatisfy { scalar in
            switch scalar.value {
            case 0x20: hasQuoting
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
            case 0x80...: scalar.properties.isAlphabetic && TerminalText.isShown(scalar)
            default: false
            }
        }
    }

    /// Creates a candidate for a peer: its alias, which only the user can choose, or else its short UUID. Returns `nil` for a ghost.
    /// - Parameter shell: see `isPlain`.
    init?(_ peer: PeerView, in shell: CompletionShell? = CompletionShell.requesting) {
        guard peer.state != .ghost, let uuid = peer.uuid else { return nil }
        let isNamed = peer.alias.map { Self.isPlain($0, in: shell) } ?? false
        self.init(word: isNamed ? peer.alias ?? "" : uuid.shortID, about: peer.label.shown(isNamed ? .full : .short, columns: 56))
    }

    /// Creates a candidate for a group; `nil` if its name is not safe.
    /// - Parameters:
    ///   - isMarked: whether to add `@`, which arguments that also accept peers require.
    ///   - shell: see `isPlain`.
    init?(_ group: GroupView, isMarked: Bool, in shell: CompletionShell? = CompletionShell.requesting) {
        guard Self.isPlain(group.name, in: shell) else { return nil }
        self.init(word: isMarked ? GroupName.marked(group.name) : group.name, about: GroupText.members(group))
    }

    /// Creates a candidate for a service, with the colon after its name; `nil` if its name is not safe.
    init?(_ service: ServiceView) {
        guard Self.isPlain(service.name) else { return nil }
        self.init(word: service.name + ":", about: service.usable ? service.kind.text : service.why ?? "")
    }

    init(_ hex: HexJSON) {
        self.init(word: String(hex.id), about: HexText.subject(hex))
    }

    init(_ row: OutboxView) {
        self.init(word: String(row.outboxID), about: "\(row.state.rawValue), \(row.subject ?? "")")
    }

    init(word: String, about: String) { (self.word, self.about) = (word, about) }
}

extension CompletionKind {
    /// Completes known peers.
    static let peers = completion { client, _, _ in try await peers(client) }

    /// Completes peers, and groups as `@NAME`.
    static let recipients = completion { client, _, _ in
        // A daemon of an earlier version does not support groups.
        let groups = (try? await client.groups()) ?? []
        return groups.compactMap { Candidate($0, isMarked: true) } + (try await peers(client))
    }

    /// Completes groups. Adds `@` if the user typed it.
    static let groups = completion { client, typed, _ in
        try await client.groups().compactMap { Candidate($0, isMarked: GroupName.isMarked(typed)) }
    }

    /// Completes shares of this machine.
    static let shares = completion { client, _, _ in
        try await client.shares().filter { Candidate.isPlain($0.name) }.map { Candidate(word: $0.name, about: ShareText.audience($0)) }
    }

    /// Completes services, with the colon after the name. Paths are not completed, because each Tab would send a request to a peer.
    static let services = completion { client, _, _ in
        try await client.services().compactMap { Candidate($0) }
    }

    /// Completes the newest hexes of My Hexlist.
    static let mine = completion { client, _, _ in
        try await client.hexes(.init(location: "mine"), limit: Candidates.limit).items.map(Candidate.init)
    }

    /// Completes the newest deleted hexes.
    static let binned = completion { client, _, _ in
        try await client.binnedHexes(limit: Candidates.limit).items.map { Candidate(word: String($0.id), about: $0.subject) }
    }

    /// Completes the newest hexes of My Hexlist, and deleted ones.
    static let mineAndDeleted = completion { client, _, _ in
        let mine = try await client.hexes(.init(location: "mine"), limit: Candidates.limit).items.map { Candidate($0) }
        let binned = try await client.binnedHexes(limit: Candidates.limit).items
        return mine + binned.map { Candidate(word: String($0.id), about: "deleted: \($0.subject)") }
    }

    /// Completes the newest changes of My Hexlist that can be undone.
    static let mineChanges = completion { client, _, _ in
        try await client.mineLog(limit: Candidates.limit).items.filter(\.undoable).map {
            Candidate(word: String($0.number), about: MineHistoryText.change($0))
        }
    }

    /// Completes the newest items of the trash.
    static let trashed = completion { client, _, _ in
        try await client.mineTrash(limit: Candidates.limit).items.map {
            Candidate(word: String($0.number), about: MineHistoryText.title($0))
        }
    }

    /// Completes the user's other machines.
    static let ownMachines = completion { client, _, _ in
        try await client.peers(all: true).filter(\.own).compactMap { Candidate($0) }
    }

    /// Completes peers that are no own machines.
    static let otherPeers = completion { client, _, _ in
        try await client.peers(all: true).filter { !$0.own }.compactMap { Candidate($0) }
    }

    /// Completes the hexes that others offer to share.
    static let sharedHexOffers = completion { client, _, _ in
        try await client.sharedHexes().openOffers.prefix(Candidates.limit).map {
            Candidate(word: String($0.number), about: SharingText.offer($0))
        }
    }

    private static func peers(_ client: HexlistClient) async throws -> [Candidate] {
        try await client.peers(all: true).compactMap { Candidate($0) }
    }

    /// Completes the newest hexes of the inbox, and held ones.
    static let hexes = completion { client, _, _ in try await hexes(client) }

    /// Completes the newest hexes of the inbox, held ones, and services.
    static let fetchable = completion { client, _, _ in
        // A daemon of an earlier version does not support services.
        let services = (try? await client.services()) ?? []
        return services.compactMap { Candidate($0) } + (try await hexes(client))
    }

    private static func hexes(_ client: HexlistClient) async throws -> [Candidate] {
        let inbox = try await client.hexes(.init(location: "inbox"), limit: Candidates.limit).items
        return (inbox + (try await client.hexes(.init(location: "held"), limit: Candidates.limit).items)).map(Candidate.init)
    }

    /// Completes the newest outbox rows that the typed command can change.
    static let outboxRows = completion { client, _, words in
        try await client.outbox(states: Candidates.states(words), newestFirst: true, limit: Candidates.limit).items.map(Candidate.init)
    }

    /// Creates a completion that queries the daemon.
    /// - Parameter fetch: returns the candidates, given the typed part of the word and the command line.
    private static func completion(
        _ fetch: @escaping @Sendable (HexlistClient, _ typed: String, _ words: [String]) async throws -> [Candidate]
    ) -> CompletionKind {
        .custom { (words: [String], _: Int, typed: String) -> [String] in
            Candidates.fetched(words) { try await fetch($0, typed, words) }.map { $0.line(for: CompletionShell.requesting) }
        }
    }
}

enum Candidates {
    /// Returns the states of the rows that the command can change, for `outbox cancel` and `outbox retry`; empty for all states.
    static func states(_ words: [String]) -> [OutboxState] {
        if words.contains("cancel") { return [.queued, .sending] }
        return words.contains("retry") ? [.queued, .sending, .rejected, .failed, .expired] : []
    }

    /// Maximum number of candidates of one kind. More would not fit on a screen.
    static let limit = 100
    /// Maximum time that a press of Tab waits for the daemon.
    private static let timeout = DispatchTimeInterval.milliseconds(1_500)

    /// Queries the daemon. Returns no candidates if it does not answer in time. Blocks the thread, because swift-argument-parser requires a
    /// synchronous result.
    /// - Parameter words: the command line, which may contain `--socket` and `--state-dir`.
    fileprivate static func fetched(
        _ words: [String], _ fetch: @escaping @Sendable (HexlistClient) async throws -> [Candidate]
    ) -> [Candidate] {
        let found = Mutex<[Candidate]>([])
        let isDone = DispatchSemaphore(value: 0)
        let common = options(words)
        // The semaphore below waits for this task. After a timeout the process ends while the task still runs.
        Task.detached {
            let candidates = (try? await common.withClient(fetch)) ?? []
            found.withLock { $0 = candidates }
            isDone.signal()
        }
        _ = isDone.wait(timeout: .now() + timeout)
        return found.withLock { $0 }
    }

    private static func options(_ words: [String]) -> CommonOptions {
        var arguments: [String] = []
        for (word, value) in zip(words, words.dropFirst()) where word == "--socket" || word == "--state-dir" {
            arguments += [word, value]
        }
        return (try? CommonOptions.parse(arguments)) ?? CommonOptions()
    }
}
