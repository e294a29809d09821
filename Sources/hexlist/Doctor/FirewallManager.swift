import Glibc

/// The program that writes a firewall's rules, where there is one: what is let in by hand it takes back.
enum FirewallManager: Sendable {
    case firewalld, ufw
    /// Rules are written by hand, or there are none.
    case none

    static func running() -> FirewallManager {
        if let state = ProgramOutput.run("firewall-cmd", ["--state"]), state.status == 0 { return .firewalld }
        return isUFWEnabled ? .ufw : .none
    }

    private static var isUFWEnabled: Bool {
        SystemText.read("/etc/ufw/ufw.conf")?.split(separator: "\n").contains { $0 == "ENABLED=yes" } ?? false
    }

    var name: String {
        switch self {
        case .firewalld: "firewalld"
        case .ufw: "ufw"
        case .none: "The packet filter"
        }
    }

    /// Whether a rule is its own. firewalld writes into a table of its own, or by iptables where it is set so, but not both; ufw by iptables.
    /// - Parameters:
    ///   - table: nft's name of the rule's table; `nil` for what iptables made.
    ///   - tables: nft's names of all that see what comes in.
    func wrote(table: String?, of tables: Set<String>) -> Bool {
        switch self {
        case .firewalld: table.map { $0 == Self.firewalldTable } ?? !tables.contains(Self.firewalldTable)
        case .ufw: table == nil
        case .none: false
        }
    }

    private static let firewalldTable = "firewalld"

    /// What lets packets in, at once and over restarts.
    static func firewalldLine(_ packet: IncomingPacket, zone: String) -> String {
        let change = "--zone=\(zone) " + (packet.isMulticast ? "--add-service=mdns" : "--add-port=\(packet.port)/tcp")
        return "sudo firewall-cmd \(change) && sudo firewall-cmd --permanent \(change)"
    }

    /// Before other rules of users, which may deny more.
    static func ufwLine(_ packet: IncomingPacket) -> String { "sudo ufw prepend allow \(packet.port)/\(packet.carrier.rawValue)" }
}

/// firewalld, asked by its own program.
enum Firewalld {
    /// The zone packets of an interface go through; `nil` where that may not be asked.
    static func zone(of interface: String?) -> String? {
        if let interface, let own = word(["--get-zone-of-interface=\(interface)"]) { return own }
        return word(["--get-default-zone"])
    }

    /// What it says of a packet to somebody who may not read the kernel's rules. A port that is let in by a service is not seen.
    /// - Returns: `nil` where it may not be asked.
    static func verdict(_ packet: IncomingPacket, zone: String) -> FilterChains.Verdict? {
        let query = packet.isMulticast ? "--query-service=mdns" : "--query-port=\(packet.port)/tcp"
        // 0 is yes and 1 is no; anything else says that one may not ask.
        switch ProgramOutput.run("firewall-cmd", ["--zone=\(zone)", query])?.status {
        case 0?: return .open
        case 1?: return acceptsAll(zone) ? .open : .blocked
        default: return nil
        }
    }

    private static func acceptsAll(_ zone: String) -> Bool {
        guard let list = ProgramOutput.run("firewall-cmd", ["--zone=\(zone)", "--list-all"]), list.status == 0 else { return false }
        return String(decoding: list.out, as: UTF8.self).split(separator: "\n").contains { $0.hasSuffix("target: ACCEPT") }
    }

    private static func word(_ arguments: [String]) -> String? {
        guard let output = ProgramOutput.run("firewall-cmd", arguments), output.status == 0 else { return nil }
        return String(decoding: output.out, as: UTF8.self).split(separator: "\n").first.map(String.init)
    }
}

/// A small file of the system.
enum SystemText {
    private static let limit = 64 << 10

    /// - Returns: its beginning; `nil` where it may not be read.
    static func read(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
