import Glibc
import TestSupport
import Testing

@testable import HexlistModel

@Suite("IP addresses") struct IPAddressTests {
    @Test(
        "an address has one text, however it was written",
        arguments: [
            ("192.168.1.5", "192.168.1.5"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"), ("::", "::"), ("::1", "::1"),
            ("2001:DB8::0:1", "2001:db8::1"), ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"), ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"),
            ("1:0:0:2:0:0:0:3", "1:0:0:2::3"), ("1:0:0:2:0:0:3:4", "1::2:0:0:3:4"), ("fe80::1", "fe80::1"),
            ("::ffff:10.1.2.3", "10.1.2.3"), ("::FFFF:a01:203", "10.1.2.3"), ("0:0:0:0:0:ffff:10.1.2.3", "10.1.2.3"),
            ("::fffe:10.1.2.3", "::fffe:a01:203"),
        ]) func text(_ text: String, shown: String) throws
    {
        let address = try #require(IPAddress(text))
        #expect(address.description == shown)
        #expect(IPAddress(shown) == address)
        #expect(IPAddress(bytes: address.bytes) == address)
        #expect(address.bytes.count == (shown.contains(":") ? 16 : 4))
        #expect(address.isIPv6 == shown.contains(":"))
    }

    @Test(
        "text around or inside an address makes it invalid",
        arguments: [
            "", ".", ":", "1.2.3", "1.2.3.4.5", "1.2.3.", ".1.2.3", "1..2.3", "1.2.3.256", "1.2.3.0004", "1.2.3.04", "01.2.3.4", " 1.2.3.4",
            "1.2.3.4 ", "10.0.0.1\0evil", "0x7f.1", "example.org", "fe80::1%eth0", ":::", "1::2::3", "::g", "1:2:3:4:5:6:7", "1:",
            ":1::", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "12345::", "::1.2.3", "1.2.3.4::", "::1.2.3.4:5",
            "1:2:3:4:5:6:7:1.2.3.4", "[::1]", "::1\0", "\u{0661}.2.3.4", String(repeating: ":", count: 9_999),
        ]) func noAddress(_ text: String)
    { #expect(IPAddress(text) == nil) }

    @Test("agrees with the system's parser on a hundred thousand texts")
    func system() {
        var random = SeededGenerator(seed: 1)
        let seeds = ["1.2.3.4", "::", "1:2:3:4:5:6:7:8", "2001:db8::1", "::ffff:10.0.0.1", "fe80::1:0:0:2", "1:2:3:4:5:6:127.0.0.1"]
        let signs = Array("0123456789abcdefF:.:.% ".utf8)
        var read = 0
        for _ in 0..<100_000 {
            var bytes = Array((seeds.randomElement(using: &random) ?? "").utf8)
            for _ in 0..<Int.random(in: 0...4, using: &random) {
                let place = Int.random(in: 0...bytes.count, using: &random)
                let end = min(bytes.count, place + Int.random(in: 0...2, using: &random))
                let new = (0..<Int.random(in: 0...2, using: &random)).compactMap { _ in signs.randomElement(using: &random) }
                bytes.replaceSubrange(place..<end, with: new)
            }
            let text = String(decoding: bytes, as: UTF8.self)
            let (ours, theirs) = (IPAddress(text), Self.system(text))
            guard ours?.bytes == theirs.map(Self.unmapped) else {
                Issue.record("\(text): \(ours?.description ?? "none"), of the system \(theirs ?? [])")
                return
            }
            guard let ours else { continue }
            read += 1
            guard IPAddress(ours.description) == ours, Self.system(ours.description) == ours.bytes else {
                Issue.record("\(text) is written \(ours)")
                return
            }
        }
        #expect(read > 10_000)
    }

    private static func system(_ text: String) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 { return Array(bytes.prefix(4)) }
        return inet_pton(AF_INET6, text, &bytes) == 1 ? bytes : nil
    }

    private static func unmapped(_ bytes: [UInt8]) -> [UInt8] {
        bytes.starts(with: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]) ? Array(bytes.suffix(4)) : bytes
    }

    @Test(
        "only IPv6 text has a zone",
        arguments: [
            ("fe80::1%eth0", "fe80::1", "eth0"), ("fe80::1%", "fe80::1", ""), ("::1%a%b", "::1", "a%b"), ("fe80::1", "fe80::1", nil),
            ("10.1.2.3", "10.1.2.3", nil), ("::ffff:10.1.2.3%eth0", "10.1.2.3", "eth0"),
        ] as [(String, String, String?)]) func zones(_ text: String, address: String, zone: String?) throws
    {
        let found = try #require(IPAddress.withZone(text))
        #expect(found.address.description == address)
        #expect(found.zone.map(String.init) == zone)
        #expect(IPAddress(ofHost: text) == found.address)
    }

    @Test(arguments: ["10.1.2.3%eth0", "%", "%eth0", "name%eth0", ""]) func noZone(_ text: String) {
        #expect(IPAddress.withZone(text) == nil)
    }

    @Test("only IPv6 link-local addresses have a scope, and it distinguishes addresses")
    func scope() throws {
        let (link, other) = (try #require(IPAddress("fe80::1")), try #require(IPAddress("2001:db8::1")))
        #expect(link.with(scope: 2) != link)
        #expect(link.with(scope: 2) != link.with(scope: 3))
        #expect(link.with(scope: 2).with(scope: 0) == link)
        #expect(link.with(scope: 2).description == "fe80::1%2")
        #expect(other.with(scope: 2) == other)
        #expect(try #require(IPAddress("169.254.1.1")).with(scope: 2).scope == 0)
    }

    @Test(
        "a subscriber is an IPv4 address or an IPv6 /64; on a link each address is its own",
        arguments: [
            ("10.1.2.3", "10.1.2.3"), ("::ffff:10.1.2.3", "10.1.2.3"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2::", "2001:db8:1:2::"), ("fd00::1", "fd00::"), ("fe80::1", "fe80::1"), ("febf::2:3", "febf::2:3"),
            ("fec0::1", "fec0::"),
        ]) func subscriber(_ text: String, subscriber: String) throws
    {
        #expect(try #require(IPAddress(text)).subscriber.description == subscriber)
    }

    @Test("a link-local address keeps its scope as a subscriber") func scopedSubscriber() throws {
        let address = try #require(IPAddress("fe80::1")).with(scope: 7)
        #expect(address.subscriber == address)
    }

    @Test(
        "prefixes match their first bits; a prefix of length 0 matches its whole version",
        arguments: [
            ("10.1.2.3", "10.1.2.0", 24, true), ("10.1.3.3", "10.1.2.0", 24, false), ("10.1.3.3", "10.1.2.0", 23, true),
            ("9.9.9.9", "10.1.2.3", 0, true), ("10.1.2.3", "10.1.2.3", 32, true), ("10.1.2.2", "10.1.2.3", 32, false),
            ("10.1.2.3", "10.1.2.3", 33, false), ("10.1.2.3", "10.1.2.3", -1, false), ("10.1.2.3", "10.1.2.3", 128, false),
            ("2001:db8::1", "2001:db8::", 64, true), ("2001:db8:0:1::1", "2001:db8::", 64, false),
            ("2001:db8:0:1::1", "2001:db8::", 63, true), ("2001:db8::1", "2001:db8::2", 127, false),
            ("2001:db8::2", "2001:db8::3", 127, true), ("2001:db8::1", "2001:db8::1", 128, true),
            ("2001:db8::1", "2001:db8::1", 129, false), ("::1", "ffff::", 0, true), ("10.1.2.3", "::", 0, false),
            ("::1", "0.0.0.0", 0, false), ("::ffff:10.1.2.3", "10.0.0.0", 8, true),
        ]) func prefixes(_ text: String, prefix: String, length: Int, isInside: Bool) throws
    {
        let (address, prefix) = (try #require(IPAddress(text)), try #require(IPAddress(prefix)))
        #expect(address.isInside(prefix, length: length) == isInside)
    }

    @Test(
        "private addresses, routed within an organization only",
        arguments: [
            ("10.0.0.0", true), ("10.255.255.255", true), ("11.0.0.0", false), ("9.255.255.255", false),
            ("172.15.255.255", false), ("172.16.0.0", true), ("172.31.255.255", true), ("172.32.0.0", false),
            ("192.167.255.255", false), ("192.168.0.0", true), ("192.168.255.255", true), ("192.169.0.0", false),
            ("100.63.255.255", false), ("100.64.0.0", true), ("100.127.255.255", true), ("100.128.0.0", false),
            ("fbff::1", false), ("fc00::1", true), ("fdff::1", true), ("fe00::1", false), ("2001:db8::1", false), ("::1", false),
            ("8.8.8.8", false), ("::ffff:10.0.0.1", true), ("::ffff:8.8.8.8", false),
        ]) func privateAddresses(_ text: String, isPrivate: Bool) throws
    {
        #expect(try #require(IPAddress(text)).isPrivate == isPrivate)
    }

    @Test(
        "the scope of an address",
        arguments: [
            ("127.0.0.1", "loopback"), ("127.255.0.9", "loopback"), ("::1", "loopback"), ("::ffff:127.0.0.1", "loopback"),
            ("169.254.0.1", "link"), ("169.253.0.1", ""), ("fe80::1", "link"), ("febf::1", "link"), ("fec0::1", ""), ("fe7f::1", ""),
            ("224.0.0.251", "nobody"), ("239.1.1.1", "nobody"), ("240.0.0.1", ""), ("255.255.255.255", "nobody"), ("0.0.0.0", "nobody"),
            ("0.1.2.3", "nobody"), ("ff02::fb", "nobody"), ("::", "nobody"), ("::2", ""), ("8.8.8.8", ""), ("2606:4700::1111", ""),
        ]) func kinds(_ text: String, kind: String) throws
    {
        let address = try #require(IPAddress(text))
        #expect(address.isLoopback == (kind == "loopback"))
        #expect(address.isLinkLocal == (kind == "link"))
        #expect(address.isNoHost == (kind == "nobody"))
    }

    @Test(arguments: [0, 3, 5, 15, 17]) func noBytes(_ count: Int) {
        #expect(IPAddress(bytes: [UInt8](repeating: 1, count: count)) == nil)
    }
}
