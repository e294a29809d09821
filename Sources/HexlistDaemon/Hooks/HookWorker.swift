import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistNode
import HexlistStore
import HexlistSystem
import Logging

/// Runs one hook for each event of its type, in order, one at a time, as they come.
///
/// The hook's position in the event log is durable after each handled event. If the daemon dies in between, the hook runs once more for
/// the same event.
struct HookWorker: Sendable {
    let event: EventType
    let folder: HookFolder
    let keeper: NodeSupervisor
    let environment: @Sendable () -> [String]
    let faults: HookFaults
    /// The milliseconds that one run may take, as configured now.
    let timeLimit: @Sendable () -> Int64
    /// The pause to make, given the one that is due before the hook is tried again. They differ only in tests.
    let pause: @Sendable (Duration) -> Duration
    let logger: Logger

    /// The most events read at once.
    private static let batch = 100
    /// The most bytes of a hook's output, standard output and error together. A hook that writes more finds it closed (SIGPIPE).
    private static let outputBytes = 64 << 10
    /// The most bytes of a failed hook's output that are logged.
    private static let shownOutput = 500

    private var store: HexStore { keeper.node.store }
    private var key: String { Self.key(of: event) }

    /// The key under which the store keeps the hook's cursor.
    static func key(of event: EventType) -> String { "hook \(event.rawValue)" }

    /// The state that is kept from one event to the next.
    private struct Place {
        var cursor: HookCursor?
        /// The reason why the hook could not be run when it was last looked at.
        var fault: HookFolder.Fault?
    }

    /// Runs until the task is cancelled or the daemon stops.
    func run() async {
        var place = Place()
        var node: Node? = keeper.node
        while let running = node, await follow(running, &place) { node = await keeper.successor(of: running) }
    }

    /// - Returns: whether to continue with the node that follows this one.
    private func follow(_ node: Node, _ place: inout Place) async -> Bool {
        // Begun before the first look, so that no change is missed in between.
        var changes = node.changes().makeAsyncIterator()
        repeat {
            do {
                if place.cursor == nil { place.cursor = try await begin() }
                if var cursor = place.cursor {
                    defer { place.cursor = cursor }
                    try await catchUp(&cursor, &place.fault)
                }
            } catch is Ended {
                return false
            } catch is Barred {  // looked at again after the next change
            } catch {
                logger.error("hook cannot read the event log", metadata: ["hook": "\(event.rawValue)", "error": "\(error)"])
            }
        } while await changes.next() != nil && !Task.isCancelled
        return !Task.isCancelled
    }

    private struct Ended: Error {}
    private struct Barred: Error {}

    /// Gives new hooks a position in the event log: they begin with the next event.
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
            // Other events do not concern it. The position is kept in memory only: passing them again costs one query.
            if !hasMore { cursor.pass(last) }
        }
    }

    /// The reason why the hook cannot be run now. A new reason is logged once.
    private func examine(_ last: inout HookFolder.Fault?) async -> HookFolder.Fault? {
        let name = event.rawValue
        func look() -> HookFolder.Fault? { folder.fault() ?? folder.fault(of: name) }
        var fault = look()
        // Editors replace a file by a new one, which appears a moment later.
        if fault == .gone, last != .gone {
            try? await Task.sleep(for: pause(.seconds(1)))
            fault = look()
        }
        if let fault, fault != last { logger.warning("hook is not run", metadata: ["hook": "\(name)", "reason": "\(fault)"]) }
        last = fault
        faults.examined(name, fault == .gone ? nil : fault?.description)
        return fault
    }

    /// Runs the hook for one event until it succeeds or is given up. A hook that is gone misses the event; one that may not be run keeps
    /// its position.
    private func deliver(_ event: EventRow, _ cursor: inout HookCursor, _ fault: inout HookFolder.Fault?) async throws {
        let name = event.type.rawValue
        while true {
            guard !Task.isCancelled else { throw Ended() }
            switch await examine(&fault) {
            case nil: break
            case .gone:
                guard !Task.isCancelled else { throw Ended() }
                cursor.pass(event.number)
                return await save(cursor)
            case .refused: throw Barred()
            }
            let shape = try await EventJSON.of([event], keeper.node)[0]
            let outcome = await Program(folder.path(of: name)).run(
                input: shape.lineBytes, environment: environment() + ["HEXLIST_EVENT=\(name)"], folder: "/", milliseconds: timeLimit(),
                outputBytes: Self.outputBytes)
            guard let failure = Self.failure(outcome.end, milliseconds: timeLimit()) else {
                // Stopped with the daemon: the hook runs again when the daemon does.
                if outcome.end == .stopped { throw Ended() }
                cursor.pass(event.number)
                faults.ran(name, nil)
                await save(cursor)
                logger.debug("hook ran", metadata: ["hook": "\(name)", "event.number": "\(event.number)"])
                return
            }
            let verdict = cursor.fail(event.number)
            faults.ran(name, "\(failure) (event \(event.number))")
            logger.warning(
                "hook failed",
                metadata: [
                    "hook": "\(name)", "event.number": "\(event.number)", "error": "\(failure)",
                    "next": "\(verdict == .givenUp ? "the next event" : "again")",
                    "output": "\(String(decoding: outcome.output.prefix(Self.shownOutput), as: UTF8.self))",
                ])
            switch verdict {
            case .again(let time):
                await save(cursor)
                try? await Task.sleep(for: pause(time))
            case .givenUp:
                await giveUp(event, failure, cursor)
                return
            }
        }
    }

    /// The failure in the end of a run; `nil` if there is none, and if the daemon ended it.
    private static func failure(_ end: Program.End, milliseconds: Int64) -> String? {
        switch end {
        case .exited(0), .stopped: nil
        case .exited(let status): "it ended with status \(status)"
        case .signalled(let number): "it was ended by signal \(number)"
        case .timedOut: "it took longer than \(milliseconds / 1_000) s"
        case .notStarted(let reason): "it cannot be started: \(reason)"
        }
    }

    /// Saves the cursor. If the store cannot be written now, that is no reason to run the hook again now.
    private func save(_ cursor: HookCursor) async {
        do {
            try await store.setMeta([key: cursor.text])
        } catch {
            logger.error("hook's place cannot be kept", metadata: ["hook": "\(event.rawValue)", "error": "\(error)"])
        }
    }

    /// Records in the event log that the hook was given up, unless the hook is the one for such events.
    private func giveUp(_ event: EventRow, _ failure: String, _ cursor: HookCursor) async {
        guard self.event != .hookFailed else { return await save(cursor) }
        let data = HookFailure(hook: self.event.rawValue, number: event.number, error: failure).jsonText
        do {
            try await store.appendEvent(
                .hookFailed, at: Timestamp.now.milliseconds, peer: event.peer, hex: event.hex, outboxID: event.outboxID, data: data,
                remembering: [key: cursor.text])
        } catch {
            logger.error("hook's place cannot be kept", metadata: ["hook": "\(self.event.rawValue)", "error": "\(error)"])
        }
    }
}

/// The `data` of `hook.failed`.
private struct HookFailure: Encodable, JSONEncodable {
    var hook: String
    var number: Int64
    var error: String
}
