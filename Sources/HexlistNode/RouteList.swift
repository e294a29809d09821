public import HexlistAPI
import HexlistEventLoop
public import HexlistModel
import HexlistTransport

/// Lists and tests the routes of a node.
public struct RouteList: Sendable {
    let node: Node

    /// All routes in the order in which they are used.
    public func all() async -> [RouteView] { await node.perform { $0.routes.views($0) } }

    /// Returns the number of envelopes in the folders that are sealed for a former identity of this machine. Brokers are not counted,
    /// because they do not report which messages they store.
    public func envelopes(for former: PeerID) async -> Int {
        await node.perform { node in
            let folders = node.routes.all.compactMap { ($0 as? FolderRoute)?.mailbox }
            let count = node.transport.fileThreads.run(on: node.eventLoop) { folders.reduce(0) { $0 + $1.count(for: former) } }
            return (try? await count.get()) ?? 0
        }
    }

    /// Posts a letter to this machine itself, and waits until it is read and opened, at most 30 s.
    /// - Throws: `HexlistError` `notFound`.
    public func test(_ name: String) async throws -> RouteTestResult {
        try await node.perform { node in
            guard let reader = node.routes.reader(name) else {
                throw HexlistError(.notFound, "There is no route `\(name)`.", hint: "To list the routes: `hexlist route`.")
            }
            let began = node.clocks.now
            let fault = await withCheckedContinuation { continuation in
                reader.test(node) { continuation.resume(returning: $0) }
            }
            if let fault { return RouteTestResult(message: fault.text) }
            return RouteTestResult(milliseconds: Int((node.clocks.now - began) / .milliseconds(1)))
        }
    }
}

extension Node {
    public nonisolated var routeList: RouteList { RouteList(node: self) }
}
