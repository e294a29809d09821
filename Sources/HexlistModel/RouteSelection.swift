/// The routes that may be used for a peer.
public enum RouteSelection: Sendable, Equatable {
    /// All routes. The default.
    case any
    /// No route: hexes wait until the peer is online.
    case noRoute
    /// The routes with these names; others are not used.
    case only([String])

    private static let (anyWord, noneWord) = ("any", "none")
    /// Maximum number of names.
    private static let maximumNames = 16

    /// Parses `any`, `none`, or names of routes separated by spaces; `nil` for any other text.
    public init?(_ text: String) {
        switch text {
        case Self.anyWord: self = .any
        case Self.noneWord: self = .noRoute
        default:
            guard text.utf8.count < 1_024 else { return nil }
            let names = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
            guard (1...Self.maximumNames).contains(names.count), names.allSatisfy(Self.isName) else { return nil }
            self = .only(names)
        }
    }

    public var text: String {
        switch self {
        case .any: Self.anyWord
        case .noRoute: Self.noneWord
        case .only(let names): names.joined(separator: " ")
        }
    }

    public func contains(_ name: String) -> Bool {
        switch self {
        case .any: true
        case .noRoute: false
        case .only(let names): names.contains { $0.utf8.elementsEqual(name.utf8) }
        }
    }

    /// Whether a text is a valid name of a route: 1 to 32 letters, digits, `-` and `_`, but not `any` or `none`.
    public static func isName(_ text: String) -> Bool {
        (1...32).contains(text.utf8.count) && text != anyWord && text != noneWord
            && text.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "-_".utf8.contains($0) }
    }
}
