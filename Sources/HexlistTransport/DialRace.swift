import HexlistModel
public import NIOCore

/// Dials several targets of one peer in a staggered race (Happy Eyeballs, RFC 8305), until one connection has completed its handshake.
final class DialRace {
    private struct Candidate {
        var target: DialTarget
        var address: IPAddress
    }

    private let purpose: ConnectionProtocol
    private let expected: PeerID?
    private let stagger: TimeAmount
    private let state: TransportState
    private let promise: EventLoopPromise<DialReport>
    /// The targets that have not been dialled yet, best first.
    private var targets: ArraySlice<DialTarget>
    /// The resolved addresses of a host name that have not been dialled yet. They are dialled before the remaining targets.
    private var candidates: ArraySlice<Candidate> = []
    private var running: [DialAttempt] = []
    private var failures: [DialFailure] = []
    private var timer: Scheduled<Void>?
    /// The host name that is being resolved, with the timeout of the lookup.
    private var lookup: (target: DialTarget, deadline: Scheduled<Void>)?
    private var isOver = false

    init(
        targets: [DialTarget], purpose: ConnectionProtocol, expecting expected: PeerID?, stagger: TimeAmount, state: TransportState,
        promise: EventLoopPromise<DialReport>
    ) {
        self.purpose = purpose
        self.targets = targets[...]
        self.expected = expected
        self.stagger = stagger
        self.state = state
        self.promise = promise
    }

    func start() {
        state.began(self)
        startNext()
    }

    func cancel() {
        guard !isOver else { return }
        if let lookup { failures.append(DialFailure(target: lookup.target, error: .cancelled)) }
        failures += running.map { DialFailure(target: $0.target, error: .cancelled) }
        end(nil)
    }

    /// Starts the next attempt. If no target is left, the race ends when the last running attempt ends.
    private func startNext() {
        timer?.cancel()
        timer = nil
        guard !isOver, lookup == nil else { return }
        if let candidate = candidates.popFirst() { return start(candidate) }
        guard let target = targets.popFirst() else {
            if running.isEmpty { end(nil) }
            return
        }
        if let address = IPAddress(scoped: target.host, interface: target.interface) {
            start(Candidate(target: target, address: address))
        } else if target.isName {
            resolve(target)
        } else {
            failed(target, target.invalidHostError)
        }
    }

    private func start(_ candidate: Candidate) {
        let attempt = DialAttempt(
            target: candidate.target, address: candidate.address, purpose: purpose, expecting: expected, state: state
        ) { attempt, result in
            self.ended(attempt, result)
        }
        running.append(attempt)
        if !candidates.isEmpty || !targets.isEmpty {
            timer = state.eventLoop.assumeIsolated().scheduleTask(in: stagger) { self.startNext() }
        }
        attempt.start()
    }

    private func resolve(_ target: DialTarget) {
        let deadline = state.eventLoop.assumeIsolated().scheduleTask(in: DialAttempt.time) {
            self.resolved(target, .failure(.timeout))
        }
        lookup = (target, deadline)
        state.resolver.resolve(target.host) { self.resolved(target, $0) }
    }

    private func resolved(_ target: DialTarget, _ result: NameResolver.LookupResult) {
        guard !isOver, let lookup, lookup.target == target else { return }
        lookup.deadline.cancel()
        self.lookup = nil
        switch result {
        case .success(let addresses):
            candidates = addresses.map { Candidate(target: target, address: $0) }[...]
            startNext()
        case .failure(let error):
            failed(target, error)
        }
    }

    private func ended(_ attempt: DialAttempt, _ result: Result<DialAttempt.Established, DialError>) {
        running.removeAll { $0 === attempt }
        switch result {
        case .success(let connection):
            if isOver { connection.abort() } else { end(connection) }
        case .failure(let error):
            if !isOver { failed(attempt.target, error) }
        }
    }

    private func failed(_ target: DialTarget, _ error: DialError) {
        failures.append(DialFailure(target: target, error: error))
        startNext()
    }

    private func end(_ winner: DialAttempt.Established?) {
        isOver = true
        timer?.cancel()
        timer = nil
        lookup?.deadline.cancel()
        lookup = nil
        targets = []
        candidates = []
        for attempt in running { attempt.cancel() }
        running = []
        state.ended(self)
        switch winner {
        case .session(let connection): promise.succeed(DialReport(connection: connection, failures: failures))
        case .files(let connection): promise.succeed(DialReport(files: connection, failures: failures))
        case .serving(let connection):
            state.serves(connection)
            promise.succeed(DialReport(isServing: true, failures: failures))
        case nil: promise.succeed(DialReport(connection: nil, failures: failures))
        }
    }
}

/// A dial that is in progress.
public final class Dial: Sendable {
    /// The result. This future never fails.
    public let report: EventLoopFuture<DialReport>
    private let race: NIOLoopBoundBox<DialRace?>

    init(report: EventLoopFuture<DialReport>, race: NIOLoopBoundBox<DialRace?>) {
        self.report = report
        self.race = race
    }

    /// Cancels the dial. Attempts that are running are reported as `cancelled`. Thread-safe.
    public func cancel() {
        let race = race
        report.eventLoop.execute { race.value?.cancel() }
    }
}
