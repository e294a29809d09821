/// A numeric IP address. An IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) equals the IPv4 address.
public struct IPAddress: Hashable, Sendable {
    /// All 128 bits of the address. IPv4 is stored as IPv4-mapped IPv6, `::ffff:0:0/96`, so that equal addresses have equal bits.
    private let bits: UInt128
    /// The interface index of an IPv6 link-local address; 0 if it is unknown, and for all other addresses.
    public let scope: UInt32

    private init(bits: UInt128, scope: UInt32 = 0) {
        self.bits = bits
        self.scope = scope
    }

    private init(four: UInt32) { self.init(bits: 0xFFFF << 32 | UInt128(four)) }

    /// Parses an IPv4 or IPv6 address without a zone. Refuses numbers with leading zeros, because some programs read them as octal.
    public init?(_ text: String) {
        if let four = Self.four(text.utf8) {
            self.init(four: four)
        } else if let six = Self.six(text.utf8) {
            self.init(bits: six)
        } else {
            return nil
        }
    }

    /// Creates an address from 4 bytes (IPv4) or 16 bytes (IPv6) in network byte order; `nil` for any other number of bytes.
    public init?(bytes: [UInt8]) {
        let number = bytes.prefix(16).reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
        switch bytes.count {
        case 4: self.init(four: UInt32(truncatingIfNeeded: number))
        case 16: self.init(bits: number)
        default: return nil
        }
    }

    /// Parses an address and ignores its zone.
    /// - Parameter host: an address with an optional zone, such as `fe80::1%eth0`.
    public init?(ofHost host: String) {
        guard let address = Self.withZone(host)?.address else { return nil }
        self = address
    }

    /// Parses an address with an optional zone, such as `fe80::1%eth0` or `fe80::1%2`. Only IPv6 addresses can have one.
    /// - Returns: the address, and the zone without validation; `nil` as zone if there is none.
    public static func withZone(_ text: String) -> (address: IPAddress, zone: Substring?)? {
        guard let mark = text.utf8.firstIndex(of: UInt8(ascii: "%")) else { return IPAddress(text).map { ($0, nil) } }
        return six(text[..<mark].utf8).map { (IPAddress(bits: $0), text[text.utf8.index(after: mark)...]) }
    }

    /// Returns a copy with the given scope. An address that is not IPv6 link-local is returned unchanged.
    public func with(scope: UInt32) -> IPAddress {
        IPAddress(bits: bits, scope: isIPv6 && isLinkLocal ? scope : 0)
    }

    // MARK: Kinds of addresses

    private var four: UInt32? { bits >> 32 == 0xFFFF ? UInt32(truncatingIfNeeded: bits) : nil }

    public var isIPv6: Bool { four == nil }

    /// The address in network byte order: 4 bytes for IPv4, 16 for IPv6.
    public var bytes: [UInt8] {
        let count = isIPv6 ? 16 : 4
        return (1...count).map { UInt8(truncatingIfNeeded: bits >> (8 * (count - $0))) }
    }

    /// Whether the address is in 127.0.0.0/8 or is ::1.
    public var isLoopback: Bool { four.map { $0 >> 24 == 127 } ?? (bits == 1) }

    /// Whether the address is in 169.254.0.0/16 or fe80::/10.
    public var isLinkLocal: Bool { four.map { $0 >> 16 == 0xA9FE } ?? (bits >> 118 == 0xFE80 >> 6) }

    /// Whether the address is private, so that it is not routed on the Internet: 10/8, 172.16/12, 192.168/16, 100.64/10, fc00::/7.
    public var isPrivate: Bool {
        four.map { $0 >> 24 == 10 || $0 >> 20 == 0xAC1 || $0 >> 16 == 0xC0A8 || $0 >> 22 == 0x6440 >> 6 } ?? (bits >> 121 == 0xFC >> 1)
    }

    /// Whether the address is in 224.0.0.0/4 or ff00::/8.
    public var isMulticast: Bool { four.map { $0 >> 28 == 0xE } ?? (bits >> 120 == 0xFF) }

    /// Whether the address cannot belong to a single host: it is unspecified (0.0.0.0/8 or `::`), multicast or broadcast.
    public var isNoHost: Bool { isMulticast || (four.map { $0 >> 24 == 0 || $0 == .max } ?? (bits == 0)) }

    /// Whether the address belongs to a host of the Internet. False for all special networks (IANA's special-purpose registries): loopback,
    /// link-local, private, documentation, benchmarking, multicast and reserved ones. A NAT64 address (64:ff9b::/96) is public if the IPv4
    /// address in it is public. Addresses of tunnels (6to4 2002::/16, Teredo 2001::/32) are not public.
    public var isPublic: Bool {
        guard isIPv6 else {
            return !isNoHost && !isLoopback && !isLinkLocal && !isPrivate
                && !Self.specialFour.contains { isInside($0.prefix, length: $0.length) }
        }
        if let translation = IPAddress("64:ff9b::"), isInside(translation, length: 96) {
            return IPAddress(four: UInt32(truncatingIfNeeded: bits)).isPublic
        }
        return bits >> 125 == 1 && !Self.specialSix.contains { isInside($0.prefix, length: $0.length) }
    }

    private static func networks(_ texts: [(String, Int)]) -> [(prefix: IPAddress, length: Int)] {
        texts.compactMap { text, length in IPAddress(text).map { ($0, length) } }
    }

    private static let specialFour = networks([
        ("192.0.0.0", 24), ("192.0.2.0", 24), ("192.88.99.0", 24), ("198.18.0.0", 15), ("198.51.100.0", 24), ("203.0.113.0", 24),
        ("240.0.0.0", 4),
    ])
    /// Networks inside 2000::/3 (global unicast) that are not public.
    private static let specialSix = networks([("2001::", 23), ("2001:db8::", 32), ("2002::", 16), ("3fff::", 20)])

    /// The network that is usually assigned to one subscriber, for limits per subscriber: the /64 of an IPv6 address, or the IPv4 address
    /// itself. Link-local addresses are unchanged, because all hosts on a link share their prefix.
    public var subscriber: IPAddress {
        isIPv6 && !isLinkLocal ? IPAddress(bits: (bits >> 64) << 64) : self
    }

    /// Whether the address is in the network `prefix`/`length`. False if the IP versions differ. Scopes are ignored.
    public func isInside(_ prefix: IPAddress, length: Int) -> Bool {
        let width = isIPv6 ? 128 : 32
        // Shifting by the full width gives 0 in Swift, so a prefix of length 0 contains all addresses.
        return isIPv6 == prefix.isIPv6 && (0...width).contains(length) && (bits ^ prefix.bits) >> (width - length) == 0
    }
}

// Makes addresses comparable, so that lists of interfaces always have the same order.
extension IPAddress: Comparable {
    public static func < (one: IPAddress, other: IPAddress) -> Bool { (one.bits, one.scope) < (other.bits, other.scope) }
}

extension IPAddress: CustomStringConvertible {
    /// The notation of RFC 5952, with a zone as a number: `fe80::1%2`.
    public var description: String {
        guard let four else { return Self.text(ofSix: bits) + (scope == 0 ? "" : "%\(scope)") }
        return stride(from: 24, through: 0, by: -8).map { String(four >> $0 & 0xFF) }.joined(separator: ".")
    }
}

// Parsers and formatter of the notations of IPv4 and IPv6. `LinkHost` also uses them for the hosts of links.
extension IPAddress {
    /// Parses an IPv4 address in dotted form, such as `192.0.2.1`: four numbers up to 255, without leading zeros.
    static func four(_ bytes: some Collection<UInt8>) -> UInt32? {
        var address: UInt32 = 0
        var (ended, octet, digits) = (0, UInt32(0), 0)
        for byte in bytes {
            if byte == UInt8(ascii: ".") {
                guard digits > 0, ended < 3 else { return nil }
                address = address << 8 | octet
                (ended, octet, digits) = (ended + 1, 0, 0)
            } else {
                guard ASCII.isDigit(byte), digits == 0 || octet > 0 else { return nil }
                octet = octet * 10 + UInt32(byte & 0x0F)
                digits += 1
                guard octet <= 0xFF else { return nil }
            }
        }
        return digits > 0 && ended == 3 ? address << 8 | octet : nil
    }

    /// Parses an IPv6 address such as `2001:db8::1` or `::ffff:192.0.2.1`, without brackets and zone.
    static func six(_ bytes: some Collection<UInt8>) -> UInt128? {
        let colon = UInt8(ascii: ":")
        var rest = bytes[...]
        var (pieces, count) = (UInt128(0), 0)
        /// The number of groups before `::`, which replaces one or more groups of zeros; `nil` if there is no `::`.
        var before: Int?
        if rest.starts(with: [colon, colon]) {
            before = 0
            rest = rest.dropFirst(2)
        }
        while !rest.isEmpty {
            guard count < 8 else { return nil }
            let digits = rest.prefix { Hexadecimal.value(of: $0) != nil }
            let next = rest[digits.endIndex...]
            if next.first == UInt8(ascii: ".") {
                guard count <= 6, let four = four(rest) else { return nil }
                (pieces, count) = (pieces << 32 | UInt128(four), count + 2)
                break
            }
            guard (1...4).contains(digits.count) else { return nil }
            pieces = pieces << 16 | digits.reduce(0) { $0 << 4 | UInt128(Hexadecimal.value(of: $1) ?? 0) }
            count += 1
            guard !next.isEmpty else { break }
            rest = next.dropFirst()
            guard next.first == colon, let following = rest.first else { return nil }
            if following == colon {
                guard before == nil else { return nil }
                before = count
                rest = rest.dropFirst()
            }
        }
        guard let before else { return count == 8 ? pieces : nil }
        guard count < 8 else { return nil }
        let behind = 16 * (count - before)
        return (pieces >> behind) << (128 - 16 * before) | pieces & (1 << behind - 1)
    }

    /// Formats an IPv6 address as groups of lower-case hexadecimal digits. The first longest run of two or more zero groups becomes `::`.
    /// The last 32 bits are never written as a dotted IPv4 address.
    static func text(ofSix bits: UInt128) -> String {
        let pieces = (1...8).map { UInt16(truncatingIfNeeded: bits >> (128 - 16 * $0)) }
        var longest = 0..<0
        var start = 0
        while start < 8 {
            var end = start
            while end < 8, pieces[end] == 0 { end += 1 }
            if end - start > max(1, longest.count) { longest = start..<end }
            start = max(end, start + 1)
        }
        func joined(_ pieces: ArraySlice<UInt16>) -> String { pieces.map { String($0, radix: 16) }.joined(separator: ":") }
        guard !longest.isEmpty else { return joined(pieces[...]) }
        return joined(pieces[..<longest.lowerBound]) + "::" + joined(pieces[longest.upperBound...])
    }
}
