import HexlistAPI
import HexlistModel
import HexlistStore
import HexlistTransport
import ServiceLifecycle

/// One check of links of My Hexlist: reads the links, requests their pages, and marks the links whose pages no longer exist.
struct LinkCheckRun {
    private enum Event: Sendable {
        case response(LinkProbeQueue.Entry, Result<LinkProbeResponse, WebFault>)
        /// A host with waiting URLs may get its next request, because this time has come.
        case ready(ContinuousClock.Instant)
        /// The interval between two reports is over, so the results have to be stored and reported.
        case report
    }

    /// A URL that is being checked, and the links that have it.
    private struct Address {
        var url: String
        var positions: [LinkPosition]
    }

    /// Links are read from the store only while fewer than `window` URLs wait for their requests, and fewer than `maximumFindings` results
    /// wait for the next report.
    private static let (window, maximumFindings) = (2_000, 10_000)

    private let checker: LinkProbeSender
    private let store: HexStore
    private var source: MineLinkSource
    private var queue: LinkProbeQueue
    private var addresses: [Int: Address] = [:]
    private var nextID = 0
    private var result = MineCheckResult()
    /// The results since the last report that have to be stored, and those that have to be reported to the caller.
    private var results: [LinkCheckResult] = []
    private var findings: [CheckedLinkJSON] = []

    init(_ checker: LinkProbeSender, _ source: MineLinkSource, in store: HexStore) {
        self.checker = checker
        self.store = store
        self.source = source
        queue = LinkProbeQueue(pause: checker.pause)
    }

    /// Checks the links.
    /// - Parameter report: called about once a second, after the results so far were stored. If it throws, the check ends with its error.
    /// - Returns: the numbers of links by result.
    mutating func run(_ report: (MineCheckProgress) async throws -> Void) async throws -> MineCheckResult {
        try await withThrowingTaskGroup(of: Event.self) { group in
            defer { group.cancelAll() }
            var inFlight = 0
            var timer: ContinuousClock.Instant?
            group.addTask { [interval = checker.interval] in try await Self.sleep(interval) }
            while true {
                try await readMore()
                requests: while inFlight < LinkProbeSender.concurrency {
                    switch queue.next(now: .now) {
                    case .request(let entry):
                        inFlight += 1
                        group.addTask { [checker] in try await Self.send(entry, checker) }
                    case .wait(let time):
                        if timer.map({ time < $0 }) ?? true {
                            timer = time
                            group.addTask {
                                try await Task.sleep(until: time, clock: .continuous)
                                return .ready(time)
                            }
                        }
                        break requests
                    case .none: break requests
                    }
                }
                guard inFlight > 0 || queue.count > 0 || !source.isAtEnd, let event = try await group.next() else { break }
                switch event {
                case .ready(let time): if time == timer { timer = nil }
                case .response(let entry, let response):
                    inFlight -= 1
                    handle(response, of: entry)
                case .report:
                    guard !Task.isShuttingDownGracefully else { throw HexlistError(.internal, "hexlistd stops.") }
                    try await store(report)
                    group.addTask { [interval = checker.interval] in try await Self.sleep(interval) }
                }
            }
        }
        try await store(report)
        return result
    }

    private static func sleep(_ interval: Duration) async throws -> Event {
        try await Task.sleep(for: interval)
        return .report
    }

    private static func send(_ entry: LinkProbeQueue.Entry, _ checker: LinkProbeSender) async throws -> Event {
        do {
            return .response(entry, .success(try await checker.response(to: entry.probe)))
        } catch let fault as WebFault {
            return .response(entry, .failure(fault))
        }
    }

    /// Reads and enqueues links until enough URLs wait.
    private mutating func readMore() async throws {
        while queue.count < Self.window, findings.count < Self.maximumFindings, !source.isAtEnd {
            queue.forgetIdleHosts(now: .now)
            let links = try await source.next(in: store)
            for (url, links) in Dictionary(grouping: links, by: \.urlBytes) {
                let address = Address(url: String(decoding: url, as: UTF8.self), positions: links.map(\.position))
                guard let probe = LinkProbe(address.url) else {
                    end(address, .skipped(.notWeb))
                    continue
                }
                addresses[nextID] = address
                enqueue(LinkProbeQueue.Entry(id: nextID, probe: probe))
                nextID += 1
            }
        }
    }

    private mutating func enqueue(_ entry: LinkProbeQueue.Entry) {
        if let reason = queue.add(entry, now: .now) { end(entry.id, .unclear(reason, status: nil)) }
    }

    private mutating func handle(_ response: Result<LinkProbeResponse, WebFault>, of entry: LinkProbeQueue.Entry) {
        let host = entry.probe.target.host
        var wait = Duration.zero
        var entry = entry
        var step: LinkProbe.Step
        var failure: LinkCheckReason?
        switch response {
        case .success(let response): step = entry.probe.step(after: response)
        case .failure(let fault): step = .end(LinkProbe.result(after: fault))
        }
        if case .wait(let time) = step { (wait, step) = (time, .request) }
        if case .end(.unclear(let reason, _)) = step, Self.failures.contains(reason) { failure = reason }
        let dropped = queue.ended(host, now: .now, wait: wait, failure: failure)
        switch step {
        case .end(let result): end(entry.id, result)
        case .request, .wait: enqueue(entry)
        }
        if let failure { for entry in dropped { end(entry.id, .unclear(failure, status: nil)) } }
    }

    /// The reasons that are problems of the host, not of a single page.
    private static let failures: Set<LinkCheckReason> = [.busy, .noAddress, .unreachable, .timeout, .tls]

    private mutating func end(_ id: Int, _ result: LinkProbe.Result) {
        if let address = addresses.removeValue(forKey: id) { end(address, result) }
    }

    private mutating func end(_ address: Address, _ result: LinkProbe.Result) {
        let links = address.positions.count
        func report(_ state: CheckedLinkJSON.State, _ status: Int?, _ reason: LinkCheckReason? = nil) {
            findings += address.positions.map {
                CheckedLinkJSON(hex: $0.hex, number: $0.position + 1, url: address.url, state: state, status: status, reason: reason)
            }
        }
        func mark(_ status: Int?) {
            results += address.positions.map { LinkCheckResult(position: $0, urlBytes: Array(address.url.utf8), deadStatus: status) }
        }
        switch result {
        case .reachable:
            self.result.reachable += links
            mark(nil)
        case .dead(let status):
            self.result.dead += links
            mark(status)
            report(.dead, status)
        case .unclear(let reason, let status):
            self.result.unclear += links
            report(.unclear, status, reason)
        case .skipped(let reason):
            self.result.skipped += links
            report(.skipped, nil, reason)
        }
    }

    /// Stores the results since the last report, then reports them.
    private mutating func store(_ report: (MineCheckProgress) async throws -> Void) async throws {
        let changed = try await store.markChecked(results, at: Timestamp.now.milliseconds)
        results = []
        result.marked += changed.marked.count
        result.unmarked += changed.unmarked.count
        findings += changed.unmarked.map {
            CheckedLinkJSON(
                hex: $0.position.hex, number: $0.position.position + 1, url: String(decoding: $0.urlBytes, as: UTF8.self), state: .reachable
            )
        }
        try await report(MineCheckProgress(done: result.links, total: source.count, links: findings))
        findings = []
    }
}
