import HexlistModel
import NIOCore
import Testing

@testable import HexlistTransport

@Suite struct AdmissionTests {
    private func limits(_ connections: Int, _ perAddress: Int, _ unidentified: Int, _ reserved: Int) -> TransportLimits {
        var limits = TransportLimits()
        limits.connections = connections
        limits.perAddress = perAddress
        limits.unidentified = unidentified
        limits.reserved = reserved
        return limits
    }

    private func address(_ text: String) throws -> IPAddress { try #require(IPAddress(scoped: text)) }

    struct Case: Sendable {
        var limits: [Int]
        var addresses: [String]
        var refusal: Admission.Refusal
    }

    static let cases: [Case] = [
        Case(limits: [3, 9, 9, 0], addresses: ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"], refusal: .connections),
        Case(limits: [4, 9, 9, 2], addresses: ["10.0.0.1", "10.0.0.2", "10.0.0.3"], refusal: .connections),
        Case(limits: [9, 2, 9, 0], addresses: ["10.0.0.1", "10.0.0.1", "10.0.0.1"], refusal: .perAddress),
        Case(limits: [9, 2, 9, 0], addresses: ["2001:db8::1", "2001:db8::2", "2001:db8::ffff:3"], refusal: .perAddress),
        Case(limits: [9, 2, 9, 0], addresses: ["::ffff:10.0.0.1", "10.0.0.1", "::ffff:10.0.0.1"], refusal: .perAddress),
        Case(limits: [9, 9, 2, 0], addresses: ["10.0.0.1", "10.0.0.2", "10.0.0.3"], refusal: .unidentified),
    ]

    @Test("each limit refuses the next connection, by name", arguments: cases)
    func refuses(one: Case) throws {
        var admission = Admission(limits: limits(one.limits[0], one.limits[1], one.limits[2], one.limits[3]))
        for address in one.addresses.dropLast() { _ = try admission.admit(try self.address(address)) }
        let last = try address(try #require(one.addresses.last))
        #expect(throws: one.refusal) { try admission.admit(last) }
    }

    @Test("hosts of one link are counted separately, though they share fe80::/64")
    func linkLocal() throws {
        var admission = Admission(limits: limits(9, 1, 9, 0))
        _ = try admission.admit(try address("fe80::1%1"))
        _ = try admission.admit(try address("fe80::2%1"))
        let again = try address("fe80::1%1")
        #expect(throws: Admission.Refusal.perAddress) { try admission.admit(again) }
    }

    @Test("hosts of an own IPv6 link are counted separately; elsewhere a /64 counts as one")
    func ownLinks() throws {
        var admission = Admission(limits: limits(99, 1, 99, 0))
        // The last two prefixes do not count as links, because one is larger than a link and the other is IPv4.
        let links = try [("fd00:1::1", 64), ("fd00:2::1:0", 112), ("200::7", 7), ("10.0.0.1", 64)].map {
            (prefix: try address($0.0), length: $0.1)
        }
        admission.setLinks(links)
        for host in 1...40 { _ = try admission.admit(try address("fd00:1::\(host)")) }
        _ = try admission.admit(try address("fd00:2::1:1"))
        _ = try admission.admit(try address("fd00:2::1:2"))
        for (first, second) in [
            ("fd00:1::1", "fd00:1::1"), ("fd00:3::1", "fd00:3::2"), ("fd00:2::2:1", "fd00:2::3:1"), ("201::1", "201::2"),
        ] {
            if first != second { _ = try admission.admit(try address(first)) }
            let next = try address(second)
            #expect(throws: Admission.Refusal.perAddress) { try admission.admit(next) }
        }
    }

    @Test("a Hello frees its slot once, and a disconnect frees all slots")
    func places() throws {
        var admission = Admission(limits: limits(9, 9, 1, 0))
        let one = try address("10.0.0.1")
        var slot = try admission.admit(one)
        #expect(throws: Admission.Refusal.unidentified) { try admission.admit(one) }
        admission.identified(&slot)
        admission.identified(&slot)
        #expect(admission.unidentified == 0)
        let other = try admission.admit(one)
        admission.release(other)
        admission.release(slot)
        #expect(admission.connections == 0)
        #expect(admission.unidentified == 0)
        for _ in 0..<100 { admission.release(try admission.admit(one)) }
        #expect(admission.connections == 0)
    }

    @Test("a flood does not use the slots reserved for trusted peers' addresses")
    func reserved() throws {
        var admission = Admission(limits: limits(6, 2, 3, 2))
        admission.reserve([try address("10.0.0.9"), try address("2001:db8:0:1::9")])
        for host in 1...3 { _ = try admission.admit(try address("10.0.1.\(host)")) }
        let stranger = try address("10.0.1.4")
        #expect(throws: Admission.Refusal.unidentified) { try admission.admit(stranger) }
        _ = try admission.admit(try address("10.0.0.9"))
        // Other addresses of the same /64 do not use the reserved slots.
        _ = try admission.admit(try address("2001:db8:0:1::9"))
        let trusted = try address("10.0.0.9")
        #expect(throws: Admission.Refusal.unidentified) { try admission.admit(trusted) }
    }

    @Test(
        "with few descriptors there are fewer connections, at most half of them reserved",
        arguments: [(1_024, 512, 16), (568, 512, 16), (567, 511, 16), (80, 24, 12), (64, 8, 4), (0, 8, 4), (-1, 8, 4)])
    func descriptors(_ descriptors: Int, _ connections: Int, _ reserved: Int) {
        let limits = TransportLimits().fitting(descriptors: descriptors)
        #expect([limits.connections, limits.reserved] == [connections, reserved])
        #expect(TransportLimits().fitting(descriptors: 100_000) == TransportLimits())
    }

    @Test("senseless limits refuse connections without a trap", arguments: [[0, 0, 0, 0], [-1, -5, -7, -9], [1, 1, 1, 1 << 40]])
    func senseless(values: [Int]) throws {
        var admission = Admission(limits: limits(values[0], values[1], values[2], values[3]))
        let one = try address("10.0.0.1")
        #expect(throws: Admission.Refusal.self) { try admission.admit(one) }
    }
}

@Suite struct ScopedAddressTests {
    static let texts: [(String, String?)] = [
        ("192.168.1.5", "192.168.1.5"), ("::1", "::1"), ("2001:DB8::0:1", "2001:db8::1"), ("::ffff:10.1.2.3", "10.1.2.3"),
        ("fe80::1", "fe80::1"), ("fe80::1%lo", "fe80::1%lo"), ("fe80::1%1", "fe80::1%lo"), ("::1%lo", "::1"),
        ("fe80::1%nosuch0", nil), ("fe80::1%0", nil), ("fe80::1%", nil), ("10.1.2.3%lo", nil), ("10.1.2", nil),
        ("localhost", nil), ("", nil), ("10.0.0.1\0evil", nil), ("1.2.3.4.5", nil), (" 1.2.3.4", nil),
        (String(repeating: ":", count: 9_999), nil),
    ]

    @Test("text is one address or invalid", arguments: texts)
    func text(_ text: String, description: String?) {
        #expect(IPAddress(scoped: text)?.host == description)
    }

    @Test("a socket address is unchanged by a round trip, including its interface", arguments: ["10.1.2.3", "2001:db8::1", "fe80::1%lo"])
    func socketAddress(text: String) throws {
        let address = try #require(IPAddress(scoped: text))
        let socket = try #require(address.socketAddress(port: 24_391))
        #expect(socket.port == 24_391)
        #expect(IPAddress(socket) == address)
    }

    @Test("a separate interface applies to link-local addresses only")
    func interface() {
        #expect(IPAddress(scoped: "fe80::1", interface: "lo")?.host == "fe80::1%lo")
        #expect(IPAddress(scoped: "fe80::1%lo", interface: "nosuch0")?.host == "fe80::1%lo")
        #expect(IPAddress(scoped: "2001:db8::1", interface: "nosuch0")?.host == "2001:db8::1")
    }
}
