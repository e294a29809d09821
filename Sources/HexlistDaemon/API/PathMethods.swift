import HTTPTypes

/// Which methods the paths of the API take, to answer 405 where the router knows nothing but 404.
struct PathMethods: Sendable {
    /// Parts of the paths; one in braces stands for any.
    private var paths: [[Substring]: [HTTPRequest.Method]] = [:]

    /// - Parameter routes: as in `/v1/hexes/{id}`.
    init(_ routes: [(path: String, method: HTTPRequest.Method)]) {
        for route in routes { paths[route.path.split(separator: "/"), default: []].append(route.method) }
    }

    /// In alphabetical order; empty for a path that is none. As the router has it, a part that is named goes before one that stands for any.
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
