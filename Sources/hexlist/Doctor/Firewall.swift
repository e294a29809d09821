import Glibc
import HexlistAPI

/// What stands between this machine's port and its network, as far as it may be read.
struct Firewall {
    /// The port of this machine's hexlistd.
    let port: Int
    /// A peer was seen to reach the port.
    let isReached: Bool

    private var packets: [IncomingPacket] {
        [IncomingPacket.Carrier.tcp, .udp].flatMap { carrier in
            [false, true].map { IncomingPacket(carrier: carrier, port: carrier == .tcp ? port : 5_353, isIPv6: $0) }
        }
    }

    func step() -> DoctorStep {
        if Self.isFirewalldRunning { return firewalld() }
        if Self.isUFWEnabled { return ufw() }
        return rules()
    }

    // MARK: Programs that manage rules

    private static var isFirewalldRunning: Bool {
        ProgramOutput.run("firewall-cmd", ["--state"]).map { $0.status == 0 } ?? false
    }

    private func firewalld() -> DoctorStep {
        let advice = ["sudo firewall-cmd --permanent --add-port=\(port)/tcp --add-service=mdns && sudo firewall-cmd --reload"]
        let queries = [["--query-port=\(port)/tcp"], ["--query-service=mdns"]].map { ProgramOutput.run("firewall-cmd", $0) }
        // 0 is yes and 1 is no; anything else says that one may not ask.
        switch (queries[0]?.status, queries[1]?.status) {
        case (0?, 0?): return DoctorStep("firewall", .ok, "firewalld lets TCP port \(port) and multicast DNS in.")
        case (1?, let mdns):
            return DoctorStep(
                "firewall", .failed, "firewalld keeps TCP port \(port)\(mdns == 1 ? " and multicast DNS" : "") out.", advice: advice)
        case (_, 1?): return DoctorStep("firewall", .failed, "firewalld keeps multicast DNS out.", advice: advice)
        default: return unreadable("firewalld runs; what it lets in cannot be read", advice)
        }
    }

    private static var isUFWEnabled: Bool {
        text(of: "/etc/ufw/ufw.conf")?.split(separator: "\n").contains { $0 == "ENABLED=yes" } ?? false
    }

    private func ufw() -> DoctorStep {
        let advice = ["sudo ufw allow \(port)/tcp && sudo ufw allow 5353/udp"]
        guard let verdicts = verdictsOfRules() else { return unreadable("ufw is enabled; only root can read its rules", advice) }
        return judged("ufw", verdicts.map { ($0.packet, $0.verdict, advice[0]) })
    }

    // MARK: Rules

    private func rules() -> DoctorStep {
        guard let verdicts = verdictsOfRules() else {
            let hasNft = ProgramOutput.path(of: "nft") != nil
            return unreadable(
                "The kernel's packet filter can only be read by root",
                [
                    hasNft ? "sudo nft list ruleset" : "sudo iptables -S",
                    hasNft
                        ? "If it keeps things out: sudo nft insert rule inet filter input tcp dport \(port) accept"
                        : "If it keeps things out: \(IptablesRules.line(for: packets[0]))",
                ])
        }
        guard !verdicts.isEmpty else { return DoctorStep("firewall", .ok, "No firewall: nothing filters what comes in.") }
        return judged("The packet filter", verdicts)
    }

    private func judged(
        _ who: String, _ verdicts: [(packet: IncomingPacket, verdict: FilterChains.Verdict, line: String)]
    ) -> DoctorStep {
        var lines: [String] = []
        let blocked = verdicts.filter { $0.verdict == .blocked }
        for one in blocked where !lines.contains(one.line) { lines.append(one.line) }
        guard blocked.isEmpty else {
            return DoctorStep("firewall", .failed, "\(who) keeps \(Self.list(blocked.map(\.packet))) out.", advice: lines)
        }
        let unsure = verdicts.filter { $0.verdict == .unsure }
        guard !unsure.isEmpty, !isReached else {
            let note = unsure.isEmpty ? "" : ", at least for some: a peer reached the port"
            return DoctorStep("firewall", .ok, "\(who) lets TCP port \(port) and multicast DNS in\(note).")
        }
        for one in unsure where !lines.contains(one.line) { lines.append(one.line) }
        return DoctorStep(
            "firewall", .warning,
            "\(who) lets \(Self.list(unsure.map(\.packet))) in only for some: it depends on the sender, or on more than can be told here.",
            advice: lines)
    }

    private static func list(_ packets: [IncomingPacket]) -> String {
        var texts: [String] = []
        for packet in packets {
            let both = packets.contains { $0.carrier == packet.carrier && $0.isIPv6 != packet.isIPv6 }
            let text = both ? packet.text : "\(packet.text) (\(packet.isIPv6 ? "IPv6" : "IPv4"))"
            if !texts.contains(text) { texts.append(text) }
        }
        return texts.joined(separator: ", ")
    }

    private func unreadable(_ what: String, _ advice: [String]) -> DoctorStep {
        guard !isReached else { return DoctorStep("firewall", .ok, "\(what), but a peer reached the port.") }
        return DoctorStep("firewall", .warning, "\(what).", advice: advice)
    }

    /// - Returns: one for each chain that sees such packets; `nil` where they may not be read.
    private func verdictsOfRules() -> [(packet: IncomingPacket, verdict: FilterChains.Verdict, line: String)]? {
        var verdicts: [(packet: IncomingPacket, verdict: FilterChains.Verdict, line: String)] = []
        var wasRead = false
        var iptablesTables: Set<String> = []
        if let output = ProgramOutput.run("nft", ["-j", "list", "ruleset"]), output.status == 0 {
            for packet in packets {
                guard let findings = NftRules.findings(output.out, packet: packet) else { continue }
                wasRead = true
                for finding in findings {
                    // Made by iptables: it says more of its own rules.
                    if finding.chain == "INPUT", finding.family != "inet" {
                        iptablesTables.insert(finding.family)
                    } else {
                        verdicts.append((packet, finding.verdict, finding.line(for: packet)))
                    }
                }
            }
        }
        for packet in packets {
            let name = packet.isIPv6 ? "ip6tables" : "iptables"
            // Where nft was read, iptables is asked only for what it made (its new form) or what nft cannot see (its old one).
            let isNew = iptablesTables.contains(packet.isIPv6 ? "ip6" : "ip")
            let program = isNew || !wasRead ? name : "\(name)-legacy"
            guard isNew || Self.hasOldTables(packet.isIPv6) != false else {
                wasRead = true
                continue
            }
            guard let output = ProgramOutput.run(program, ["-S"]), output.status == 0 else { continue }
            wasRead = true
            let verdict = IptablesRules.verdict(String(decoding: output.out, as: UTF8.self), packet: packet)
            verdicts.append((packet, verdict, IptablesRules.line(for: packet)))
        }
        return wasRead ? verdicts : nil
    }

    /// Whether iptables' old form is in use; `nil` where that may not be read.
    private static func hasOldTables(_ isIPv6: Bool) -> Bool? {
        let path = isIPv6 ? "/proc/net/ip6_tables_names" : "/proc/net/ip_tables_names"
        guard access(path, F_OK) == 0 else { return geteuid() == 0 ? false : nil }
        return text(of: path).map { !$0.isEmpty }
    }

    private static func text(of path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        let count = read(descriptor, &bytes, bytes.count)
        return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
