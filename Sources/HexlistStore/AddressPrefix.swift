internal import Foundation
import HexlistModel

/// What held hexes are counted by: one household or host, as far as an address tells.
enum AddressPrefix {
    /// The /64 of an IPv6 address as 16 digits, a link-local one as it is without its scope, an IPv4 address (also one mapped into
    /// IPv6) as it is; anything else, cut to 64 bytes, as it is.
    static func of(_ address: String) -> String {
        let host = String(decoding: address.utf8.prefix { $0 != UInt8(ascii: "%") }.prefix(64), as: UTF8.self)
        var six = in6_addr()
        if inet_pton(AF_INET6, host, &six) == 1 {
            let bytes = withUnsafeBytes(of: &six) { Array($0) }
            if bytes.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]) {
                return bytes.suffix(4).map(String.init).joined(separator: ".")
            }
            // Each address of the link is a host of its own.
            if bytes[0] == 0xFE, bytes[1] & 0xC0 == 0x80 { return host.lowercased() }
            return Hexadecimal.encode(bytes.prefix(8)).lowercased() + "/64"
        }
        var four = in_addr()
        if inet_pton(AF_INET, host, &four) == 1 {
            return withUnsafeBytes(of: &four) { $0.map(String.init) }.joined(separator: ".")
        }
        return host
    }
}
