/// Whether a rule is for a packet. What depends on things nobody can know here (its sender, a rate) may be.
enum RuleMatch: Sendable, Equatable {
    case yes, no, maybe

    static func && (left: RuleMatch, right: RuleMatch) -> RuleMatch {
        if left == .no || right == .no { return .no }
        return left == .yes && right == .yes ? .yes : .maybe
    }

    static prefix func ! (match: RuleMatch) -> RuleMatch {
        switch match {
        case .yes: .no
        case .no: .yes
        case .maybe: .maybe
        }
    }

    init(_ isYes: Bool) { self = isYes ? .yes : .no }
}

/// One rule, judged for one packet.
struct FilterRule: Sendable, Equatable {
    enum Action: Sendable, Equatable {
        case accept, drop, `return`
        case jump(String), goto(String)
        /// Not known here: it may accept, or drop.
        case unknown
        /// Counts, logs.
        case none
    }

    var match: RuleMatch
    var action: Action
}

/// The chains of one table, judged for one packet.
struct FilterChains: Sendable {
    /// What the packet meets in the end.
    enum Verdict: Sendable, Equatable {
        case open, blocked
        /// Depends on what cannot be known here.
        case unsure
    }

    var rules: [String: [FilterRule]] = [:]
    /// A jump deeper than this is not followed; the kernel allows 16.
    private static let depth = 16

    /// - Parameter accepts: what becomes of a packet no rule decides.
    func verdict(from chain: String, accepts: Bool) -> Verdict {
        var doubt = Doubt()
        let accepted = walk(chain, depth: 0, &doubt) ?? accepts
        if accepted { return doubt.mayDrop ? .unsure : .open }
        return doubt.mayAccept ? .unsure : .blocked
    }

    private struct Doubt {
        var mayAccept = false
        var mayDrop = false
    }

    /// - Returns: `nil` where the chain ends without a decision.
    private func walk(_ chain: String, depth: Int, _ doubt: inout Doubt) -> Bool? {
        guard depth <= Self.depth, let rules = rules[chain] else {
            doubt = Doubt(mayAccept: true, mayDrop: true)
            return nil
        }
        for rule in rules where rule.match != .no {
            let isSure = rule.match == .yes
            switch rule.action {
            case .none: continue
            case .accept:
                if isSure { return true }
                doubt.mayAccept = true
            case .drop:
                if isSure { return false }
                doubt.mayDrop = true
            case .unknown: doubt = Doubt(mayAccept: true, mayDrop: true)
            case .return:
                if isSure { return nil }
                doubt = Doubt(mayAccept: true, mayDrop: true)
            case .jump(let target), .goto(let target):
                if let decided = walk(target, depth: depth + 1, &doubt) {
                    if isSure { return decided }
                    if decided { doubt.mayAccept = true } else { doubt.mayDrop = true }
                } else if case .goto = rule.action {
                    if isSure { return nil }
                    doubt = Doubt(mayAccept: true, mayDrop: true)
                }
            }
        }
        return nil
    }
}
