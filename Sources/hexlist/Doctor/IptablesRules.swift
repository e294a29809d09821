/// What `iptables -S` says of a packet.
enum IptablesRules {
    static func verdict(_ text: String, packet: IncomingPacket) -> FilterChains.Verdict {
        var chains = FilterChains()
        var accepts = true
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            guard words.count >= 2 else { continue }
            switch words[0] {
            case "-P" where words[1] == "INPUT": accepts = words.last == "ACCEPT"
            case "-N": chains.rules[words[1]] = chains.rules[words[1]] ?? []
            case "-A": chains.rules[words[1], default: []].append(rule(words.dropFirst(2), packet))
            default: break
            }
        }
        chains.rules["INPUT"] = chains.rules["INPUT"] ?? []
        return chains.verdict(from: "INPUT", accepts: accepts)
    }

    /// Puts a rule before all others.
    static func line(for packet: IncomingPacket) -> String {
        "sudo \(packet.isIPv6 ? "ip6tables" : "iptables") -I INPUT -p \(packet.carrier.rawValue) --dport \(packet.port) -j ACCEPT"
    }

    /// Matches that say nothing by themselves.
    private static let quiet = ["tcp", "udp", "multiport", "conntrack", "state", "comment", "addrtype"]

    private static func rule(_ words: ArraySlice<String>, _ packet: IncomingPacket) -> FilterRule {
        var rule = FilterRule(match: .yes, action: .none)
        var words = words
        var isInverted = false
        while let word = words.popFirst() {
            guard word != "!" else {
                isInverted = true
                continue
            }
            var match = RuleMatch.maybe
            switch word {
            case "-j", "-g":
                let target = words.popFirst() ?? ""
                rule.action = word == "-g" ? .goto(target) : action(target)
                // What follows a target are its options.
                return rule
            case "-m":
                let name = words.popFirst() ?? ""
                // Of others than these it is not known what they match; an ordinary packet has no routing header.
                match = quiet.contains(name) ? .yes : name == "rt" ? .no : .maybe
            case "--comment": match = skipText(&words)
            case "-p": match = RuleMatch(words.popFirst() == packet.carrier.rawValue)
            case "-i": match = packet.comesIn(on: words.popFirst() ?? "", wildcard: "+")
            case "-d":
                let parts = (words.popFirst() ?? "").split(separator: "/")
                match = packet.goes(to: parts.first.map(String.init) ?? "", length: parts.count == 2 ? Int(parts[1]) : nil)
            case "--dst-type": match = any(words.popFirst() ?? "") { packet.goes(toType: $0) }
            case "--dport", "--dports": match = ports(words.popFirst() ?? "", packet.port)
            case "--ctstate", "--state": match = RuleMatch((words.popFirst() ?? "").split(separator: ",").contains("NEW"))
            default: if words.first?.hasPrefix("-") == false { _ = words.popFirst() }
            }
            rule.match = rule.match && (isInverted ? !match : match)
            isInverted = false
        }
        return rule
    }

    private static func action(_ target: String) -> FilterRule.Action {
        switch target {
        case "ACCEPT": .accept
        case "DROP", "REJECT": .drop
        case "RETURN": .return
        case "LOG", "NFLOG", "MARK", "CONNMARK": .none
        case "QUEUE", "NFQUEUE": .unknown
        default: .jump(target)
        }
    }

    /// One of a list with commas.
    private static func any(_ text: String, _ test: (String) -> RuleMatch) -> RuleMatch {
        let found = text.split(separator: ",").map { test(String($0)) }
        return found.contains(.yes) ? .yes : found.contains(.maybe) ? .maybe : .no
    }

    /// `22,80,1000:2000`
    private static func ports(_ text: String, _ wanted: Int) -> RuleMatch {
        var found = RuleMatch.no
        for part in text.split(separator: ",") {
            let ends = part.split(separator: ":", omittingEmptySubsequences: false).map { Int($0) }
            switch ends.count {
            case 1: if ends[0] == wanted { found = .yes }
            case 2: if (ends[0] ?? 0) <= wanted, wanted <= (ends[1] ?? 65_535) { found = .yes }
            default: return .maybe
            }
        }
        return found
    }

    /// A comment in quotation marks.
    private static func skipText(_ words: inout ArraySlice<String>) -> RuleMatch {
        guard let first = words.popFirst(), first.hasPrefix("\""), !first.hasSuffix("\"") || first.utf8.count == 1 else { return .yes }
        while let word = words.popFirst(), !word.hasSuffix("\"") {}
        return .yes
    }
}
