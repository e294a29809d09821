import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistNode
import HexlistStore
import HexlistSystem
import Logging

/// One hook: each event of its type in order, one at a time, as they come.
///
/// Where it is in the event log is durable after each event it has dealt with, so a daemon that dies in between runs it
/// once more for the same event.
struct HookWorker: Sendable {
    let event: EventType
    let folder: HookFolder
    let keeper: NodeKeeper
    let environment: [String]
    let faults: HookFaults
    /// Milliseconds one run may take, as configured now.
    let timeLimit: @Sendable () -> Int64
    /// The pause that is made, given the one that is due before the hook is tried again; they differ in tests alone.
    let pause: @Sendable (Duration) -> Duration
    let logger: Logger

    /// Events read at once.
    private static let batch = 100
    /// Bytes of a hook's output, standard output and error together. One that writes more finds it closed (SIGPIPE).
    private static let outputBytes = 64 << 10
    /// Bytes of a failed hook's output that are logged.
    private static let shownOutput = 500

    private var store: HexStore { keeper.node.store }
    private var key: String { Self.key(of: event) }

    /// Where the store keeps its cursor.
    static func key(of event: EventType) -> String { "hook \(event.rawValue)" }

    /// What goes on from one event to the next.
    private struct Place {
        var cursor: HookCursor?
        /// Why the hook could not be run when it was last looked at.
        var fault: HookFolder.Fault?
    }

    /// Until the task is cancelled or the daemon stops.
    func run() async {
        var place = Place()
        var node: Node? = keeper.node
        while let running = node, await follow(running, &place) { node = await keeper.successor(of: running) }
    }

    /// - Returns: whether there is more to do, by the node that comes after this one.
    private func follow(_ node: Node, _ place: inout Place) async -> Bool {
        // Before the first look, so that nothing falls between.
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
            } catch is Barred {  // looked at again with the next change
            } catch {
                logger.error("hook cannot read the event log", metadata: ["hook": "\(event.rawValue)", "error": "\(error)"])
            }
        } while await changes.next() != nil && !Task.isCancelled
        return !Task.isCancelled
    }

    private struct Ended: Error {}
    private struct Barred: Error {}

    /// Gives those hooks that are new a place in the event log: they begin with what comes next.
    static func place(_ events: [EventType], in store: HexStore) async throws {
        try await store.write { writer in
            let cursor = HookCursor(number: try writer.counts().lastEvent)
            for key in events.map(key) where try writer.meta(key).flatMap(HookCursor.init(text:)) == nil {
                try writer.setMeta(key, cursor.text)
            }
        }
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
            // Other events are none of its business. Kept in memory only: passing them again costs a look.
            if !hasMore { cursor.pass(last) }
        }
    }

    /// What keeps it from being run now. That is logged once.
    private func examine(_ last: inout HookFolder.Fault?) async -> HookFolder.Fault? {
        let name = event.rawValue
        func look() -> HookFolder.Fault? { folder.fault() ?? folder.fault(of: name) }
        var fault = look()
        // Editors put a new file in the place of the old one: a moment later it is there.
        if fault == .gone, last != .gone {
            try? await Task.sleep(for: pause(.seconds(1)))
            fault = look()
        }
        if let fault, fault != last { logger.warning("hook is not run", metadata: ["hook": "\(name)", "reason": "\(fault)"]) }
        last = fault
        faults.examined(name, fault == .gone ? nil : fault?.description)
        return fault
    }

    /// Runs it for one event until it succeeds or is given up. One that is gone misses the event; one that may not be run keeps its place.
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
            let shape = try await EventShape.of([event], keeper.node)[0]
            let outcome = await Program(folder.path(of: name)).run(
                input: shape.lineBytes, environment: environment + ["HEXLIST_EVENT=\(name)"], folder: "/", milliseconds: timeLimit(),
                outputBytes: Self.outputBytes)
            guard let failure = Self.failure(outcome.end, milliseconds: timeLimit()) else {
                // Stopped with the daemon: it is run again when that runs again.
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

    /// What is wrong with how it ended; `nil` for nothing, and where the daemon ended it.
    private static func failure(_ end: Program.End, milliseconds: Int64) -> String? {
        switch end {
        case .exited(0), .stopped: nil
        case .exited(let status): "it ended with status \(status)"
        case .signalled(let number): "it was ended by signal \(number)"
        case .timedOut: "it took longer than \(milliseconds / 1_000) s"
        case .notStarted(let reason): "it cannot be started: \(reason)"
        }
    }

    /// A store that cannot be written now is no reason to run a hook again now.
    private func save(_ cursor: HookCursor) async {
        do {
            try await store.write { try $0.setMeta(key, cursor.text) }
        } catch {
            logger.error("hook's place cannot be kept", metadata: ["hook": "\(event.rawValue)", "error": "\(error)"])
        }
    }

    /// Says so in the event log, but not of the hook that is told of that.
    private func giveUp(_ event: EventRow, _ failure: String, _ cursor: HookCursor) async {
        guard self.event != .hookFailed else { return await save(cursor) }
        let data = HookFailure(hook: self.event.rawValue, number: event.number, error: failure).jsonText
        do {
            try await store.write { writer in
                try writer.setMeta(key, cursor.text)
                try writer.appendEvent(
                    .hookFailed, at: Timestamp.now.milliseconds, peer: event.peer, hex: event.hex, outboxID: event.outboxID, data: data)
            }
            await keeper.node.storeChanged()
        } catch {
            logger.error("hook's place cannot be kept", metadata: ["hook": "\(self.event.rawValue)", "error": "\(error)"])
        }
    }
}

/// `data` of `hook.failed`
private struct HookFailure: JSONEncodable {
    var hook: String
    var number: Int64
    var error: String

    func write(to json: inout JSONWriter) {
        json.object {
            $0.member("hook", hook)
            $0.member("number", number)
            $0.member("error", error)
        }
    }
}
