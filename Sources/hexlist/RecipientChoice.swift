import HexlistAPI
import HexlistClient
import HexlistModel

/// Finds the recipient of a `send` without --to: an argument that names a peer (`send bob LINK`, `send LINK bob`), or else the only trusted
/// peer.
struct RecipientChoice {
    enum Choice {
        /// The positional argument at this index names the peer.
        case word(Int, PeerView)
        case onlyTrusted(PeerView)
        case none(trusted: [PeerView])
    }

    /// The positional arguments of the command line.
    let words: [String]
    /// Whether an option gives something to send: --from, --file, --clipboard, --hex or --bulk.
    let hasOtherContent: Bool
    /// Whether `--raw` is given, so that paths are sent as links.
    let isRaw: Bool

    /// The indices of arguments that may name the peer, the last argument first. Excludes links and paths, and an argument that is the only
    /// thing to send.
    var candidates: [Int] {
        guard words.count > 1 || hasOtherContent, let last = words.indices.last else { return [] }
        return (last > 0 ? [last, 0] : [last]).filter { index in
            let word = words[index]
            return word != "-" && (isRaw || !FileArgument.isPath(word)) && LinkTextKind(word) != .link
        }
    }

    /// Whether something is left to send after one argument is taken as the recipient.
    var hasContent: Bool {
        guard !hasOtherContent, words.count == 1 else { return hasOtherContent || !words.isEmpty }
        return words[0] == "-" || isRaw || FileArgument.isPath(words[0]) || LinkTextKind(words[0]) != .other
    }

    func find(_ client: HexlistClient) async throws -> Choice {
        for index in candidates {
            if let peer = try? await client.peer(words[index]) { return .word(index, peer) }
        }
        let trusted = try await client.peers(all: true).filter { $0.trust == .trusted && $0.state != .ghost && $0.uuid != nil }
        return candidates.isEmpty && trusted.count == 1 ? .onlyTrusted(trusted[0]) : .none(trusted: trusted)
    }
}

/// The errors of a `send` for which no recipient was found or confirmed.
enum RecipientErrors {
    /// Maximum number of trusted peers listed in an error.
    private static let nameLimit = 8

    static func unknown(_ trusted: [PeerView]) -> HexlistError {
        let names = trusted.prefix(nameLimit).map { $0.label.shown(.named) } + (trusted.count > nameLimit ? ["…"] : [])
        return HexlistError(
            .badRequest, "Who should get it? --to PEER, or --to-all.",
            hint: names.isEmpty ? "More: `hexlist send --help`." : "Trusted: \(names.joined(separator: ", ")).")
    }

    /// Returns the error for an argument that names a peer, if there is no terminal on which to confirm the recipient.
    static func unconfirmed(_ word: String, arguments: [String]) -> HexlistError {
        HexlistError(
            .badRequest, "`\(TerminalText.clean(word, columns: 60))` is a peer: name it with --to.",
            hint: "Run: \(TerminalText.clean(line(to: word, removing: word, arguments), columns: 1_000))")
    }

    /// Returns the error if the only trusted peer would be the recipient, but there is no terminal on which to confirm it.
    static func unconfirmed(_ peer: PeerView, arguments: [String]) -> HexlistError {
        let name = peer.alias ?? peer.uuid?.shortID ?? peer.name
        return HexlistError(
            .badRequest, "Who should get it? Name the peer with --to.",
            hint: "Run: \(TerminalText.clean(line(to: name, removing: nil, arguments), columns: 1_000))")
    }

    /// Returns the command line with --to added.
    /// - Parameter word: the positional argument that --to replaces.
    static func line(to peer: String, removing word: String?, _ arguments: [String]) -> String {
        var words = Array(arguments.dropFirst())
        let verb = words.firstIndex(of: "send").map { $0 + 1 } ?? 0
        let index = words.indices.dropFirst(verb).last { index in
            guard words[index] == word else { return false }
            let before = words[index - 1]
            return !before.hasPrefix("-") || before.contains("=") || !Usage.takesValue(before, of: SendCommand.self)
        }
        if let index { words.remove(at: index) }
        words.insert(contentsOf: ["--to", peer], at: verb)
        return (["hexlist"] + words.map(ShellText.quoted)).joined(separator: " ")
    }
}
