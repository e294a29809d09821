/// A chain of the kernel's packet filter that processes incoming packets, and has a rule or drops packets by default.
enum InputChain: Equatable, Sendable {
    case nft(family: String, table: String, chain: String)
    /// The `INPUT` chain of `iptables` or `ip6tables`.
    case iptables(String)

    /// The name, such as `inet filter input` or `iptables`.
    var name: String {
        switch self {
        case .nft(let family, let table, let chain): "\(family) \(table) \(chain)"
        case .iptables(let program): program
        }
    }

    /// Returns the command that inserts a rule for a port before all other rules of the chain.
    func line(for port: IncomingPort) -> String {
        switch self {
        case .nft: "sudo nft insert rule \(name) \(port.carrier.rawValue) dport \(port.number) accept"
        case .iptables(let program): "sudo \(program) -I INPUT -p \(port.carrier.rawValue) --dport \(port.number) -j ACCEPT"
        }
    }

    /// Finds the chains that filter incoming packets, in order. Chains made by iptables are returned as `iptables`.
    /// - Parameter text: the output of `nft list ruleset`.
    static func nft(_ text: String) -> [InputChain] {
        var found: [InputChain] = []
        var table = (family: "", name: "")
        var chain: (name: String, isInput: Bool, filters: Bool)?
        for line in text.split(separator: "\n") {
            let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
            switch (words.first, words.last) {
            case ("table"?, "{"?) where words.count == 4: table = (words[1], words[2])
            case ("chain"?, "{"?) where words.count == 3: chain = (words[1], false, false)
            case ("}"?, _):
                if let chain, chain.isInput, chain.filters, ["inet", "ip", "ip6"].contains(table.family) {
                    let isOfIptables = chain.name == "INPUT" && table.family != "inet"
                    found.append(
                        isOfIptables
                            ? .iptables(table.family == "ip" ? "iptables" : "ip6tables")
                            : .nft(family: table.family, table: table.name, chain: chain.name))
                }
                chain = nil
            case ("type"?, _) where line.contains(" hook "):
                guard line.contains("type filter hook input") else { continue }
                chain?.isInput = true
                chain?.filters = line.contains("policy drop")
            case (nil, _): continue
            default: chain?.filters = true
            }
        }
        return found
    }

    /// Whether the chain `INPUT` has a rule, or drops packets by default.
    /// - Parameter text: the output of `iptables -S INPUT`.
    static func filters(iptables text: String) -> Bool { text.split(separator: "\n").contains { $0 != "-P INPUT ACCEPT" } }
}
