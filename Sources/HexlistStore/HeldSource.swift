internal import Foundation
import HexlistModel

/// The group of addresses a held hex is counted in: one household or host, as far as an address tells.
enum HeldSource {
    /// The name of the group of a numeric address:
    ///
    ///     127.0.0.0/8, ::1   loopback
    ///     fe80::/10          link-local%eth0, one for each interface
    ///     169.254.0.0/16     169.254.0.0/16: the address does not tell the interface
    ///     other IPv6         20010db800010002/64
    ///     other IPv4         as it is, also where it is mapped into IPv6
    ///     anything else      as it is, cut to 64 bytes
    ///
    /// Hexes an earlier version held are counted by a link-local or loopback address of their own until their days are over.
    static func of(_ address: String) -> String {
        let parts = address.utf8.prefix(64).split(separator: UInt8(ascii: "%"), maxSplits: 1, omittingEmptySubsequences: false)
        let texts = parts.map { String(decoding: $0, as: UTF8.self) }
        let host = texts.first ?? ""
        var six = in6_addr()
        if inet_pton(AF_INET6, host, &six) == 1 {
            let bytes = withUnsafeBytes(of: &six) { Array($0) }
            if bytes.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]) { return of(four: Array(bytes.suffix(4))) }
            if bytes == [UInt8](repeating: 0, count: 15) + [1] { return loopback }
            if bytes[0] == 0xFE, bytes[1] & 0xC0 == 0x80 { return texts.count > 1 ? "link-local%\(texts[1])" : "link-local" }
            return Hexadecimal.encode(bytes.prefix(8)).lowercased() + "/64"
        }
        var four = in_addr()
        if inet_pton(AF_INET, host, &four) == 1 { return of(four: withUnsafeBytes(of: &four) { Array($0) }) }
        return host
    }

    private static let loopback = "loopback"

    private static func of(four bytes: [UInt8]) -> String {
        if bytes[0] == 127 { return loopback }
        if bytes[0] == 169, bytes[1] == 254 { return "169.254.0.0/16" }
        return bytes.map(String.init).joined(separator: ".")
    }
}
