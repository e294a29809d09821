import HexlistModel

/// Groups sender addresses for the quotas of held hexes. A group, called source, is one host or one household, as far as addresses
/// distinguish them.
enum HeldSource {
    /// Returns the name of the source of a numeric address:
    ///
    ///     127.0.0.0/8, ::1   loopback
    ///     fe80::/10          link-local%eth0, one for each interface
    ///     169.254.0.0/16     169.254.0.0/16, because the address does not identify the interface
    ///     other IPv6         20010db800010002/64, its subscriber (`IPAddress.subscriber`)
    ///     other IPv4         unchanged; an IPv4-mapped address as IPv4
    ///     anything else      unchanged, cut to 64 bytes
    ///
    /// An earlier version stored other names for link-local and loopback addresses. Its held hexes are counted separately until they are
    /// deleted because of their age.
    static func of(_ address: String) -> String {
        let text = String(decoding: address.utf8.prefix(64), as: UTF8.self)
        guard let (address, zone) = IPAddress.withZone(text) else { return text }
        if address.isLoopback { return "loopback" }
        guard address.isIPv6 else { return address.isLinkLocal ? "169.254.0.0/16" : address.description }
        if address.isLinkLocal { return zone.map { "link-local%\($0)" } ?? "link-local" }
        return Hexadecimal.encode(address.subscriber.bytes.prefix(8)).lowercased() + "/64"
    }
}
