import HexlistModel

/// The address and the settings of a broker: `mqtts://[USER@]HOST[:PORT][?ca=FILE&password=FILE&id=TEXT&max=BYTES]`. With `mqtt://`, which
/// is allowed for loopback addresses only, the connection is not encrypted.
public struct MQTTAddress: Sendable, Equatable {
    public var isEncrypted: Bool
    /// A host name or a numeric address (IPv6 without brackets).
    public var host: String
    public var port: Int
    /// The user to log in as; `nil` to log in with this machine's certificate.
    public var user: String?
    /// The path of the file with the password, mode 0600.
    public var passwordFile: String?
    /// The path of a PEM file with the certificates that may sign the broker's certificate; `nil` for those of the system.
    public var caFile: String?
    /// The client id; `nil` for this machine's UUID.
    public var clientID: String?
    /// The largest envelope that the broker accepts, in bytes.
    public var maximumBytes: Int?
    /// The text from the configuration.
    public let text: String

    /// Parses the text from the configuration; `nil` if it is malformed.
    public init?(_ text: String) {
        guard text.utf8.count <= 4_096, let scheme = ["mqtts://", "mqtt://"].first(where: { text.utf8.starts(with: $0.utf8) }) else {
            return nil
        }
        self.text = text
        isEncrypted = scheme == "mqtts://"
        let parts = text.dropFirst(scheme.count).split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var place = parts[0]
        if let at = place.lastIndex(of: "@") {
            // A password in the address is refused, because the address is shown. The password has its own file.
            guard !place[..<at].contains(":"), let user = PercentEncoding.decode(place[..<at]), !user.isEmpty else { return nil }
            self.user = user
            place = place[place.index(after: at)...]
        }
        guard let (host, port) = Self.hostAndPort(place) else { return nil }
        self.host = host
        self.port = port ?? (isEncrypted ? 8_883 : 1_883)
        for member in parts.count > 1 ? parts[1].split(separator: "&") : [] {
            let pair = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, let value = PercentEncoding.decode(pair[1]), !value.isEmpty else { return nil }
            switch pair[0] {
            case "ca" where value.utf8.first == UInt8(ascii: "/"): caFile = value
            case "password" where value.utf8.first == UInt8(ascii: "/"): passwordFile = value
            case "id" where value.utf8.count <= 256: clientID = value
            case "max":
                guard let number = Int(value), number >= Self.smallestMaximum else { return nil }
                maximumBytes = number
            default: return nil
            }
        }
        guard isEncrypted || Self.isLoopback(host), isEncrypted || caFile == nil, user != nil || passwordFile == nil else { return nil }
    }

    /// The smallest permitted value of `max`, in bytes. An envelope of this size has room for a receipt.
    private static let smallestMaximum = 8_192

    /// The address without its query, to be shown in messages.
    public var place: String {
        "\(isEncrypted ? "mqtts" : "mqtt")://\(user.map { PercentEncoding.encode($0) + "@" } ?? "")\(HostPort.text(host, port))"
    }

    /// Whether the host is a numeric loopback address. Host names do not count, because they may resolve to another address later.
    static func isLoopback(_ host: String) -> Bool {
        IPAddress(host)?.isLoopback ?? false
    }

    private static func hostAndPort(_ text: Substring) -> (String, Int?)? {
        var host = text
        var port: Int?
        if let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") {
            guard let number = Int(text[text.index(after: colon)...]), (1...65_535).contains(number) else { return nil }
            port = number
            host = text[..<colon]
        }
        if host.hasPrefix("["), host.hasSuffix("]") {
            let address = String(host.dropFirst().dropLast())
            return IPAddress(address) == nil ? nil : (address, port)
        }
        let isName =
            !host.isEmpty && host.utf8.count <= 253
            && host.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "-._".utf8.contains($0) }
        return isName ? (String(host), port) : nil
    }
}
