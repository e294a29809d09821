import HexlistDNS
import HexlistModel
import HexlistSystem

#if canImport(Glibc)
    import Glibc
#endif

/// Asks for `_hexlist._tcp.local` by multicast on one interface, from a port of its own (RFC 6762 section 6.7), and collects the answers.
/// The machine's own avahi-daemon answers too, unless its traffic on that interface is filtered.
enum MulticastQuery {
    enum Outcome: Equatable {
        /// The instance names in the answers.
        case answered([String])
        case silent
        case failed(String)
    }

    private static let port: UInt16 = 5_353
    /// The milliseconds after each of three questions.
    private static let milliseconds: Int32 = 400

    /// Asks. Blocks, for 1.2 s if nobody answers.
    /// - Parameter index: the interface's index.
    static func ask(on index: Int32, until isEnough: ([String]) -> Bool) -> Outcome {
        let descriptor = SystemSocket.open(AF_INET, .datagram)
        guard descriptor >= 0 else { return .failed(String(cString: strerror(errno))) }
        defer { close(descriptor) }
        var interface = ip_mreqn()
        interface.imr_ifindex = index
        var (on, hops): (Int32, Int32) = (1, 255)
        guard setsockopt(descriptor, Int32(IPPROTO_IP), IP_MULTICAST_IF, &interface, socklen_t(MemoryLayout<ip_mreqn>.size)) == 0,
            setsockopt(descriptor, Int32(IPPROTO_IP), IP_MULTICAST_LOOP, &on, 4) == 0,
            setsockopt(descriptor, Int32(IPPROTO_IP), IP_MULTICAST_TTL, &hops, 4) == 0
        else { return .failed(String(cString: strerror(errno))) }
        var target = sockaddr_in()
        target.sin_family = sa_family_t(AF_INET)
        target.sin_port = port.bigEndian
        target.sin_addr.s_addr = in_addr_t(0xE000_00FB).bigEndian  // 224.0.0.251

        var names: [String] = []
        var failure: Int32?
        for _ in 0..<3 {
            let sent = question.withUnsafeBytes { bytes in
                withUnsafePointer(to: &target) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        sendto(descriptor, bytes.baseAddress, bytes.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                    }
                }
            }
            failure = sent < 0 ? errno : nil
            let deadline = ContinuousClock.now + .milliseconds(Int(milliseconds))
            while true {
                let left = Int32(max(0, ((deadline - .now) / .milliseconds(1)).rounded(.up)))
                var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                guard left > 0, poll(&wait, 1, left) > 0 else { break }
                names += answer(descriptor).filter { name in !names.contains { PeerText.areEqual($0, name) } }
                if isEnough(names) { return .answered(names) }
            }
        }
        if !names.isEmpty { return .answered(names) }
        return failure.map { .failed(String(cString: strerror($0))) } ?? .silent
    }

    private static let services = DNSName("_hexlist._tcp.local")

    private static let question: [UInt8] = {
        var bytes: [UInt8] = [0x4D, 0x44, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
        for label in services?.labels ?? [] { bytes += [UInt8(label.count)] + label }
        return bytes + [0, 0, 12, 0, 1]
    }()

    /// The instances named in one datagram, which anybody may have sent.
    private static func answer(_ descriptor: Int32) -> [String] {
        var bytes = [UInt8](repeating: 0, count: 9_000)
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        guard count > 0, let message = DNSMessage(Array(bytes.prefix(count))), let services else { return [] }
        return message.answers.prefix(64).compactMap { answer in
            guard answer.name == services, case .pointer(let target) = answer.data else { return nil }
            return target.label(under: services).map { String(decoding: $0, as: UTF8.self) }
        }
    }
}
