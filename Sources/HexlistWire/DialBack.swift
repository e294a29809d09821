public import HexlistModel

/// "Dial me back on this port": how a machine learns whether its port is reached from outside (Docs/Protocol.md, "Dialling back").
public struct DialBack: Sendable, Equatable {
    /// In `features` of a Hello that answers such requests.
    public static let feature = "dialBack"

    /// Minted by who asks; the answer repeats it.
    public var token: BootNonce
    /// 1024 … 65535. The address is the one the session comes from, and nobody else's.
    public var port: UInt16

    public init(token: BootNonce, port: UInt16) {
        self.token = token
        self.port = port
    }

    /// `<token> <port>`
    public var message: String { "\(token) \(port)" }

    /// `nil` for what is no request.
    public init?(message: String) {
        guard let (token, rest) = DialBack.parts(message), let port = UInt16(rest), port >= 1_024 else { return nil }
        self.init(token: token, port: port)
    }

    /// What came of it.
    public enum Result: String, Sendable, CaseIterable {
        /// The handshake was done, with the identity of who asked.
        case reached
        case refused, timeout, unreachable, closed, otherIdentity
        /// Something else than a Hexlist peer answers there.
        case foreign
        /// Who asked is not trusted, so nothing was dialled.
        case notTrusted
    }

    public struct Answer: Sendable, Equatable {
        public var token: BootNonce
        /// `nil` for a word this version does not know.
        public var result: Result?

        public init(token: BootNonce, result: Result?) {
            self.token = token
            self.result = result
        }

        /// `<token> <result>`
        public var message: String { "\(token) \(result?.rawValue ?? "unknown")" }

        public init?(message: String) {
            guard let (token, rest) = DialBack.parts(message) else { return nil }
            self.init(token: token, result: Result(rawValue: rest))
        }
    }

    /// Two words of bounded length, with one space between.
    private static func parts(_ message: String) -> (BootNonce, String)? {
        guard message.utf8.count <= 48 else { return nil }
        let parts = message.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 2, let token = BootNonce(String(parts[0])) else { return nil }
        return (token, String(parts[1]))
    }
}
