import HexlistModel
import HexlistNode
import HexlistStore
import Logging
import Synchronization

/// The user's hooks and the workers that run them.
actor Hooks {
    private let folder: HookFolder
    private let keeper: NodeSupervisor
    private let environment: @Sendable () -> [String]
    private let faults: HookFaults
    private let pause: @Sendable (Duration) -> Duration
    private let logger: Logger
    private let timeLimit = Mutex<Int64>(0)
    /// The running workers.
    private var workers: [EventType: Task<Void, Never>] = [:]

    /// - Parameters:
    ///   - environment: the environment of a hook that starts now.
    ///   - pause: the pause to make, given the one that is due before a hook is tried again. They differ only in tests.
    init(
        folder: HookFolder, keeper: NodeSupervisor, environment: @escaping @Sendable () -> [String], faults: HookFaults, logger: Logger,
        pause: @escaping @Sendable (Duration) -> Duration = { $0 }
    ) {
        self.folder = folder
        self.keeper = keeper
        self.environment = environment
        self.faults = faults
        self.logger = logger
        self.pause = pause
    }

    /// Reads the folder, starts workers for new hooks and ends those of hooks that are gone. A hook that is there but may not be run keeps
    /// its position in the event log, and is looked at again at its next event; one that is gone loses it.
    func read(_ settings: Settings.Hooks) async {
        timeLimit.withLock { $0 = Int64(settings.timeoutSeconds) * 1_000 }
        let names = folder.names() ?? []
        let folderFault = folder.isThere ? folder.fault() : nil
        if let folderFault {
            logger.warning("hooks are not run", metadata: ["folder": "\(folder.path)", "reason": "\(folderFault)"])
        }
        var (wanted, runnable): ([EventType], [EventType]) = ([], [])
        var barred: [String: String] = [:]
        for name in names {
            guard let event = EventType.all.first(where: { $0.rawValue == name }) else {
                let nearest = NearestName.likely(name, among: EventType.all.map(\.rawValue))
                logger.warning("there is no event of a hook's name", metadata: ["hook": "\(name)", "nearest": "\(nearest ?? "")"])
                barred[name] = "there is no event of that name" + (nearest.map { "; did you mean \($0)?" } ?? "")
                continue
            }
            guard folderFault == nil else { continue }
            wanted.append(event)
            if let fault = folder.fault(of: name) {
                logger.warning("hook is not run", metadata: ["hook": "\(name)", "reason": "\(fault)"])
                barred[name] = fault.description
            } else {
                runnable.append(event)
            }
        }
        faults.folderRead(fault: folderFault?.description, barred: barred, running: runnable.map(\.rawValue))
        await end(workers.keys.filter { !wanted.contains($0) })
        do {
            if folderFault == nil { try await forget(EventType.all.filter { !names.contains($0.rawValue) }) }
            if !wanted.isEmpty { try await HookWorker.place(wanted, in: keeper.node.store) }
        } catch {
            logger.error("places of hooks in the event log cannot be kept", metadata: ["error": "\(error)"])
        }
        for event in wanted where workers[event] == nil { start(event) }
        if !runnable.isEmpty {
            logger.info("hooks are run", metadata: ["hooks": "\(runnable.map(\.rawValue).joined(separator: ", "))"])
        }
    }

    /// Ends all running hooks: SIGTERM, and a second later SIGKILL.
    func stop() async { await end(Array(workers.keys)) }

    private func start(_ event: EventType) {
        let worker = HookWorker(
            event: event, folder: folder, keeper: keeper, environment: environment, faults: faults,
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
        let kept = try await keeper.node.store.read { reader in try keys.filter { try reader.meta($0) != nil } }
        try await keeper.node.store.setMeta(Dictionary(uniqueKeysWithValues: kept.map { ($0, nil) }))
    }
}
