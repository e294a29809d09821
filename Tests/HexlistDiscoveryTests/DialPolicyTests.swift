import HexlistModel
import Testing

@testable import HexlistDiscovery

@Suite struct DialPolicyTests {
    static let policy = DialPolicy([
        InterfaceAddress(interface: "lo", index: 1, address: "127.0.0.1", prefixLength: 8),
        InterfaceAddress(interface: "eth0", index: 2, address: "203.0.113.7", prefixLength: 26),
        InterfaceAddress(interface: "eth0", index: 2, address: "2001:db8:1:2::7", prefixLength: 64),
        InterfaceAddress(interface: "wg0", index: 4, address: "198.51.100.1", prefixLength: 32),
        InterfaceAddress(interface: "odd", index: 5, address: "9.9.9.9", prefixLength: 99),
    ])

    @Test(
        "own networks and link-local addresses only",
        arguments: [
            ("10.1.2.3", false), ("172.16.0.1", false), ("192.168.0.9", false), ("100.64.0.1", false), ("169.254.3.4", true),
            ("169.253.3.4", false), ("8.8.8.8", false), ("9.9.9.9", false),
            ("203.0.113.63", true), ("203.0.113.64", false), ("198.51.100.1", true), ("198.51.100.2", false),
            ("0.0.0.0", false), ("224.0.0.251", false), ("255.255.255.255", false),
            ("fe80::1", true), ("febf::1", true), ("fec0::1", false), ("fc00::1", false), ("fdff::9", false), ("fe00::1", false),
            ("2001:db8:1:2::99", true), ("2001:db8:1:3::99", false), ("2606:4700::1111", false), ("ff02::fb", false), ("::", false),
            ("::ffff:8.8.8.8", false), ("::ffff:10.0.0.1", false), ("::ffff:203.0.113.9", true),
        ]) func addresses(_ text: String, isAllowed: Bool) throws
    {
        let address = try #require(IPAddress(text))
        #expect((Self.policy.refusal(address: address, port: 24391, interface: 2) == nil) == isAllowed)
    }

    @Test(arguments: [(UInt16(1), false), (22, false), (1_023, false), (1_024, true), (65_535, true)])
    func ports(_ port: UInt16, isAllowed: Bool) {
        let address: IPAddress = "203.0.113.9"
        #expect((Self.policy.refusal(address: address, port: port, interface: 2) == nil) == isAllowed)
    }

    @Test("a loopback address counts only if the announcement was received on loopback", arguments: [(Int32(1), true), (2, false)])
    func loopback(_ interface: Int32, isAllowed: Bool) {
        let address: IPAddress = "127.0.0.1"
        #expect((Self.policy.refusal(address: address, port: 24391, interface: interface) == nil) == isAllowed)
    }
}
