package import HexlistModel

/// A URI that identifies a peer. `hexlist id --qr` prints it, and `hexlist peer add` reads it on another machine:
/// `hexlist://peer/FINGERPRINT?name=Ada&address=192.168.1.5:24391`.
package struct PeerURI: Equatable {
    /// The fingerprint of the peer's key. The UUID is derived from it.
    package var fingerprint: Fingerprint
    /// The name that the peer chose for itself. Untrusted text.
    package var name = ""
    /// The addresses of the peer as `host:port`, the best one first. Untrusted text.
    package var addresses: [String] = []

    private static let start = "hexlist://peer/"
    /// Maximum bytes of a URI. A valid one is shorter.
    private static let byteLimit = 4_096
    private static let addressLimit = 8

    package init(fingerprint: Fingerprint, name: String = "", addresses: [String] = []) {
        (self.fingerprint, self.name, self.addresses) = (fingerprint, name, addresses)
    }

    /// Parses a URI. Ignores unknown parameters, which newer versions may add.
    /// - Throws: `HexlistError` with the reason if the URI is invalid.
    package init(_ text: String) throws(HexlistError) {
        guard text.utf8.count <= Self.byteLimit, text.lowercased().hasPrefix(Self.start) else {
            throw Self.refused("It does not begin with `\(Self.start)`.")
        }
        let parts = text.dropFirst(Self.start.count).split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let digits = String(parts[0])
        guard digits.utf8.count == 64, let fingerprint = Fingerprint(digits) else {
            let isHexadecimal = digits.utf8.allSatisfy { Hexadecimal.value(of: $0) != nil }
            throw Self.refused(
                "The fingerprint needs 64 hexadecimal digits, but "
                    + (isHexadecimal ? "it has \(digits.utf8.count)." : "it contains something else."))
        }
        self.fingerprint = fingerprint
        for member in parts.count > 1 ? parts[1].split(separator: "&") : [] {
            let pair = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, let value = PercentEncoding.decode(pair[1]) else { throw Self.refused("`\(member)` cannot be read.") }
            switch pair[0] {
            case "name": name = PeerName.cut(value, bytes: ProtocolLimits.nameBytes)
            case "address" where addresses.count < Self.addressLimit: addresses.append(value)
            default: break
            }
        }
    }

    package var text: String {
        var members = name.isEmpty ? [] : ["name=\(PercentEncoding.encode(name))"]
        members += addresses.map { address in
            // Brackets and colons are not escaped, for readability. Only % has to be escaped.
            "address=" + address.split(separator: "%", omittingEmptySubsequences: false).joined(separator: "%25")
        }
        return Self.start + fingerprint.description + (members.isEmpty ? "" : "?" + members.joined(separator: "&"))
    }

    private static func refused(_ message: String) -> HexlistError {
        HexlistError(
            .badRequest, "This is not the URI of a peer. \(TerminalText.clean(message, columns: 200))",
            hint: "Copy it from `hexlist id --qr` on the other machine, and quote it in the shell.")
    }
}
