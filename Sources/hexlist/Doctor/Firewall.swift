import Glibc
import HexlistAPI
import HexlistSystem

/// What stands between this machine's port and its network, as far as it may be read.
struct Firewall {
    /// The port of this machine's hexlistd.
    let port: Int
    /// A peer was seen to reach the port.
    let isReached: Bool
    /// Whether multicast DNS has to come in.
    let usesMulticast: Bool

    /// One packet and who decides about it.
    struct Finding {
        var packet: IncomingPacket
        var verdict: FilterChains.Verdict
        var manager: FirewallManager
        /// To be pasted, to let the packet in.
        var line: String
    }

    private let manager = FirewallManager.running()

    private var packets: [IncomingPacket] {
        let interfaces = MachineInterface.all().filter { $0.isUsed && !$0.isVirtual }.map { Optional($0.name) }
        return IncomingPacket.needed(port: port, interfaces: interfaces.isEmpty ? [nil] : interfaces, usesMulticast: usesMulticast)
    }

    func step() -> DoctorStep {
        guard let findings = readRules() ?? askManager() else {
            return Self.unreadable(manager, packets, hasNft: ProgramOutput.path(of: "nft") != nil, isReached: isReached)
        }
        guard !findings.isEmpty else { return DoctorStep("firewall", .ok, "No firewall: nothing filters what comes in.") }
        return Self.judged(findings, port: port, isReached: isReached)
    }

    // MARK: Judging

    static func judged(_ findings: [Finding], port: Int, isReached: Bool) -> DoctorStep {
        for verdict in [FilterChains.Verdict.blocked, .unsure] where !(verdict == .unsure && isReached) {
            let found = findings.filter { $0.verdict == verdict }
            guard !found.isEmpty else { continue }
            var (names, lines): ([String], [String]) = ([], [])
            for one in found where !lines.contains(one.line) { lines.append(one.line) }
            for one in found where !names.contains(one.manager.name) { names.append(one.manager.name) }
            if found.contains(where: { $0.manager == .none }) {
                lines.append(
                    "To keep it over a restart, put it where your rules are written down (/etc/nftables.conf, netfilter-persistent save).")
            }
            let (who, what) = (names.joined(separator: " and "), list(found.map(\.packet), of: findings.map(\.packet)))
            let several = names.count > 1
            return verdict == .blocked
                ? DoctorStep("firewall", .failed, "\(who) \(several ? "keep" : "keeps") \(what) out.", advice: lines)
                : DoctorStep(
                    "firewall", .warning,
                    "\(who) \(several ? "let" : "lets") \(what) in only for some: it depends on the sender, or on more than can be told here.",
                    advice: lines)
        }
        let note = findings.contains { $0.verdict != .open } ? ", at least for some: a peer reached the port" : ""
        let multicast = findings.contains { $0.packet.isMulticast } ? " and multicast DNS" : ""
        return DoctorStep("firewall", .ok, "\(findings[0].manager.name) lets TCP port \(port)\(multicast) in\(note).")
    }

    /// Ports, and what of them: only where the others of the same port are not meant.
    private static func list(_ packets: [IncomingPacket], of all: [IncomingPacket]) -> String {
        var texts: [String] = []
        for packet in packets {
            let of = { (list: [IncomingPacket]) in list.filter { $0.carrier == packet.carrier } }
            var notes: [String] = []
            if !of(packets).contains(where: { $0.isIPv6 != packet.isIPv6 }) { notes.append(packet.isIPv6 ? "IPv6" : "IPv4") }
            if let interface = packet.interface, !Set(of(all).map(\.interface)).isSubset(of: of(packets).map(\.interface)) {
                notes.append(interface)
            }
            let text = packet.text + (notes.isEmpty ? "" : " (\(notes.joined(separator: ", ")))")
            if !texts.contains(text) { texts.append(text) }
        }
        return texts.joined(separator: ", ")
    }

    /// - Parameter packets: of TCP at least one.
    static func unreadable(_ manager: FirewallManager, _ packets: [IncomingPacket], hasNft: Bool, isReached: Bool) -> DoctorStep {
        // What is advised is the same for each interface.
        let kinds = [false, true].compactMap { isMulticast in packets.first { $0.isMulticast == isMulticast } }
        let (what, advice): (String, [String])
        switch manager {
        case .firewalld:
            what = "firewalld runs; what it lets in cannot be read"
            advice = kinds.map { FirewallManager.firewalldLine($0, zone: "ZONE") } + ["sudo firewall-cmd --get-active-zones"]
        case .ufw:
            what = "ufw is enabled; only root can read its rules"
            advice = kinds.map(FirewallManager.ufwLine)
        case .none:
            what = "The kernel's packet filter can only be read by root"
            advice = [
                hasNft ? "sudo nft list ruleset" : "sudo iptables -S",
                hasNft
                    ? "If it keeps things out: sudo nft insert rule inet filter input tcp dport \(kinds[0].port) accept"
                    : "If it keeps things out: \(IptablesRules.line(for: kinds[0]))",
            ]
        }
        guard !isReached else { return DoctorStep("firewall", .ok, "\(what), but a peer reached the port.") }
        return DoctorStep("firewall", .warning, "\(what).", advice: advice)
    }

    // MARK: Reading

    /// - Returns: `nil` where there is no manager that may be asked.
    private func askManager() -> [Finding]? {
        guard manager == .firewalld else { return nil }
        var findings: [Finding] = []
        for packet in packets where !packet.isIPv6 {
            guard let zone = Firewalld.zone(of: packet.interface), let verdict = Firewalld.verdict(packet, zone: zone) else { return nil }
            let isSeen = verdict == .blocked && isReached && !packet.isMulticast  // by a service, or a rule of another kind
            for isIPv6 in [false, true] {
                var packet = packet
                packet.isIPv6 = isIPv6
                let line = FirewallManager.firewalldLine(packet, zone: zone)
                findings.append(Finding(packet: packet, verdict: isSeen ? .unsure : verdict, manager: .firewalld, line: line))
            }
        }
        return findings
    }

    /// - Returns: one for each packet and chain that sees it; `nil` where they may not be read.
    private func readRules() -> [Finding]? {
        var findings: [Finding] = []
        var wasRead = false
        var iptablesTables: Set<String> = []
        var nftTables: Set<String> = []
        var zones: [String?: String] = [:]
        let packets = packets
        /// By hand, or by whoever wrote the rule: other lines would be gone with its next change.
        func add(_ packet: IncomingPacket, _ verdict: FilterChains.Verdict, table: String?, line: String) {
            var finding = Finding(packet: packet, verdict: verdict, manager: .none, line: line)
            if manager.wrote(table: table, of: nftTables) {
                finding.manager = manager
                switch manager {
                case .firewalld:
                    let zone = zones[packet.interface] ?? Firewalld.zone(of: packet.interface) ?? "public"
                    zones[packet.interface] = zone
                    finding.line = FirewallManager.firewalldLine(packet, zone: zone)
                case .ufw: finding.line = FirewallManager.ufwLine(packet)
                case .none: break
                }
            }
            findings.append(finding)
        }
        if let output = ProgramOutput.run("nft", ["-j", "list", "ruleset"]), output.status == 0 {
            for packet in packets {
                guard let found = NftRules.findings(output.out, packet: packet) else { continue }
                wasRead = true
                for one in found {
                    // Made by iptables: it says more of its own rules.
                    if one.chain == "INPUT", one.family != "inet" {
                        iptablesTables.insert(one.family)
                    } else {
                        nftTables.insert(one.table)
                        add(packet, one.verdict, table: one.table, line: one.line(for: packet))
                    }
                }
            }
        }
        let nftWasRead = wasRead
        for isIPv6 in [false, true] {
            let name = isIPv6 ? "ip6tables" : "iptables"
            // Where nft was read, iptables is asked only for what it made (its new form) or what nft cannot see (its old one).
            let isNew = iptablesTables.contains(isIPv6 ? "ip6" : "ip")
            let program = isNew || !nftWasRead ? name : "\(name)-legacy"
            if nftWasRead, !isNew, Self.hasOldTables(isIPv6) == false { continue }
            guard let output = ProgramOutput.run(program, ["-S"]), output.status == 0 else { continue }
            wasRead = true
            let text = String(decoding: output.out, as: UTF8.self)
            for packet in packets where packet.isIPv6 == isIPv6 {
                let verdict = IptablesRules.verdict(text, packet: packet)
                add(packet, verdict, table: nil, line: IptablesRules.line(for: packet))
            }
        }
        return wasRead ? findings : nil
    }

    /// Whether iptables' old form is in use; `nil` where that may not be read.
    private static func hasOldTables(_ isIPv6: Bool) -> Bool? {
        let path = isIPv6 ? "/proc/net/ip6_tables_names" : "/proc/net/ip_tables_names"
        guard access(path, F_OK) == 0 else { return geteuid() == 0 ? false : nil }
        return SystemText.read(path).map { !$0.isEmpty }
    }
}
