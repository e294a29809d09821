/// A network address that a user typed instead of a peer's name: `192.168.7.20`, `fe80::20%eth0`, `[fd00::20]:24391`, `ada.corp.example`,
/// `ada:25000`.
public struct TypedNetworkAddress: Sendable, Equatable {
    /// The text as the user typed it, which is also its form in the setting `peers`.
    public let text: String
    /// The address or host name without brackets and port.
    public let host: String

    /// Parses an address or a host name, with an optional port. A name without a dot and without a port is a peer's name, not a host name.
    /// - Returns: `nil` if the text is not an address.
    public init?(_ text: String) {
        guard (1...300).contains(text.utf8.count) else { return nil }
        self.text = text
        if Self.isNumeric(text) {
            host = text
            return
        }
        var rest = text[...]
        var hasPort = false
        if let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") {
            guard let port = UInt16(text[text.index(after: colon)...]), port > 0 else { return nil }
            rest = text[..<colon]
            hasPort = true
        }
        if rest.hasPrefix("["), rest.hasSuffix("]") {
            host = String(rest.dropFirst().dropLast())
            guard Self.isNumeric(host) else { return nil }
            return
        }
        host = String(rest)
        guard Self.isNumeric(host) || Self.isName(rest) && (hasPort || rest.dropLast().contains(".")) else { return nil }
    }

    private static func isNumeric(_ text: String) -> Bool { IPAddress.withZone(text) != nil }

    private static func isName(_ text: Substring) -> Bool {
        let labels = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let ofName = labels.last?.isEmpty == true ? labels.dropLast() : labels[...]  // without the empty label after a final dot
        return !ofName.isEmpty && text.utf8.count <= 253
            && ofName.allSatisfy { label in
                (1...63).contains(label.count) && label.allSatisfy { ASCII.isAlphanumeric($0) || "-_".utf8.contains($0) || $0 >= 0x80 }
            }
    }

    /// Whether `other` is the same host. IP addresses are compared by value, names without regard to case.
    public func isHost(_ other: String) -> Bool {
        if let one = IPAddress(ofHost: host), let other = IPAddress(ofHost: other) { return one == other }
        return host.lowercased().utf8.elementsEqual(other.lowercased().utf8)
    }

    /// A hint for the user with the line to add to the configuration.
    public var advice: String {
        "An address is named in the configuration: add it under `peers:`, as in `peers: [\"\(TerminalText.clean(text))\"]`, and reload it"
            + " (`hexlist config` shows the file). `hexlist peers` then lists the peer by its name."
    }
}
