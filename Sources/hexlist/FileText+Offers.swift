import HexlistAPI
import HexlistJSON
import HexlistModel

// Texts about files that a hex offers.
extension FileText {
    /// Returns the name of the file that a link to a file leads to.
    static func name(of url: String) -> String {
        let last = Array(url.utf8.reversed().prefix { $0 != UInt8(ascii: "/") }.reversed())
        return PercentEncoding.decode(bytes: last[...]) ?? String(decoding: last, as: UTF8.self)
    }

    /// Returns a number of files with their size: `3 files, 1.5 MiB`.
    static func size(_ count: Int, _ bytes: Int64) -> String {
        "\(HumanText.grouped(count)) \(count == 1 ? "file" : "files"), \(ByteCountText.of(bytes))"
    }

    /// Returns the reason why an offered file can no longer be fetched.
    static func problem(_ word: ForwardCompatibleEnum<OfferProblem>) -> String {
        switch word.known {
        case .changed: "changed since it was sent"
        case .missing: "deleted or moved since it was sent"
        case .notAllowed: "no longer readable"
        case nil: "changed: \(word)"
        }
    }

    /// Returns the number of fetched files and the last failure: `1 of 3 files fetched; talk.pdf changed since it was sent`. Empty if there
    /// is nothing to add to the state of the files.
    static func progress(_ files: OutboxFiles) -> String {
        var parts: [String] = []
        if files.state.known != .fetched, files.fetched > 0 {
            parts.append("\(files.fetched) of \(HumanText.count(files.count, "file", "files")) fetched")
        }
        if files.state.known == .offered, files.failed > 0 {
            let reason = files.problem.map(problem) ?? "changed since it was sent"
            let name = TerminalText.clean(files.failedName ?? "a file", columns: 60)
            let others = files.failed > 1 ? " (and \(files.failed - 1) more)" : ""
            parts.append("\(name)\(others) \(reason): send it again")
        }
        return parts.joined(separator: "; ")
    }
}

/// The word for the state of an outbox row. A delivered hex with files has the state of its files, because the files themselves were not
/// delivered with it.
struct OutboxStateText {
    let word: String
    let style: Terminal.Style

    init(_ row: OutboxRowExplanation) {
        guard row.state == .stored, !row.isDelivered, let files = row.files else {
            (word, style) = (row.isDelivered ? "delivered" : row.state.rawValue, row.state.style)
            return
        }
        word = TerminalText.clean(files.state.text, columns: 20)
        style =
            switch files.state.known {
            case .fetched: .good
            case .offered: files.failed > 0 ? .failure : .doubtful
            case .expired, .withdrawn, nil: .faint
            }
    }

    var cell: Table.Cell { Table.Cell(word, style) }
}

/// Advice after a send of files.
enum FileAdvice {
    /// Returns the lines of advice: one for all trusted recipients together, and one for each other recipient of the hex.
    /// - Parameter areCopied: whether Hexlist has copies of the files, so that the originals may change.
    static func of(_ outcomes: [SendOutcome], areCopied: Bool) -> [String] {
        let offered = outcomes.filter { $0.files?.state.known == .offered }.map(OutboxRowExplanation.init)
        let able = offered.filter { $0.fileAdvice == nil }
        var advice = offered.compactMap(\.fileAdvice)
        if let first = able.first {
            let who = able.count == 1 ? "\(first.peer) fetches" : "They fetch"
            let file = first.files?.count == 1 ? "the file" : "the files"
            advice.insert(
                areCopied
                    ? "\(who) \(file) from here: keep this machine on until then. Hexlist has a copy, so \(file) may change."
                    : "\(who) \(file) from here: keep this machine on and \(file) unchanged until then.", at: 0)
        }
        return advice
    }
}
