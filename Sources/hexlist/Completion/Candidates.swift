import ArgumentParser
import Dispatch
import HexlistAPI
import HexlistClient
import HexlistModel
import Synchronization

/// A completion offered to the shell.
struct Candidate: Equatable {
    var word: String
    /// The description, shown by zsh and fish.
    var about: String

    /// The line for a shell; bash gets no description.
    func line(for shell: CompletionShell?) -> String {
        let about = TerminalText.clean(about, columns: 60)
        switch shell {
        case .some(.zsh) where !about.isEmpty: return "\(word):\(about)"
        case .some(.fish) where !about.isEmpty: return "\(word)\t\(about)"
        default: return word
        }
    }

    /// Whether a word is safe to offer: bash expands it (`compgen -W`), even `$(…)`, and inserts it unquoted. Peers with other names are
    /// offered as their short UUID.
    /// - Parameter shell: zsh and fish quote spaces themselves.
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

    /// A peer by its alias, which only the user chooses, else by its short UUID; `nil` for a ghost.
    init?(_ peer: PeerView) {
        guard peer.state != .ghost, let uuid = peer.uuid else { return nil }
        let isNamed = peer.alias.map { Self.isPlain($0) } ?? false
        self.init(word: isNamed ? peer.alias ?? "" : uuid.shortID, about: peer.label.shown(isNamed ? .full : .short, columns: 56))
    }

    /// A group by its name; `nil` for an unsafe name.
    /// - Parameter isMarked: whether to add `@`, in places that also accept peers.
    init?(_ group: GroupView, isMarked: Bool) {
        guard Self.isPlain(group.name) else { return nil }
        self.init(word: isMarked ? GroupName.marked(group.name) : group.name, about: GroupText.members(group))
    }

    /// A service with its colon; `nil` for an unsafe name.
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
    /// Known peers.
    static let peers = completion { client, _, _ in try await peers(client) }

    /// Peers, and groups of them as `@NAME`.
    static let recipients = completion { client, _, _ in
        // A daemon of an earlier version has no groups.
        let groups = (try? await client.groups()) ?? []
        return groups.compactMap { Candidate($0, isMarked: true) } + (try await peers(client))
    }

    /// Groups, with `@` if it was typed.
    static let groups = completion { client, typed, _ in
        try await client.groups().compactMap { Candidate($0, isMarked: GroupName.isMarked(typed)) }
    }

    /// Shares of this machine.
    static let shares = completion { client, _, _ in
        try await client.shares().filter { Candidate.isPlain($0.name) }.map { Candidate(word: $0.name, about: ShareText.audience($0)) }
    }

    /// Services with their colon. Paths are not completed: each Tab would query a peer.
    static let services = completion { client, _, _ in
        try await client.services().compactMap(Candidate.init)
    }

    /// The newest hexes of My Hexlist.
    static let mine = completion { client, _, _ in
        try await client.hexes(.init(location: "mine"), limit: Candidates.limit).items.map(Candidate.init)
    }

    private static func peers(_ client: HexlistClient) async throws -> [Candidate] {
        try await client.peers(all: true).compactMap(Candidate.init)
    }

    /// The newest hexes of the inbox, and held ones.
    static let hexes = completion { client, _, _ in try await hexes(client) }

    /// The newest hexes of the inbox and held ones, and services.
    static let fetchable = completion { client, _, _ in
        // A daemon of an earlier version has no services.
        let services = (try? await client.services()) ?? []
        return services.compactMap(Candidate.init) + (try await hexes(client))
    }

    private static func hexes(_ client: HexlistClient) async throws -> [Candidate] {
        let inbox = try await client.hexes(.init(location: "inbox"), limit: Candidates.limit).items
        return (inbox + (try await client.hexes(.init(location: "held"), limit: Candidates.limit).items)).map(Candidate.init)
    }

    /// The newest rows of the outbox that the command can change.
    static let outboxRows = completion { client, _, words in
        try await client.outbox(states: Candidates.states(words), newestFirst: true, limit: Candidates.limit).items.map(Candidate.init)
    }

    /// - Parameter look: receives the typed beginning of the word, and the command line.
    private static func completion(
        _ look: @escaping @Sendable (HexlistClient, _ typed: String, _ words: [String]) async throws -> [Candidate]
    ) -> CompletionKind {
        .custom { (words: [String], _: Int, typed: String) -> [String] in
            Candidates.fetched(words) { try await look($0, typed, words) }.map { $0.line(for: CompletionShell.requesting) }
        }
    }
}

enum Candidates {
    /// The states of rows that `outbox cancel` or `outbox retry` can change; empty for all.
    static func states(_ words: [String]) -> [OutboxState] {
        if words.contains("cancel") { return [.queued, .sending] }
        return words.contains("retry") ? [.queued, .sending, .rejected, .failed, .expired] : []
    }

    /// Maximum number of one kind: more than fit on a screen.
    static let limit = 100
    /// Maximum time Tab waits for the daemon.
    private static let timeout = DispatchTimeInterval.milliseconds(1_500)

    /// Queries the daemon; empty if it does not answer. Blocks, because swift-argument-parser completes synchronously.
    /// - Parameter words: the command line, for its `--socket` and `--state-dir`.
    fileprivate static func fetched(
        _ words: [String], _ look: @escaping @Sendable (HexlistClient) async throws -> [Candidate]
    ) -> [Candidate] {
        let found = Mutex<[Candidate]>([])
        let isDone = DispatchSemaphore(value: 0)
        let common = options(words)
        // The semaphore waits for this task; after a timeout the process ends.
        Task.detached {
            let candidates = (try? await common.withClient(look)) ?? []
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
