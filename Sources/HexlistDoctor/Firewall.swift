internal import HexlistAPI
internal import HexlistSystem

/// The firewall that is active on this machine, and the lines that let Hexlist's ports in.
///
/// Rules are not evaluated, because they depend on sender, rate and state. Other checks find out whether a port is reachable.
enum Firewall: Equatable, Sendable {
    /// firewalld, with the zones of the network interfaces; empty if this user may not query them.
    case firewalld(zones: [String])
    case ufw
    /// Rules made by hand or by another program, with the chains that filter incoming packets; empty if nothing is filtered.
    case rules([InputChain])
    /// The rules of the kernel can only be read by root.
    case unreadable(hasNft: Bool)

    // MARK: Detection

    /// Finds out which firewall is active.
    /// - Parameter variables: the environment variables of the process.
    static func inForce(_ variables: [String: String]) async -> Firewall {
        func ask(_ name: String, _ arguments: String...) async -> String? {
            guard let path = Program.path(ofSystem: name) else { return nil }
            var program = Program(path, arguments)
            program.dropsErrors = true  // the output is parsed as rules, so warnings are dropped
            guard let answer = await program.answer(variables), answer.status == 0 else { return nil }
            return answer.text
        }
        if await ask("firewall-cmd", "--state") != nil {
            let names = MachineInterface.all().filter { $0.isUsed && !$0.isVirtual }.map(\.name)
            var zones: [String] = []
            for name in names {
                var zone = await ask("firewall-cmd", "--get-zone-of-interface=\(name)").flatMap(word)
                if zone == nil { zone = await ask("firewall-cmd", "--get-default-zone").flatMap(word) }
                if let zone, !zones.contains(zone) { zones.append(zone) }
            }
            return .firewalld(zones: zones)
        }
        let ufw = (try? SmallFile.read("/etc/ufw/ufw.conf", limit: 64 << 10)) ?? ""
        if ufw.split(separator: "\n").contains("ENABLED=yes") { return .ufw }
        let nft = await ask("nft", "list", "ruleset")
        var chains = nft.map(InputChain.nft)
        for (name, tables) in [("iptables", "ip_tables_names"), ("ip6tables", "ip6_tables_names")] {
            // nft also lists rules of iptables-nft. Legacy iptables is queried only if it is in use.
            let old = try? SmallFile.read("/proc/net/\(tables)", limit: 4 << 10)
            guard nft == nil || old?.isEmpty == false, let text = await ask(nft == nil ? name : "\(name)-legacy", "-S", "INPUT") else {
                continue
            }
            chains = (chains ?? []) + (InputChain.filters(iptables: text) ? [.iptables(name)] : [])
        }
        return chains.map(Firewall.rules) ?? .unreadable(hasNft: Program.path(ofSystem: "nft") != nil)
    }

    /// Returns the last word of an output. Programs in Python may print a warning before it.
    private static func word(_ text: String) -> String? { text.split(whereSeparator: \.isWhitespace).last.map(String.init) }

    // MARK: Reporting

    /// Makes the step `firewall`.
    /// - Parameters:
    ///   - needed: all ports that have to be reachable.
    ///   - unseen: the ports among them that no other check has shown to be reachable.
    func step(needed: [IncomingPort], unseen: [IncomingPort]) -> DoctorStep {
        let what: String
        switch self {
        case .firewalld: what = "firewalld is active"
        case .ufw: what = "ufw is active"
        case .rules([]): return DoctorStep("firewall", .ok, "No firewall filters incoming connections.")
        case .rules(let chains): what = "Incoming connections are filtered by \(chains.map(\.name).joined(separator: ", "))"
        case .unreadable: what = "The kernel's packet filter can only be read by root"
        }
        let list = { (ports: [IncomingPort]) in ports.map(\.text).joined(separator: ", ") }
        guard !unseen.isEmpty else {
            return DoctorStep("firewall", .ok, "\(what), but \(list(needed)) \(needed.count == 1 ? "was" : "were") seen to be reached.")
        }
        return DoctorStep(
            "firewall", .warning, "\(what), and \(list(unseen)) \(unseen.count == 1 ? "was" : "were") not seen to be reached.",
            advice: lines(for: unseen))
    }

    /// The commands that open the ports.
    func lines(for ports: [IncomingPort]) -> [String] {
        switch self {
        case .firewalld(let zones):
            let lines = (zones.isEmpty ? ["ZONE"] : zones).flatMap { zone in
                ports.map { port in
                    // This change takes effect at once, and permanently.
                    let change =
                        "--zone=\(zone) "
                        + (port == .multicast ? "--add-service=mdns" : "--add-port=\(port.number)/\(port.carrier.rawValue)")
                    return "sudo firewall-cmd \(change) && sudo firewall-cmd --permanent \(change)"
                }
            }
            return lines + (zones.isEmpty ? ["sudo firewall-cmd --get-active-zones"] : [])
        // The rules are inserted before the user's other rules, which may deny more.
        case .ufw: return ports.map { "sudo ufw prepend allow \($0.number)/\($0.carrier.rawValue)" }
        case .rules(let chains):
            return ports.flatMap { port in chains.map { $0.line(for: port) } } + [
                "To keep the rule after a restart, save it (/etc/nftables.conf, netfilter-persistent save)."
            ]
        case .unreadable(let hasNft):
            let chain = hasNft ? InputChain.nft(family: "inet", table: "filter", chain: "input") : .iptables("iptables")
            return [hasNft ? "sudo nft list ruleset" : "sudo iptables -S"]
                + ports.map { "If it blocks connections: \(chain.line(for: $0))" }
        }
    }
}
