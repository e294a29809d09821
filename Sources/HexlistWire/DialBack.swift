public import HexlistModel

/// A request to the peer to dial this machine on a port. The purpose is to test whether the machine can be reached (Docs/Protocol.md,
/// "Dialling back"), or to serve files on the new connection (`FileDial`, section "Files").
public struct DialBack: Sendable, Equatable {
    /// The feature in a `Hello` that means: this peer supports dialling back.
    public static let feature = "dialBack"

    /// A random token that the requester chose. The response has the same token.
    public var token: BootNonce
    /// The port to dial, 1024 … 65535. The address to dial is always that of the session.
    public var port: UInt16

    public init(token: BootNonce, port: UInt16) {
        self.token = token
        self.port = port
    }

    /// The message of the wrapper: `<token> <port>`.
    public var message: String { "\(token) \(port)" }

    /// Parses the message of a wrapper; `nil` if it is malformed.
    public init?(message: String) {
        guard let (token, rest) = DialBack.parts(message), let port = UInt16(rest), port >= 1_024 else { return nil }
        self.init(token: token, port: port)
    }

    /// The result of a dial that the peer requested.
    public enum Result: String, Sendable, CaseIterable {
        /// The peer answered, and the TLS handshake proved its identity.
        case reached
        case refused, timeout, unreachable, closed, otherIdentity
        /// A program other than Hexlist answered.
        case foreign
        /// No dial was made, because the requester is not trusted.
        case notTrusted
    }

    /// The peer's response to a dial-back request of this machine.
    public struct Response: Sendable, Equatable {
        public var token: BootNonce
        /// The result; `nil` if this version does not know it.
        public var result: Result?

        public init(token: BootNonce, result: Result?) {
            self.token = token
            self.result = result
        }

        /// The message of the wrapper: `<token> <result>`.
        public var message: String { "\(token) \(result?.rawValue ?? "unknown")" }

        /// Parses the message of a wrapper; `nil` if it is malformed.
        public init?(message: String) {
            guard let (token, rest) = DialBack.parts(message) else { return nil }
            self.init(token: token, result: Result(utf8: rest.utf8))
        }
    }

    /// Splits a message of at most 48 bytes into a token and a word, separated by one space.
    private static func parts(_ message: String) -> (BootNonce, String)? {
        guard message.utf8.count <= 48 else { return nil }
        let parts = message.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 2, let token = BootNonce(String(parts[0])) else { return nil }
        return (token, String(parts[1]))
    }
}

extension Hello {
    /// Whether the sender supports dialling back.
    public var answersDialBack: Bool { features.contains { PeerTextComparison.areEqual($0, DialBack.feature) } }

    /// Whether the sender serves files.
    public var servesFiles: Bool { features.contains { PeerTextComparison.areEqual($0, ProtocolLimits.filesFeature) } }

    /// Whether the sender serves lists and understands `ListNews`.
    public var exchangesLists: Bool { features.contains { PeerTextComparison.areEqual($0, ProtocolLimits.listsFeature) } }
}
