/// A numeric IP address. An IPv4 address written as IPv6 (`::ffff:192.0.2.1`) is the IPv4 address.
public struct IPAddress: Hashable, Sendable {
    /// The 128 bits of IPv6, with IPv4 as `::ffff:0:0/96`: one address has one value, however it was written.
    private let bits: UInt128
    /// Index of the interface of an IPv6 link-local address; 0 where it is not known, and for every other address.
    public let scope: UInt32

    private init(bits: UInt128, scope: UInt32 = 0) {
        self.bits = bits
        self.scope = scope
    }

    private init(four: UInt32) { self.init(bits: 0xFFFF << 32 | UInt128(four)) }

    /// - Parameter text: exactly one dotted quad or IPv6 address, without a zone. Numbers with zeros before them are refused: some
    ///   programs read them as octal.
    public init?(_ text: String) {
        if let four = Self.four(text.utf8) {
            self.init(four: four)
        } else if let six = Self.six(text.utf8) {
            self.init(bits: six)
        } else {
            return nil
        }
    }

    /// - Parameter bytes: 4 of IPv4 or 16 of IPv6, in network order.
    public init?(bytes: [UInt8]) {
        let number = bytes.prefix(16).reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
        switch bytes.count {
        case 4: self.init(four: UInt32(truncatingIfNeeded: number))
        case 16: self.init(bits: number)
        default: return nil
        }
    }

    /// - Parameter host: an address, which may have a zone; the zone is left out.
    public init?(ofHost host: String) {
        guard let address = Self.withZone(host)?.address else { return nil }
        self = address
    }

    /// Reads an address that may name its interface, as `fe80::1%eth0` and `fe80::1%2` do. Only what is written as IPv6 has a zone.
    /// - Returns: the zone as it is written, unchecked and of any length; `nil` where there is none.
    public static func withZone(_ text: String) -> (address: IPAddress, zone: Substring?)? {
        guard let mark = text.utf8.firstIndex(of: UInt8(ascii: "%")) else { return IPAddress(text).map { ($0, nil) } }
        return six(text[..<mark].utf8).map { (IPAddress(bits: $0), text[text.utf8.index(after: mark)...]) }
    }

    /// The same address on one interface, where it is an IPv6 link-local one; any other stays as it is.
    public func with(scope: UInt32) -> IPAddress {
        IPAddress(bits: bits, scope: isIPv6 && isLinkLocal ? scope : 0)
    }

    // MARK: What it is

    private var four: UInt32? { bits >> 32 == 0xFFFF ? UInt32(truncatingIfNeeded: bits) : nil }

    public var isIPv6: Bool { four == nil }

    /// 4 bytes or 16, in network order.
    public var bytes: [UInt8] {
        let count = isIPv6 ? 16 : 4
        return (1...count).map { UInt8(truncatingIfNeeded: bits >> (8 * (count - $0))) }
    }

    /// 127.0.0.0/8, ::1
    public var isLoopback: Bool { four.map { $0 >> 24 == 127 } ?? (bits == 1) }

    /// 169.254.0.0/16, fe80::/10
    public var isLinkLocal: Bool { four.map { $0 >> 16 == 0xA9FE } ?? (bits >> 118 == 0xFE80 >> 6) }

    /// Routed inside an organization and not on the Internet: 10/8, 172.16/12, 192.168/16, 100.64/10, fc00::/7.
    public var isPrivate: Bool {
        four.map { $0 >> 24 == 10 || $0 >> 20 == 0xAC1 || $0 >> 16 == 0xC0A8 || $0 >> 22 == 0x6440 >> 6 } ?? (bits >> 121 == 0xFC >> 1)
    }

    /// 224.0.0.0/4, ff00::/8
    public var isMulticast: Bool { four.map { $0 >> 28 == 0xE } ?? (bits >> 120 == 0xFF) }

    /// Of no single host: unspecified (all of 0.0.0.0/8), multicast, broadcast.
    public var isNoHost: Bool { isMulticast || (four.map { $0 >> 24 == 0 || $0 == .max } ?? (bits == 0)) }

    /// What one subscriber of a network can hold many of, as one: the /64 of an IPv6 address, and an IPv4 address. A link-local address
    /// stays whole, with its scope: all hosts of a link share one prefix.
    public var subscriber: IPAddress {
        isIPv6 && !isLinkLocal ? IPAddress(bits: (bits >> 64) << 64) : self
    }

    /// Whether the first `length` bits are those of `prefix`: 0 … 32 of IPv4, 0 … 128 of IPv6. Never across IP versions; scopes do not
    /// count.
    public func isInside(_ prefix: IPAddress, length: Int) -> Bool {
        let width = isIPv6 ? 128 : 32
        // A shift by the whole width gives 0 in Swift: a prefix of no bits holds every address.
        return isIPv6 == prefix.isIPv6 && (0...width).contains(length) && (bits ^ prefix.bits) >> (width - length) == 0
    }
}

// Interfaces are listed in an order that does not change by itself.
extension IPAddress: Comparable {
    public static func < (one: IPAddress, other: IPAddress) -> Bool { (one.bits, one.scope) < (other.bits, other.scope) }
}

extension IPAddress: CustomStringConvertible {
    /// As RFC 5952 has it; the zone is a number: `fe80::1%2`.
    public var description: String {
        guard let four else { return Self.text(ofSix: bits) + (scope == 0 ? "" : "%\(scope)") }
        return stride(from: 24, through: 0, by: -8).map { String(four >> $0 & 0xFF) }.joined(separator: ".")
    }
}

// The two notations. A host of a link is read with them too (`LinkHost`), under a rule of its own: it ends in a number only where the
// whole of it is an IPv4 address, and IPv6 is never shown with dots.
extension IPAddress {
    /// - Parameter bytes: `192.0.2.1`: four numbers up to 255, without zeros before them.
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

    /// - Parameter bytes: `2001:db8::1`, `::ffff:192.0.2.1`; no brackets, no zone.
    static func six(_ bytes: some Collection<UInt8>) -> UInt128? {
        let colon = UInt8(ascii: ":")
        var rest = bytes[...]
        var (pieces, count) = (UInt128(0), 0)
        /// Pieces before `::`, which stands for one piece of zeros or more.
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

    /// In lower case, the longest run of two zeros or more as `::`, the first of equal ones; never with dots.
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
