import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistNode
import HexlistStore
import HexlistSystem
import Logging

/// Runs one hook for each event of its type, one at a time and in order.
///
/// The position in the event log is stored after each event. After a crash, the hook may run again for the last event.
struct HookWorker: Sendable {
    let event: EventType
    let folder: HookFolder
    let supervisor: NodeSupervisor
    let environment: @Sendable () -> [String]
    let faults: HookFaults
    /// Returns the time limit of a run in milliseconds, as currently configured.
    let timeLimit: @Sendable () -> Int64
    /// Returns the pause for a back-off before a retry. Only tests use shorter pauses.
    let pause: @Sendable (Duration) -> Duration
    let logger: Logger

    /// Maximum number of events per read of the store.
    private static let batch = 100
    /// Maximum bytes of a hook's standard output and standard error together. A hook that writes more gets SIGPIPE.
    private static let outputBytes = 64 << 10
    /// Maximum bytes of a failed hook's output that are logged.
    private static let shownOutput = 500

    private var store: HexStore { supervisor.node.store }
    private var key: String { Self.key(of: event) }

    /// Returns the key of a hook's cursor in the store.
    static func key(of event: EventType) -> String { "hook \(event.rawValue)" }

    /// The state of the worker between two events.
    private struct Progress {
        var cursor: HookCursor?
        /// The reason why the hook could not run at the last check; `nil` if it could.
        var fault: HookFolder.Fault?
    }

    /// Runs the hook for new events, until the task is cancelled or the daemon stops.
    func run() async {
        var progress = Progress()
        await supervisor.atEachChange { await runForNewEvents(&progress) }
    }

    /// Runs the hook for the events since the last call.
    /// - Returns: whether to continue after the next change.
    private func runForNewEvents(_ progress: inout Progress) async -> Bool {
        do {
            if progress.cursor == nil { progress.cursor = try await begin() }
            if var cursor = progress.cursor {
                defer { progress.cursor = cursor }
                try await catchUp(&cursor, &progress.fault)
            }
        } catch is WorkerStopped {
            return false
        } catch is HookNotAllowed {  // the hook is checked again after the next change
        } catch {
            guard !Task.isCancelled else { return false }  // a read of the store ended with `CancellationError`
            logger.error("hook cannot read the event log", metadata: ["hook": "\(event.rawValue)", "error": "\(error)"])
        }
        return true
    }

    private struct WorkerStopped: Error {}
    private struct HookNotAllowed: Error {}

    /// Stores a position at the end of the event log for each hook that has none, so that new hooks run for later events only.
    static func place(_ events: [EventType], in store: HexStore) async throws {
        let keys = events.map(key)
        let (last, new) = try await store.read { reader in
            (try reader.counts().lastEvent, try keys.filter { try reader.meta($0).flatMap(HookCursor.init(text:)) == nil })
        }
        try await store.setMeta(Dictionary(new.map { ($0, HookCursor(number: last).text) }) { first, _ in first })
    }

    private func begin() async throws -> HookCursor {
        let (text, last) = try await store.read { (try $0.meta(key), try $0.counts().lastEvent) }
        return text.flatMap(HookCursor.init(text:)) ?? HookCursor(number: last)
    }

    private func catchUp(_ cursor: inout HookCursor, _ fault: inout HookFolder.Fault?) async throws {
        var hasMore = true
        while hasMore {
            let since = cursor.number
            let (events, last) = try await store.read {
                (try $0.eventPage(since: since, limit: Self.batch, of: [event]), try $0.counts().lastEvent)
            }
            for event in events.items { try await deliver(event, &cursor, &fault) }
            hasMore = events.next != nil
            // Moves the cursor past events of other types. This is not stored, because it costs one query to skip them again after a
            // restart.
            if !hasMore { cursor.pass(last) }
        }
    }

    /// Checks whether the hook can run now. Returns the reason if it cannot. Logs a reason that differs from that of the last check.
    private func examine(_ last: inout HookFolder.Fault?) async -> HookFolder.Fault? {
        let name = event.rawValue
        func currentFault() -> HookFolder.Fault? { folder.fault() ?? folder.fault(of: name) }
        var fault = currentFault()
        // Some editors delete a file before they create the new version of it, so a missing hook is checked again after a second.
        if fault == .gone, last != .gone {
            try? await Task.sleep(for: pause(.seconds(1)))
            fault = currentFault()
        }
        if let fault, fault != last { logger.warning("hook is not run", metadata: ["hook": "\(name)", "reason": "\(fault)"]) }
        last = fault
        faults.examined(name, fault == .gone ? nil : fault?.description)
        return fault
    }

    /// Runs the hook for one event, until it succeeds or the retries are used up. If the hook was removed, the event is skipped. If the
    /// hook may not run, the cursor stays before the event.
    private func deliver(_ event: EventRow, _ cursor: inout HookCursor, _ fault: inout HookFolder.Fault?) async throws {
        let name = event.type.rawValue
        while true {
            guard !Task.isCancelled else { throw WorkerStopped() }
            switch await examine(&fault) {
            case nil: break
            case .gone:
                guard !Task.isCancelled else { throw WorkerStopped() }
                cursor.pass(event.number)
                return await save(cursor)
            case .refused: throw HookNotAllowed()
            }
            let shape = try await EventJSON.of([event], supervisor.node)[0]
            let outcome = await Program(folder.path(of: name)).run(
                input: shape.lineBytes, environment: environment() + ["HEXLIST_EVENT=\(name)"], folder: "/", milliseconds: timeLimit(),
                outputBytes: Self.outputBytes)
            guard let failure = Self.failure(outcome.end, milliseconds: timeLimit()) else {
                // The daemon is stopping: the hook runs again for this event after the next start.
                if outcome.end == .stopped { throw WorkerStopped() }
                cursor.pass(event.number)
                faults.ran(name, nil)
                await save(cursor)
                logger.debug("hook ran", metadata: ["hook": "\(name)", "event.number": "\(event.number)"])
                return
            }
            let decision = cursor.fail(event.number)
            faults.ran(name, "\(failure) (event \(event.number))")
            logger.warning(
                "hook failed",
                metadata: [
                    "hook": "\(name)", "event.number": "\(event.number)", "error": "\(failure)",
                    "next": "\(decision == .giveUp ? "the next event" : "again")",
                    "output": "\(String(decoding: outcome.output.prefix(Self.shownOutput), as: UTF8.self))",
                ])
            switch decision {
            case .retry(let time):
                await save(cursor)
                try? await Task.sleep(for: pause(time))
            case .giveUp:
                await giveUp(event, failure, cursor)
                return
            }
        }
    }

    /// Describes the failure of a run; `nil` if it succeeded or the daemon ended it.
    private static func failure(_ end: Program.Termination, milliseconds: Int64) -> String? {
        switch end {
        case .exited(0), .stopped: nil
        case .exited(let status): "it ended with status \(status)"
        case .signalled(let number): "it was ended by signal \(number)"
        case .timedOut: "it took longer than \(milliseconds / 1_000) s"
        case .notStarted(let reason): "it cannot be started: \(reason)"
        }
    }

    /// Stores the cursor. A failure is only logged. In that case the hook may run again for the event after the next start of the daemon.
    private func save(_ cursor: HookCursor) async {
        do {
            try await store.setMeta([key: cursor.text])
        } catch {
            logger.error(
                "position of a hook in the event log cannot be stored", metadata: ["hook": "\(event.rawValue)", "error": "\(error)"])
        }
    }

    /// Records `hook.failed` in the event log, unless the failed hook is one for `hook.failed`.
    private func giveUp(_ event: EventRow, _ failure: String, _ cursor: HookCursor) async {
        guard self.event != .hookFailed else { return await save(cursor) }
        let data = HookFailure(hook: self.event.rawValue, number: event.number, error: failure).jsonText
        do {
            try await store.appendEvent(
                .hookFailed, at: Timestamp.now.milliseconds, peer: event.peer, hex: event.hex, outboxID: event.outboxID, data: data,
                remembering: [key: cursor.text])
        } catch {
            logger.error(
                "position of a hook in the event log cannot be stored", metadata: ["hook": "\(self.event.rawValue)", "error": "\(error)"])
        }
    }
}

/// The `data` of `hook.failed`.
private struct HookFailure: Encodable, JSONEncodable {
    var hook: String
    var number: Int64
    var error: String
}
