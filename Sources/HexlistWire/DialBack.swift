public import HexlistModel

/// A request to be dialled on a port: to be dialled back, by which a machine learns whether others can reach it (Docs/Protocol.md, "Dialling
/// back"), or for a connection on which the dialer hands out files (`FileDial`; "Files").
public struct DialBack: Sendable, Equatable {
    /// The name in a Hello's `features` of a peer that answers such requests.
    public static let feature = "dialBack"

    /// A token made by the asking side; the answer repeats it.
    public var token: BootNonce
    /// The port to dial, 1024 … 65535. The address is the one the session comes from and no other.
    public var port: UInt16

    public init(token: BootNonce, port: UInt16) {
        self.token = token
        self.port = port
    }

    /// The wrapper's message, `<token> <port>`.
    public var message: String { "\(token) \(port)" }

    /// Reads a message; `nil` if it is no request.
    public init?(message: String) {
        guard let (token, rest) = DialBack.parts(message), let port = UInt16(rest), port >= 1_024 else { return nil }
        self.init(token: token, port: port)
    }

    /// The result of dialling back.
    public enum Result: String, Sendable, CaseIterable {
        /// The handshake was done, with the identity of the asking peer.
        case reached
        case refused, timeout, unreachable, closed, otherIdentity
        /// A service other than a Hexlist peer answered.
        case foreign
        /// The asking peer is not trusted, so nothing was dialled.
        case notTrusted
    }

    public struct Answer: Sendable, Equatable {
        public var token: BootNonce
        /// The result; `nil` for a word this version does not know.
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

    /// Splits a message of at most 48 bytes into a token and a word, with one space in between.
    private static func parts(_ message: String) -> (BootNonce, String)? {
        guard message.utf8.count <= 48 else { return nil }
        let parts = message.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 2, let token = BootNonce(String(parts[0])) else { return nil }
        return (token, String(parts[1]))
    }
}

extension Hello {
    /// Whether the sender answers requests to be dialled back.
    public var answersDialBack: Bool { features.contains { PeerText.areEqual($0, DialBack.feature) } }

    /// Whether the sender takes connections on which files are fetched.
    public var servesFiles: Bool { features.contains { PeerText.areEqual($0, ProtocolLimits.filesFeature) } }
}
