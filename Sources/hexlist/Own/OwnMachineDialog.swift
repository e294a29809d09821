import HexlistAPI
import HexlistClient
import HexlistModel
import UnixSignals

/// The part of `hexlist own add` after the machine was added: waits until both machines have one My Hexlist. Handles updates from the
/// daemon, Ctrl-C and the end of the waiting time one at a time.
struct OwnMachineDialog {
    private enum Event: Sendable {
        case machines([OwnMachineView])
        case stop
        case timeIsOver
        case failed(any Error)
    }

    let client: HexlistClient
    let output: Output
    let machine: PeerID
    /// The command to run on the other machine.
    let command: String

    /// Prints the state of the machine, and waits until it has the same My Hexlist.
    /// - Parameter seconds: maximum time to wait; `nil` does not wait.
    /// - Throws: `SilentExit` if the machine does not have the same My Hexlist in time.
    func follow(waiting seconds: Double?) async throws {
        guard let seconds else { return try await report(try await current()) }
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup)
        let (events, incoming) = AsyncStream.makeStream(of: Event.self)
        let end = try await withThrowingTaskGroup(of: Void.self) { [client] group in
            group.addTask {
                do {
                    try await client.watchOwnMachines {
                        incoming.yield(.machines($0))
                        return true
                    }
                } catch {
                    incoming.yield(.failed(error))
                }
            }
            group.addTask { for await _ in signals { incoming.yield(.stop) } }
            if seconds < .infinity {
                group.addTask {
                    try await Task.sleep(for: .seconds(seconds))
                    incoming.yield(.timeIsOver)
                }
            }
            defer { group.cancelAll() }
            return try await handle(events)
        }
        try await report(end)
        if end.state.known != .inSync { throw SilentExit(status: .failed) }
    }

    /// Prints notes about each new state.
    /// - Returns: the machine in the state in which the waiting ends.
    private func handle(_ events: AsyncStream<Event>) async throws -> OwnMachineView {
        var last: OwnMachineView?
        for await event in events {
            switch event {
            case .failed(let error): throw error
            case .machines(let machines):
                let view = try found(in: machines)
                defer { last = view }
                if isEnd(view) { return view }
                guard view.state != last?.state else { continue }
                for line in notes(view) { StandardError.wrapped(line) }
            case .stop, .timeIsOver:
                let view = if let last { last } else { try await current() }
                StandardError.wrapped(
                    "\(name(view)) stays added; the merge goes on as soon as it can. To see the state: `hexlist own`. To undo: "
                        + "`hexlist own remove \(machine.shortID)`.")
                return view
            }
        }
        return try await current()
    }

    private func isEnd(_ view: OwnMachineView) -> Bool {
        switch view.state.known {
        case .inSync, .clock, .differs, .full, .disk, .unsupported: true
        case .away, .waiting, .joining, .exchanging, .failed, nil: false
        }
    }

    private func notes(_ view: OwnMachineView) -> [String] {
        switch view.state.known {
        case .waiting:
            ["Now run on \(name(view)): \(command)", "Waiting for it; Ctrl-C ends only the waiting."]
        case .away: ["\(name(view)) is away. Waiting until it is online; Ctrl-C ends only the waiting."]
        case .joining: ["Merging …"]
        case .failed: [view.message.map { "\(TerminalText.clean($0, columns: 400)) Trying again …" } ?? "Trying again …"]
        case .exchanging, .inSync, .clock, .differs, .full, .disk, .unsupported, nil: []
        }
    }

    /// Prints the state: as JSON, or the result of the merge on standard output, or the problem on standard error.
    private func report(_ view: OwnMachineView) async throws {
        if output.json {
            try output.object(view)
            return try output.flush()
        }
        switch view.state.known {
        case .inSync:
            let size = try await client.previewOwnMachine(machine.description).here
            let lines = OwnText.merged(name(view), size, backup: try await backup(since: view.addedAt))
            try output.wrapped(lines[0])
            for line in lines.dropFirst() { try output.line(line) }  // not wrapped, so that the path can be copied
        case .clock, .differs, .full, .disk, .unsupported, .failed:
            StandardError.wrapped(OwnText.why(view).map { TerminalText.clean($0, columns: 400) } ?? OwnText.state(view))
        case .waiting: try output.wrapped("\(name(view)) is added. Now run there: \(command)")
        case .away: try output.wrapped("\(name(view)) is added, and away. The collections are merged when it is online.")
        case .joining: try output.wrapped("\(name(view)) is added; the collections are being merged.")
        case .exchanging, nil: try output.wrapped("\(name(view)) is added. If not done yet, run there: \(command)")
        }
        try output.flush()
    }

    /// Returns the file with the hexes of this machine before the merge, from the event about the merge.
    private func backup(since: Timestamp) async throws -> String? {
        var path: String?
        _ = try await client.events(.last(20), types: ["list.joined"], limit: 20) { event in
            guard event.peer == machine, event.at.milliseconds >= since.milliseconds else { return }
            path = event.data?.members?.first { PeerTextComparison.areEqual($0.name, "backup") }?.value.string ?? path
        }
        return path
    }

    private func current() async throws -> OwnMachineView { try found(in: try await client.ownMachines()) }

    private func found(in machines: [OwnMachineView]) throws -> OwnMachineView {
        guard let view = machines.first(where: { $0.uuid == machine }) else { throw OwnText.noOwnMachine(machine.shortID) }
        return view
    }

    private func name(_ view: OwnMachineView) -> String { view.label.shown(.named) }
}
