import HexlistModel
import HexlistNode
import HexlistStore
import HexlistTransport
import Logging
import Synchronization

/// Owns the running node, and replaces it when the identity is rotated.
actor NodeSupervisor {
    /// Makes a node with an identity and a configuration. Does not start it.
    typealias Maker = @Sendable (Identity, NodeConfiguration) throws -> Node

    private let running: Mutex<Node>
    private let foreign: Mutex<Bool>
    private let stateFolder: String
    private let machine: CopiedStateDetector
    private let logger: Logger
    private let make: Maker
    private var rotation: Task<Void, any Error>?
    private var isStopped = false
    /// The error because of which the node could not be started again after a rotation of the identity; `nil` if there was none.
    private(set) var failure: HexlistError?

    init(node: Node, stateFolder: String, machine: CopiedStateDetector, isForeign: Bool, logger: Logger, make: @escaping Maker) {
        running = Mutex(node)
        foreign = Mutex(isForeign)
        self.stateFolder = stateFolder
        self.machine = machine
        self.logger = logger
        self.make = make
    }

    nonisolated var node: Node { running.withLock { $0 } }
    /// Whether the state folder was last used on another machine, and the user has not confirmed yet that this machine keeps the identity.
    nonisolated var isForeign: Bool { foreign.withLock { $0 } }

    /// Replaces the identity by a new one, and the node by one with the new identity. The store stays the same.
    /// - Throws: `HexlistError`: `badRequest`, `identity` or an error of the store, after which nothing was changed. After other errors,
    ///   the new identity is on the disk, and the daemon has to be restarted (`failure`).
    func rotate() async throws {
        guard !isStopped, rotation == nil else {
            throw HexlistError(.badRequest, "The identity is being changed already, or the daemon is stopping.")
        }
        let task = Task { try await change() }
        rotation = task
        defer { rotation = nil }
        try await task.value
    }

    private func change() async throws {
        let old = node
        await old.outbox.drain()
        let identity: Identity
        do {
            // The store is changed before the identity file. If the daemon crashes in between, the store accepts any identity.
            try await old.store.renewReplicas()
            try await old.store.setMeta(OwnIdentity.acceptingAny)
            identity = try Identity.replace(in: stateFolder)
        } catch {
            await old.outbox.resume()
            throw error
        }
        logger.notice("identity rotated", metadata: ["peer.id": "\(identity.peerID)", "before": "\(old.id)"])
        let configuration = await old.configuration
        await old.stop()
        do {
            let new = try make(identity, configuration)
            running.withLock { $0 = new }
            try await new.start()
        } catch {
            let fault = error as? HexlistError ?? HexlistError(.internal, "The node cannot be restarted: \(error)")
            failure = fault
            throw fault
        }
        do {
            try await node.store.setMeta(OwnIdentity.values(for: identity))
            try await keepIdentity()
        } catch {
            logger.warning("the owner of the identity cannot be stored", metadata: ["error": "\(error)"])
        }
    }

    /// Waits for a running rotation. Returns the node that replaced a stopped one; `nil` if none did, because the daemon stops.
    func successor(of stopped: Node) async -> Node? {
        _ = try? await rotation?.value
        return node === stopped ? nil : node
    }

    /// Calls `body` immediately, and after each change that the running node reports. If the node is replaced by one with another
    /// identity, its changes follow. Returns when the task is cancelled, the daemon stops or `body` returns `false`.
    /// - Parameter changes: the changes of a node to follow; all of them by default.
    nonisolated func atEachChange(
        _ changes: (Node) -> AsyncStream<Void> = { $0.changes() }, _ body: () async -> Bool
    ) async {
        var node: Node? = self.node
        while let running = node {
            // Subscribes to changes before the first call of `body`, so that none is missed.
            var iterator = changes(running).makeAsyncIterator()
            repeat {
                guard await body() else { return }
            } while await iterator.next() != nil && !Task.isCancelled
            guard !Task.isCancelled else { return }
            node = await successor(of: running)
        }
    }

    /// Records in the store that the identity belongs to this machine.
    func keepIdentity() async throws {
        try await machine.keep(node.store)
        foreign.withLock { $0 = false }
    }

    func reconfigure(_ configuration: NodeConfiguration) async {
        _ = try? await rotation?.value
        await node.reconfigure(configuration)
    }

    func stop() async {
        isStopped = true
        _ = try? await rotation?.value
        await node.stop()
    }
}
