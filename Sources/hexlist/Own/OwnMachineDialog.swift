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

    /// The end of the waiting.
    private enum End {
        /// The machine has the same My Hexlist, or a problem that is not solved by waiting.
        case reached(OwnMachineView)
        case stopped(OwnMachineView)
    }

    let client: HexlistClient
    let output: Output
    let machine: PeerID
    /// The commands to run on the other machine.
    let there: OwnAddLines
    /// The time at which the command began. Only a later merge is reported.
    let begun: Timestamp
    /// Whether the machines were paired just now, so that the last attempt of the daemon, if it failed, was before that.
    let isPaired: Bool

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
        switch end {
        case .reached(let view):
            try await report(view)
            if view.state.known != .inSync { throw SilentExit(status: .failed) }
        case .stopped(let view):
            OwnText.show(OwnText.stopped(view, there))
            if output.json {
                try output.object(view)
                try output.flush()
            }
            throw SilentExit(status: .failed)
        }
    }

    /// Prints notes about each new state.
    private func handle(_ events: AsyncStream<Event>) async throws -> End {
        var last: OwnMachineView?
        for await event in events {
            switch event {
            case .failed(let error): throw error
            case .machines(let machines):
                let view = try found(in: machines)
                defer { last = view }
                if isEnd(view) { return .reached(view) }
                guard view.state != last?.state || !PeerTextComparison.areEqual(view.message, last?.message) else { continue }
                if isPaired, last == nil, view.state.known == .failed { continue }
                OwnText.show(OwnText.waiting(view, there))
            case .stop, .timeIsOver:
                let view = if let last { last } else { try await current() }
                return .stopped(view)
            }
        }
        return .stopped(try await current())
    }

    private func isEnd(_ view: OwnMachineView) -> Bool {
        switch view.state.known {
        case .inSync, .clock, .differs, .full, .disk, .unsupported: true
        case .away, .waiting, .joining, .exchanging, .failed, .removed, nil: false
        }
    }

    /// Prints the state: as JSON, or the result of the merge on standard output, or the problem on standard error.
    private func report(_ view: OwnMachineView) async throws {
        if output.json {
            try output.object(view)
            return try output.flush()
        }
        if view.state.known == .inSync {
            let size = try await client.previewOwnMachine(machine.description).here
            try write(OwnText.merged(name(view), size, backup: try await backup()))
        } else {
            let (result, problem) = OwnText.added(view, there)
            try write(result)
            if let problem { StandardError.wrapped(problem) }
        }
        try output.flush()
    }

    private func write(_ lines: [OwnText.Line]) throws {
        for line in lines {
            switch line {
            case .text(let text): try output.wrapped(text)
            case .literal(let text): try output.line(text)
            }
        }
    }

    /// Returns the file with the hexes of this machine before the merge, from the event about the merge; `nil` if there was no merge since the
    /// command began.
    private func backup() async throws -> String? {
        var path: String?
        _ = try await client.events(.last(20), types: ["list.joined"], limit: 20) { event in
            guard event.peer == machine, event.at.milliseconds >= begun.milliseconds else { return }
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
