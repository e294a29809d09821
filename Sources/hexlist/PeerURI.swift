import HexlistAPI
import HexlistModel

/// What `hexlist id --qr` shows of this machine and `hexlist peer add` takes on another one:
/// `hexlist://peer/FINGERPRINT?name=Ada&address=192.168.1.5:24391`.
struct PeerURI: Equatable {
    /// The UUID follows from it.
    var fingerprint: Fingerprint
    /// The name the peer gives itself. Peer text.
    var name = ""
    /// `host:port`, the best first.
    var addresses: [String] = []

    private static let start = "hexlist://peer/"
    /// Bytes; more than its parts can have.
    private static let most = 4_096
    private static let mostAddresses = 8

    init(fingerprint: Fingerprint, name: String = "", addresses: [String] = []) {
        (self.fingerprint, self.name, self.addresses) = (fingerprint, name, addresses)
    }

    /// Unknown members are passed over: a newer version may say more.
    /// - Throws: `HexlistError` that says what is wrong.
    init(_ text: String) throws(HexlistError) {
        guard text.utf8.count <= Self.most, text.lowercased().hasPrefix(Self.start) else {
            throw Self.refused("It does not begin with `\(Self.start)`.")
        }
        let parts = text.dropFirst(Self.start.count).split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let digits = String(parts[0])
        guard digits.utf8.count == 64, let fingerprint = Fingerprint(digits) else {
            let isHexadecimal = digits.utf8.allSatisfy { Hexadecimal.value(of: $0) != nil }
            throw Self.refused(
                "The fingerprint has to be 64 hexadecimal digits, and "
                    + (isHexadecimal ? "it has \(digits.utf8.count)." : "there is something else in it."))
        }
        self.fingerprint = fingerprint
        for member in parts.count > 1 ? parts[1].split(separator: "&") : [] {
            let pair = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, let value = PercentEncoding.decode(pair[1]) else { throw Self.refused("`\(member)` cannot be read.") }
            switch pair[0] {
            case "name": name = PeerName.cut(value, bytes: ProtocolLimits.nameBytes)
            case "address" where addresses.count < Self.mostAddresses: addresses.append(value)
            default: break
            }
        }
    }

    var text: String {
        var members = name.isEmpty ? [] : ["name=\(PercentEncoding.encode(name))"]
        members += addresses.map { address in
            // Brackets and colons are what they are: shorter, and read by people.
            "address=" + address.split(separator: "%", omittingEmptySubsequences: false).joined(separator: "%25")
        }
        return Self.start + fingerprint.description + (members.isEmpty ? "" : "?" + members.joined(separator: "&"))
    }

    private static func refused(_ message: String) -> HexlistError {
        HexlistError(
            .badRequest, "This is no URI of a peer. \(TerminalText.clean(message, columns: 200))",
            hint: "`hexlist id --qr` prints it on the other machine; in a shell it needs quotes.")
    }
}
