import HexlistModel

/// A packet that comes in from outside, as a firewall's rules see it: the first of a connection to this machine, or a question of multicast
/// DNS to its group. Never on the loopback.
struct IncomingPacket: Sendable, Equatable {
    enum Carrier: String, Sendable { case tcp, udp }

    var carrier: Carrier
    var port: Int
    var isIPv6: Bool
    /// Where it comes in; `nil` where that is not known.
    var interface: String?

    private static let multicastPort = 5_353

    /// All that has to come in: to the daemon's port, and where multicast is used to avahi-daemon's group. Of TCP first.
    static func needed(port: Int, interfaces: [String?], usesMulticast: Bool) -> [IncomingPacket] {
        (usesMulticast ? [Carrier.tcp, .udp] : [.tcp]).flatMap { carrier in
            [false, true].flatMap { isIPv6 in
                interfaces.map {
                    IncomingPacket(carrier: carrier, port: carrier == .tcp ? port : multicastPort, isIPv6: isIPv6, interface: $0)
                }
            }
        }
    }

    /// As rules are written.
    var text: String { "\(carrier.rawValue) port \(port)" }

    var isMulticast: Bool { carrier == .udp }

    /// The group, for multicast.
    private var group: String { isIPv6 ? "ff02::fb" : "224.0.0.251" }

    // MARK: What rules ask

    /// - Parameters:
    ///   - pattern: a name, or the beginning of one.
    ///   - wildcard: the last character of a beginning.
    func comesIn(on pattern: String, wildcard: Character) -> RuleMatch {
        guard pattern != "lo" else { return .no }
        guard let interface else { return .maybe }
        guard pattern.last == wildcard else { return RuleMatch(pattern == interface) }
        return RuleMatch(interface.hasPrefix(pattern.dropLast()))
    }

    /// - Parameter type: of the destination, as the kernel's routes name it.
    func goes(toType type: String) -> RuleMatch {
        switch type.lowercased() {
        case "local", "unicast": RuleMatch(!isMulticast)
        case "multicast": RuleMatch(isMulticast)
        case "broadcast", "anycast", "unspec", "blackhole", "unreachable", "prohibit": .no
        default: .maybe
        }
    }

    /// - Parameters:
    ///   - address: numeric.
    ///   - length: bits of it that count; `nil` for all.
    func goes(to address: String, length: Int?) -> RuleMatch {
        guard let wanted = IPAddress(address), wanted.isIPv6 == isIPv6 else { return .no }
        if length == 0 { return .yes }
        // Of this machine's own addresses any may be meant.
        guard isMulticast, let own = IPAddress(group) else { return wanted.isMulticast ? .no : .maybe }
        let width = isIPv6 ? 128 : 32
        let bits = length ?? width
        return (0...width).contains(bits) ? RuleMatch(own.isInside(wanted, length: bits)) : .maybe
    }
}
