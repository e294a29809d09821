import DaemonTestSupport
import Foundation
import HexlistJSON
import Testing
import Yams

/// Sends request bodies as described in Docs/openapi.yaml to a daemon. Optional members may be missing; required members may not.
@Suite("Docs/openapi.yaml: request bodies", .timeLimit(.minutes(5))) struct RequestBodyTests {
    /// One variant of an operation's body, with the required members only.
    struct Body {
        var operation: String
        var type: String
        var members: [String: String]
        /// The optional members, each with a value of its type.
        var optional: [String: String]

        func text(without left: String? = nil, adding: [String: String] = [:]) -> String {
            let all = members.filter { $0.key != left }.merging(adding) { $1 }
            return "{\(all.sorted { $0.key < $1.key }.map { "\"\($0)\":\($1)" }.joined(separator: ","))}"
        }
    }

    @Test("a body with exactly the required members is complete; without any one of them it is refused") func minimal()
        async throws
    {
        let bodies = try Self.bodies()
        #expect(bodies.count > 25)
        try await TestDaemon.with("ada") { daemons in
            for body in bodies {
                let reply = try await send(body, body.text(), daemons[0])
                #expect(!reply.contains("is missing") && !reply.contains("is unknown"), "\(body.operation) \(body.text()): \(reply)")
                for name in body.members.keys {
                    // Without the member, the body may match another variant, in which a different member is missing.
                    let reply = try await send(body, body.text(without: name), daemons[0])
                    #expect(
                        reply.contains("missing") || reply.contains("\"code\":\"malformed\"") || reply.contains("\"code\":\"badRequest\""),
                        "\(body.operation) \(body.text(without: name)): \(reply)")
                }
            }
        }
    }

    @Test("every described member is known") func known() async throws {
        try await TestDaemon.with("ada") { daemons in
            for body in try Self.bodies() {
                for (name, value) in body.optional {
                    let reply = try await send(body, body.text(adding: [name: value]), daemons[0])
                    #expect(
                        !reply.contains("is unknown") && !reply.contains(/: an? [a-z ]+ is expected/),
                        "\(body.operation) \(name): \(reply)")
                }
            }
        }
    }

    @Test("files are offered to all trusted peers or as a hex's links, without the members of other variants") func offers()
        async throws
    {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await ada.awaitPeers(1)
            _ = try await ada.client.trust(bob.uuid, fingerprint: nil)
            let file = FileManager.default.temporaryDirectory.appending(path: "offer-\(UUID().uuidString)")
            try Data("text".utf8).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            for body in ["{\"paths\":[\"\(file.path)\"],\"toAll\":true}", "{\"paths\":[\"\(file.path)\"],\"to\":[\"bob\"]}"] {
                let reply = try await ask(ada, request("POST /v1/offers", body: body))
                #expect(reply.status == 200 && reply.body.contains("{\"offer\":"), "\(body): \(reply.body)")
            }
            let kept = try await ask(
                ada, request("POST /v1/mine", body: #"{"description":"d","links":[{"url":"https://example.org/"}]}"#))
            let id = try #require(try JSONObject(JSONValue(parsing: kept.body))["id"]?.text)
            // An offer for a hex without files is refused after the body has been read.
            for body in ["{\"hex\":\(id),\"toAll\":true}", "{\"hex\":\(id),\"to\":[\"bob\"]}"] {
                let reply = try await ask(ada, request("POST /v1/offers", body: body))
                #expect(reply.body.contains("No link of hex \(id) leads to a file of a peer."), "\(body): \(reply.body)")
            }
        }
    }

    private func send(_ body: Body, _ text: String, _ daemon: TestDaemon) async throws -> String {
        try await ask(daemon, request(body.operation, headers: "Content-Type: \(body.type)\r\n", body: text + "\n")).body
    }

    // MARK: The page

    /// Every body with members, once for each variant of its required members.
    private static func bodies() throws -> [Body] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(contentsOf: root.appending(path: "Docs/openapi.yaml"), encoding: .utf8)
        let page = try #require(try compose(yaml: text))
        let description = Description(page: page)
        var bodies: [Body] = []
        for (path, item) in try #require(page["paths"]?.mapping) {
            for (method, operation) in try #require(item.mapping) {
                guard let method = method.string, let content = operation["requestBody"].map(description.resolved)?["content"]?.mapping,
                    let path = path.string
                else { continue }
                for (type, media) in content {
                    guard let schema = media["schema"], let type = type.string, type.hasSuffix("json") else { continue }
                    let line = "\(method.uppercased()) \(path.replacing("{id}", with: "1").replacing(/\{\w+\}/, with: "x"))"
                    let query = path == "/v1/sends" ? "?to=x" : ""
                    for way in description.ways(of: schema) {
                        let members = try way.required.map { name in
                            (name, description.sample(of: try #require(way.properties[name], "\(line): no property \(name)")))
                        }
                        let optional = way.properties.filter { !way.required.contains($0.key) }.mapValues(description.sample)
                        bodies.append(
                            Body(
                                operation: line + query, type: type, members: Dictionary(uniqueKeysWithValues: members), optional: optional)
                        )
                    }
                }
            }
        }
        return bodies
    }

    /// The schemas of Docs/openapi.yaml.
    private struct Description {
        let page: Node

        func resolved(_ node: Node) -> Node {
            guard let path = node["$ref"]?.string else { return node }
            let found = path.split(separator: "/").dropFirst().reduce(Optional(page)) { $0?[String($1)] }
            return found.map(resolved) ?? node
        }

        /// One variant of an object: its required members and all its members.
        struct Way {
            var required: Set<String> = []
            var properties: [String: Node] = [:]

            func with(_ other: Way) -> Way {
                Way(required: required.union(other.required), properties: properties.merging(other.properties) { first, _ in first })
            }
        }

        /// All variants of a schema; a body matches one of them.
        func ways(of schema: Node) -> [Way] {
            let schema = resolved(schema)
            var own = Way(required: Set(schema["required"]?.sequence?.compactMap(\.string) ?? []))
            for (name, node) in schema["properties"]?.mapping ?? [:] { name.string.map { own.properties[$0] = node } }
            var ways = [own]
            func combine(_ others: [Way]) { ways = ways.flatMap { way in others.map(way.with) } }
            for part in schema["allOf"]?.sequence ?? [] { combine(self.ways(of: part)) }
            for list in ["oneOf", "anyOf"] {
                if let parts = schema[list]?.sequence { combine(parts.flatMap { self.ways(of: $0) }) }
            }
            if schema["minProperties"] != nil, own.required.isEmpty {
                ways = own.properties.keys.sorted().map { Way(required: [$0], properties: own.properties) }
            }
            for name in schema["not"]?["required"]?.sequence?.compactMap(\.string) ?? [] {
                for index in ways.indices { ways[index].properties[name] = nil }
            }
            return ways
        }

        /// Returns a value that matches a schema, as JSON.
        func sample(of schema: Node) -> String {
            let schema = resolved(schema)
            if let word = schema["enum"]?.sequence?.first?.string { return "\"\(word)\"" }
            if let constant = schema["const"] { return constant.bool.map { "\($0)" } ?? "\"\(constant.string ?? "")\"" }
            for list in ["allOf", "oneOf", "anyOf"] {
                if let part = schema[list]?.sequence?.first, schema["type"] == nil { return sample(of: part) }
            }
            switch schema["type"]?.string ?? schema["type"]?.sequence?.first?.string {
            case "boolean": return "true"
            case "integer", "number": return schema["minimum"]?.string ?? "1"
            case "array":
                let item = schema["items"].map(sample) ?? "1"
                return "[\([String](repeating: item, count: schema["minItems"]?.int ?? 1).joined(separator: ","))]"
            case "object":
                let way = ways(of: schema).first ?? Way()
                return "{\(way.required.sorted().map { "\"\($0)\":\(way.properties[$0].map(sample) ?? "1")" }.joined(separator: ","))}"
            default:
                if schema["pattern"]?.string == "^[0-9]{6}$" { return "\"000000\"" }
                return "\"x\""
            }
        }
    }
}
