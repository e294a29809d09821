public import HexlistModel

/// A request to the peer to dial this machine on a port: to test whether it is reachable (Docs/Protocol.md, "Dialling back"), or to serve
/// files on the connection (`FileDial`; "Files").
public struct DialBack: Sendable, Equatable {
    /// Feature of a `Hello`: the peer supports dialling back.
    public static let feature = "dialBack"

    /// A token chosen by the requester and returned in the response.
    public var token: BootNonce
    /// The port to dial, 1024 … 65535. The address is always that of the session.
    public var port: UInt16

    public init(token: BootNonce, port: UInt16) {
        self.token = token
        self.port = port
    }

    /// The wrapper's message, `<token> <port>`.
    public var message: String { "\(token) \(port)" }

    /// Parses a message; `nil` if it is not a request.
    public init?(message: String) {
        guard let (token, rest) = DialBack.parts(message), let port = UInt16(rest), port >= 1_024 else { return nil }
        self.init(token: token, port: port)
    }

    /// The result of dialling back.
    public enum Result: String, Sendable, CaseIterable {
        /// The handshake proved the requester's identity.
        case reached
        case refused, timeout, unreachable, closed, otherIdentity
        /// A service other than Hexlist answered.
        case foreign
        /// The peer did not dial, because the requester is not trusted.
        case notTrusted
    }

    public struct Response: Sendable, Equatable {
        public var token: BootNonce
        /// The result; `nil` if it is unknown to this version.
        public var result: Result?

        public init(token: BootNonce, result: Result?) {
            self.token = token
            self.result = result
        }

        /// The wrapper's message, `<token> <result>`.
        public var message: String { "\(token) \(result?.rawValue ?? "unknown")" }

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
    public var answersDialBack: Bool { features.contains { PeerText.areEqual($0, DialBack.feature) } }

    /// Whether the sender serves files.
    public var servesFiles: Bool { features.contains { PeerText.areEqual($0, ProtocolLimits.filesFeature) } }
}
