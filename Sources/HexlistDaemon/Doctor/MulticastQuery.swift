import HexlistDNS
import HexlistModel
import HexlistSystem

#if canImport(Glibc)
    import Glibc
#endif

/// Sends multicast DNS queries for `_hexlist._tcp.local` and for all service types on one interface, and collects the answers.
///
/// The queries are sent from port 5353, which avahi-daemon also uses. Answers to other ports would be unicast (RFC 6762 section 6.7), and a
/// firewall that allows multicast DNS may drop them. This machine's avahi-daemon answers too, so only an answer from another machine shows
/// that the network transmits multicast.
enum MulticastQuery {
    enum Outcome: Equatable {
        /// - Parameters:
        ///   - names: the DNS-SD instances of Hexlist in the answers.
        ///   - byOthers: whether another machine answered, with or without Hexlist.
        case answered(_ names: [String], byOthers: Bool)
        case silent
        case failed(String)
        /// The interface has no carrier, so nothing was sent.
        case noCarrier
    }

    private static let port: UInt16 = 5_353
    /// Number of queries, and milliseconds to wait for answers after each. Several are needed, because a responder may be slow, and does
    /// not repeat an answer within a second (RFC 6762, 6).
    private static let (queries, milliseconds) = (5, 500)

    /// Sends the queries. Blocks for up to 2.5 s; returns earlier if both this machine and another one answer.
    /// - Parameters:
    ///   - index: the interface's index.
    ///   - own: the addresses of this machine.
    ///   - isOwn: returns whether an instance name is that of this machine.
    static func ask(on index: Int32, own: Set<IPAddress>, isOwn: (String) -> Bool) -> Outcome {
        let descriptor = SystemSocket.open(AF_INET, .datagram)
        guard descriptor >= 0 else { return .failed(String(cString: strerror(errno))) }
        defer { close(descriptor) }
        var interface = ip_mreqn()
        interface.imr_ifindex = index
        var (on, off, hops): (Int32, Int32, Int32) = (1, 0, 255)
        var target = sockaddr_in()
        target.sin_family = sa_family_t(AF_INET)
        target.sin_port = port.bigEndian
        target.sin_addr.s_addr = in_addr_t(0xE000_00FB).bigEndian  // 224.0.0.251
        interface.imr_multiaddr = target.sin_addr
        guard setsockopt(descriptor, Int32(IPPROTO_IP), IP_ADD_MEMBERSHIP, &interface, socklen_t(MemoryLayout<ip_mreqn>.size)) == 0,
            // Without this option, the socket also receives datagrams from other interfaces.
            setsockopt(descriptor, Int32(IPPROTO_IP), IP_MULTICAST_ALL, &off, 4) == 0,
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, 4) == 0,
            setsockopt(descriptor, Int32(IPPROTO_IP), IP_MULTICAST_IF, &interface, socklen_t(MemoryLayout<ip_mreqn>.size)) == 0,
            setsockopt(descriptor, Int32(IPPROTO_IP), IP_MULTICAST_LOOP, &on, 4) == 0,
            setsockopt(descriptor, Int32(IPPROTO_IP), IP_MULTICAST_TTL, &hops, 4) == 0
        else { return .failed(String(cString: strerror(errno))) }
        withUnsafePointer(to: &target) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                // The socket is bound to the multicast address, so that avahi-daemon still receives unicast datagrams. Binding fails if
                // avahi-daemon has `disallow-other-stacks` set; the queries are then sent from another port.
                _ = bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }

        var names: [String] = []
        var (hasAnswer, byOthers) = (false, false)
        var failure: Int32?
        for _ in 0..<queries {
            let sent = question.withUnsafeBytes { bytes in
                withUnsafePointer(to: &target) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        sendto(descriptor, bytes.baseAddress, bytes.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                    }
                }
            }
            failure = sent < 0 ? errno : nil
            let deadline = ContinuousClock.now + .milliseconds(milliseconds)
            while true {
                let left = Int32(max(0, ((deadline - .now) / .milliseconds(1)).rounded(.up)))
                var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                guard left > 0, poll(&wait, 1, left) > 0 else { break }
                guard let answer = answer(descriptor) else { continue }
                hasAnswer = true
                byOthers = byOthers || !own.contains(answer.source)
                names += answer.names.filter { name in !names.contains { PeerTextComparison.areEqual($0, name) } }
                if byOthers, names.contains(where: isOwn) { return .answered(names, byOthers: true) }
            }
        }
        if hasAnswer { return .answered(names, byOthers: byOthers) }
        return failure.map { .failed(String(cString: strerror($0))) } ?? .silent
    }

    private static let services = DNSName("_hexlist._tcp.local")

    private static let question: [UInt8] = {
        let names = [services, DNSName("_services._dns-sd._udp.local")].compactMap { $0 }
        var bytes: [UInt8] = [0x4D, 0x44, 0, 0, 0, UInt8(names.count), 0, 0, 0, 0, 0, 0]
        for name in names {
            for label in name.labels { bytes += [UInt8(label.count)] + label }
            bytes += [0, 0, 12, 0, 1]
        }
        return bytes
    }()

    /// Receives a datagram. Returns its sender, which may be any host, and the Hexlist instances in it; `nil` if there is no datagram, or
    /// if it has no answers.
    private static func answer(_ descriptor: Int32) -> (source: IPAddress, names: [String])? {
        var bytes = [UInt8](repeating: 0, count: 9_000)
        var sender = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let count = withUnsafeMutablePointer(to: &sender) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                recvfrom(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT), $0, &length)
            }
        }
        guard count > 0, let message = DNSMessage(Array(bytes.prefix(count))), !message.answers.isEmpty, let services,
            let source = withUnsafeBytes(of: sender.sin_addr, { IPAddress(bytes: Array($0)) })
        else { return nil }
        let names = message.answers.prefix(64).compactMap { answer -> String? in
            guard answer.name == services, case .pointer(let target) = answer.data else { return nil }
            return target.label(under: services).map { String(decoding: $0, as: UTF8.self) }
        }
        return (source, names)
    }
}
