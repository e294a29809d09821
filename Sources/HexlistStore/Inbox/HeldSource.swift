import HexlistModel

/// The group of addresses for quotas of held hexes: one household or host, as far as an address shows it.
enum HeldSource {
    /// Returns the name of the group of a numeric address:
    ///
    ///     127.0.0.0/8, ::1   loopback
    ///     fe80::/10          link-local%eth0, one for each interface
    ///     169.254.0.0/16     169.254.0.0/16, because the address does not identify the interface
    ///     other IPv6         20010db800010002/64, its subscriber (`IPAddress.subscriber`)
    ///     other IPv4         unchanged; an IPv4-mapped address as IPv4
    ///     anything else      unchanged, cut to 64 bytes
    ///
    /// Hexes that an earlier version held from a link-local or loopback address are counted separately until they are too old.
    static func of(_ address: String) -> String {
        let text = String(decoding: address.utf8.prefix(64), as: UTF8.self)
        guard let (address, zone) = IPAddress.withZone(text) else { return text }
        if address.isLoopback { return "loopback" }
        guard address.isIPv6 else { return address.isLinkLocal ? "169.254.0.0/16" : address.description }
        if address.isLinkLocal { return zone.map { "link-local%\($0)" } ?? "link-local" }
        return Hexadecimal.encode(address.subscriber.bytes.prefix(8)).lowercased() + "/64"
    }
}
