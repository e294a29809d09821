import HexlistModel
import HexlistNode
import HexlistStore
import Logging
import Synchronization

/// Manages the user's hooks: reads their folder, and starts and stops a worker for each hook.
actor Hooks {
    private let folder: HookFolder
    private let supervisor: NodeSupervisor
    private let environment: @Sendable () -> [String]
    private let faults: HookFaults
    private let pause: @Sendable (Duration) -> Duration
    private let logger: Logger
    private let timeLimit = Mutex<Int64>(0)
    private var workers: [EventType: Task<Void, Never>] = [:]

    /// - Parameters:
    ///   - environment: returns the environment of a hook.
    ///   - pause: returns the pause for a back-off before a retry. Only tests use shorter pauses.
    init(
        folder: HookFolder, supervisor: NodeSupervisor, environment: @escaping @Sendable () -> [String], faults: HookFaults, logger: Logger,
        pause: @escaping @Sendable (Duration) -> Duration = { $0 }
    ) {
        self.folder = folder
        self.supervisor = supervisor
        self.environment = environment
        self.faults = faults
        self.logger = logger
        self.pause = pause
    }

    /// Reads the folder, starts workers for new hooks, and ends workers of removed ones. A hook that may not run keeps its position in the
    /// event log, and is checked again at its next event. A removed hook loses its position.
    func read(_ settings: Settings.Hooks) async {
        timeLimit.withLock { $0 = Int64(settings.timeoutSeconds) * 1_000 }
        let names = folder.names() ?? []
        let folderFault = folder.isThere ? folder.fault() : nil
        if let folderFault {
            logger.warning("hooks are not run", metadata: ["folder": "\(folder.path)", "reason": "\(folderFault)"])
        }
        var (wanted, runnable): ([EventType], [EventType]) = ([], [])
        var notAllowed: [String: String] = [:]
        for name in names {
            guard let event = EventType.all.first(where: { $0.rawValue == name }) else {
                let nearest = NearestName.likely(name, among: EventType.all.map(\.rawValue))
                logger.warning("there is no event of a hook's name", metadata: ["hook": "\(name)", "nearest": "\(nearest ?? "")"])
                notAllowed[name] = "there is no event of that name" + (nearest.map { "; did you mean \($0)?" } ?? "")
                continue
            }
            guard folderFault == nil else { continue }
            wanted.append(event)
            if let fault = folder.fault(of: name) {
                logger.warning("hook is not run", metadata: ["hook": "\(name)", "reason": "\(fault)"])
                notAllowed[name] = fault.description
            } else {
                runnable.append(event)
            }
        }
        faults.folderRead(fault: folderFault?.description, notAllowed: notAllowed, running: runnable.map(\.rawValue))
        await end(workers.keys.filter { !wanted.contains($0) })
        do {
            if folderFault == nil { try await forget(EventType.all.filter { !names.contains($0.rawValue) }) }
            if !wanted.isEmpty { try await HookWorker.place(wanted, in: supervisor.node.store) }
        } catch {
            logger.error("positions of hooks in the event log cannot be stored", metadata: ["error": "\(error)"])
        }
        for event in wanted where workers[event] == nil { start(event) }
        if !runnable.isEmpty {
            logger.info("hooks are run", metadata: ["hooks": "\(runnable.map(\.rawValue).joined(separator: ", "))"])
        }
    }

    /// Ends all workers and running hooks. A running hook gets SIGTERM, and SIGKILL a second later.
    func stop() async { await end(Array(workers.keys)) }

    private func start(_ event: EventType) {
        let worker = HookWorker(
            event: event, folder: folder, supervisor: supervisor, environment: environment, faults: faults,
            timeLimit: { self.timeLimit.withLock { $0 } }, pause: pause, logger: logger)
        workers[event] = Task {
            await worker.run()
            workers[event] = nil
        }
    }

    private func end(_ events: [EventType]) async {
        let tasks = events.compactMap { workers[$0] }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    private func forget(_ events: [EventType]) async throws {
        let keys = events.map(HookWorker.key)
        let kept = try await supervisor.node.store.read { reader in try keys.filter { try reader.meta($0) != nil } }
        try await supervisor.node.store.setMeta(Dictionary(uniqueKeysWithValues: kept.map { ($0, nil) }))
    }
}
