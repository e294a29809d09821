import HTTPTypes

/// The methods that are allowed for each path. With them, a request with another method gets the status 405 instead of the router's 404.
struct PathMethods: Sendable {
    /// The allowed methods by the components of a path. A component in braces matches any text.
    private var paths: [[Substring]: [HTTPRequest.Method]] = [:]

    /// - Parameter routes: paths such as `/v1/hexes/{id}`.
    init(_ routes: [(path: String, method: HTTPRequest.Method)]) {
        for route in routes { paths[route.path.split(separator: "/"), default: []].append(route.method) }
    }

    /// Returns the allowed methods in alphabetical order; empty for an unknown path. As in the router, a path with more literal components
    /// takes precedence.
    func allowed(at path: String) -> [HTTPRequest.Method] {
        let parts = path.split(separator: "/")
        let fitting = paths.filter { known, _ in
            known.count == parts.count && zip(known, parts).allSatisfy { Self.isAny($0) || $0 == $1 }
        }
        let nearest = fitting.min { $0.key.count(where: Self.isAny) < $1.key.count(where: Self.isAny) }
        return (nearest?.value ?? []).sorted { $0.rawValue < $1.rawValue }
    }

    private static func isAny(_ part: Substring) -> Bool { part.first == "{" }
}
