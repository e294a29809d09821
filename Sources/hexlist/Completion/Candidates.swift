import ArgumentParser
import Dispatch
import HexlistAPI
import HexlistClient
import HexlistModel
import Synchronization

/// A word that a shell may complete to.
struct Candidate: Equatable {
    var word: String
    /// Shown beside the word by shells that can.
    var about: String

    /// The line for a shell. bash shows no descriptions.
    func line(for shell: CompletionShell?) -> String {
        let about = TerminalText.clean(about, columns: 60)
        switch shell {
        case .some(.zsh) where !about.isEmpty: return "\(word):\(about)"
        case .some(.fish) where !about.isEmpty: return "\(word)\t\(about)"
        default: return word
        }
    }

    /// Whether a word may be offered: bash expands what it is offered (`compgen -W`), even `$(…)`, and puts it on the command line without
    /// quotes. Names with other characters are offered as their short UUID.
    static func isPlain(_ word: String) -> Bool {
        guard !word.isEmpty, word.utf8.count <= 64, word.utf8.first != UInt8(ascii: "-") else { return false }
        return word.unicodeScalars.allSatisfy { scalar in
            switch scalar.value {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
            case 0x80...: scalar.properties.isAlphabetic && TerminalText.isShown(scalar)
            default: false
            }
        }
    }

    /// A peer by its alias, which only this machine's user gives, else by its short UUID; `nil` for a ghost.
    init?(_ peer: PeerView) {
        guard peer.state != .ghost, let uuid = peer.uuid else { return nil }
        let isNamed = peer.alias.map(Self.isPlain) ?? false
        self.init(word: isNamed ? peer.alias ?? "" : uuid.shortID, about: peer.label.shown(isNamed ? .full : .short, columns: 56))
    }

    /// A group by its name; `nil` for a name that a shell may read as something else.
    /// - Parameter isMarked: whether it stands where a peer may stand too.
    init?(_ group: GroupView, isMarked: Bool) {
        guard Self.isPlain(group.name) else { return nil }
        self.init(word: isMarked ? GroupName.marked(group.name) : group.name, about: GroupText.members(group))
    }

    /// A service with its colon; `nil` for a name that a shell may read as something else.
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
    /// The peers that are known.
    static let peers = completion { client, _ in try await peers(client) }

    /// Peers, and groups of them as `@NAME`.
    static let recipients = completion { client, _ in
        // A daemon of an earlier version has no groups.
        let groups = (try? await client.groups()) ?? []
        return groups.compactMap { Candidate($0, isMarked: true) } + (try await peers(client))
    }

    /// Groups, with the mark where one was typed.
    static let groups = completion { client, typed in
        try await client.groups().compactMap { Candidate($0, isMarked: GroupName.isMarked(typed)) }
    }

    /// Shares of this machine.
    static let shares = completion { client, _ in
        try await client.shares().filter { Candidate.isPlain($0.name) }.map { Candidate(word: $0.name, about: ShareText.audience($0)) }
    }

    /// Services with their colon. Paths are not completed: a peer would be asked at each key.
    static let services = completion { client, _ in
        try await client.services().compactMap(Candidate.init)
    }

    /// The newest hexes of My Hexlist.
    static let mine = completion { client, _ in
        try await client.hexes(.init(location: "mine"), limit: Candidates.most).items.map(Candidate.init)
    }

    private static func peers(_ client: HexlistClient) async throws -> [Candidate] {
        try await client.peers(all: true).compactMap(Candidate.init)
    }

    /// The newest hexes of the inbox, and those that are held.
    static let hexes = completion { client, _ in try await hexes(client) }

    /// The newest hexes of the inbox and held ones, and services.
    static let fetchable = completion { client, _ in
        // A daemon of an earlier version has no services.
        let services = (try? await client.services()) ?? []
        return services.compactMap(Candidate.init) + (try await hexes(client))
    }

    private static func hexes(_ client: HexlistClient) async throws -> [Candidate] {
        let inbox = try await client.hexes(.init(location: "inbox"), limit: Candidates.most).items
        return (inbox + (try await client.hexes(.init(location: "held"), limit: Candidates.most).items)).map(Candidate.init)
    }

    /// The newest rows of the outbox.
    static let outboxRows = completion { client, _ in
        try await client.outbox(limit: Candidates.most).items.map(Candidate.init)
    }

    /// - Parameter look: takes what was typed of the word.
    private static func completion(
        _ look: @escaping @Sendable (HexlistClient, _ typed: String) async throws -> [Candidate]
    ) -> CompletionKind {
        .custom { (words: [String], _: Int, typed: String) -> [String] in
            Candidates.asked(words) { try await look($0, typed) }.map { $0.line(for: CompletionShell.requesting) }
        }
    }
}

enum Candidates {
    /// The most of one kind: more than fit on a screen.
    static let most = 100
    /// How long somebody who pressed Tab waits for a daemon that does not answer.
    private static let patience = DispatchTimeInterval.milliseconds(1_500)

    /// What the daemon knows; nothing if it does not answer. Blocks: the argument parser completes before the command runs.
    /// - Parameter words: the command line that is completed, of which `--socket` and `--state-dir` count.
    fileprivate static func asked(
        _ words: [String], _ look: @escaping @Sendable (HexlistClient) async throws -> [Candidate]
    ) -> [Candidate] {
        let found = Mutex<[Candidate]>([])
        let isDone = DispatchSemaphore(value: 0)
        let common = options(words)
        // Awaited by the semaphore; where that gives up, the process ends.
        Task.detached {
            let candidates = (try? await common.withClient(look)) ?? []
            found.withLock { $0 = candidates }
            isDone.signal()
        }
        _ = isDone.wait(timeout: .now() + patience)
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
