import HexlistAPI
import HexlistModel
import HexlistStore
import HexlistTransport
import NIOCore
import ServiceLifecycle

/// Sends the requests of a check of links, under the same rules as `TitleFetcher`: to allowed addresses only, without cookies.
/// `LinkCheckRun` decides about the order and stores the results.
struct LinkChecker: Sendable {
    /// Maximum number of requests in flight.
    static let concurrency = 4

    let client: WebClient
    /// Whether an address may be contacted.
    var isAllowed: @Sendable (IPAddress) -> Bool
    /// Maximum time of one request, after its host was resolved.
    var time = TimeAmount.seconds(10)
    /// Time between two requests to a host.
    var pause = Duration.milliseconds(500)
    /// Time between two reports of progress.
    var interval = Duration.seconds(1)

    /// Sends one request.
    func response(to probe: PageProbe) async throws -> PageProbeResponse {
        let addresses = try await client.addresses(of: probe.target, allowing: isAllowed)
        return try await client.send(
            probe.method, probe.target, toOneOf: addresses, until: .now() + time, reader: PageProbeResponse())
    }
}

/// One check of links of My Hexlist: reads the links, requests their pages, and marks the links whose pages no longer exist.
struct LinkCheckRun {
    private enum Event: Sendable {
        case response(PageProbeQueue.Entry, Result<PageProbeResponse, WebFault>)
        /// The time at which a host may get its next request.
        case ready(ContinuousClock.Instant)
        /// Time to store and report the results.
        case report
    }

    /// A URL that is being checked, and the links that have it.
    private struct Address {
        var url: String
        var places: [LinkPosition]
    }

    /// More links are read from the store while fewer URLs than `window` wait and fewer results than `maximumFindings` are to be reported.
    private static let (window, maximumFindings) = (2_000, 10_000)

    private let checker: LinkChecker
    private let store: HexStore
    private var source: MineLinkSource
    private var queue: PageProbeQueue
    private var addresses: [Int: Address] = [:]
    private var nextID = 0
    private var result = MineCheckResult()
    /// Results since the last report: those that are stored, and those that are reported.
    private var results: [LinkCheckResult] = []
    private var findings: [CheckedLinkJSON] = []

    init(_ checker: LinkChecker, _ source: MineLinkSource, in store: HexStore) {
        self.checker = checker
        self.store = store
        self.source = source
        queue = PageProbeQueue(pause: checker.pause)
    }

    /// Checks the links.
    /// - Parameter report: called about once a second, after the results so far were stored. Its error ends the check.
    /// - Returns: the numbers of links by result.
    mutating func run(_ report: (MineCheckProgress) async throws -> Void) async throws -> MineCheckResult {
        try await withThrowingTaskGroup(of: Event.self) { group in
            defer { group.cancelAll() }
            var inFlight = 0
            var timer: ContinuousClock.Instant?
            group.addTask { [interval = checker.interval] in try await Self.sleep(interval) }
            while true {
                try await readMore()
                requests: while inFlight < LinkChecker.concurrency {
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
                    take(response, of: entry)
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

    private static func send(_ entry: PageProbeQueue.Entry, _ checker: LinkChecker) async throws -> Event {
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
                let address = Address(url: String(decoding: url, as: UTF8.self), places: links.map(\.place))
                guard let probe = PageProbe(address.url) else {
                    end(address, .skipped(.notWeb))
                    continue
                }
                addresses[nextID] = address
                enqueue(PageProbeQueue.Entry(id: nextID, probe: probe))
                nextID += 1
            }
        }
    }

    private mutating func enqueue(_ entry: PageProbeQueue.Entry) {
        if let reason = queue.add(entry, now: .now) { end(entry.id, .unclear(reason, status: nil)) }
    }

    private mutating func take(_ response: Result<PageProbeResponse, WebFault>, of entry: PageProbeQueue.Entry) {
        let host = entry.probe.target.host
        var wait = Duration.zero
        var entry = entry
        var step: PageProbe.Step
        var failure: LinkCheckReason?
        switch response {
        case .success(let response): step = entry.probe.step(after: response)
        case .failure(let fault): step = .end(PageProbe.result(after: fault))
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

    /// Reasons that concern the host, not the page.
    private static let failures: Set<LinkCheckReason> = [.busy, .noAddress, .unreachable, .timeout, .tls]

    private mutating func end(_ id: Int, _ result: PageProbe.Result) {
        if let address = addresses.removeValue(forKey: id) { end(address, result) }
    }

    private mutating func end(_ address: Address, _ result: PageProbe.Result) {
        let links = address.places.count
        func report(_ state: CheckedLinkJSON.State, _ status: Int?, _ reason: LinkCheckReason? = nil) {
            findings += address.places.map {
                CheckedLinkJSON(hex: $0.hex, number: $0.position + 1, url: address.url, state: state, status: status, reason: reason)
            }
        }
        func mark(_ status: Int?) {
            results += address.places.map { LinkCheckResult(place: $0, urlBytes: Array(address.url.utf8), deadStatus: status) }
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
                hex: $0.place.hex, number: $0.place.position + 1, url: String(decoding: $0.urlBytes, as: UTF8.self), state: .reachable)
        }
        try await report(MineCheckProgress(done: result.links, total: source.count, links: findings))
        findings = []
    }
}

/// The links of a check, in the order in which lists show them.
struct MineLinkSource: Sendable {
    struct Link: Sendable {
        var place: LinkPosition
        var urlBytes: [UInt8]
    }

    private enum Rest {
        case links([Link])
        /// All links of My Hexlist after a cursor of `linkPage`.
        case all(after: Int64?)
    }

    /// Maximum number of hexes and links that a request may name, and maximum number of links that result.
    static let (maximumTargets, maximumLinks) = (1_000, 100_000)
    /// Number of links that are read from the store at once.
    private static let page = 1_000

    /// Number of links at the beginning of the check.
    let count: Int
    private var rest: Rest
    private(set) var isAtEnd: Bool

    /// - Throws: `.notFound` for hexes and links that do not exist; `.badRequest` for those that are not in My Hexlist, or too many.
    init(_ wanted: MineCheckRequest, in store: HexStore) async throws {
        let hexes = wanted.hexes ?? []
        let numbers = wanted.links ?? []
        guard wanted.hexes != nil || wanted.links != nil else {
            count = try await store.read { try $0.mineLinkCount() }
            (rest, isAtEnd) = (.all(after: nil), false)
            return
        }
        guard hexes.count + numbers.count <= Self.maximumTargets else {
            throw HexlistError(.badRequest, "One request checks \(Self.maximumTargets) hexes and links at most.", hint: "Split them.")
        }
        guard numbers.allSatisfy({ $0.count == 2 && $0.allSatisfy { $0 > 0 } }) else {
            throw HexlistError(.badRequest, "`links`: a link has the id of its hex and its number, as [7,2].")
        }
        let links = try await store.read { reader in
            var links: [Link] = []
            var seen: Set<LinkPosition> = []
            func add(_ found: [ListedLink]) throws {
                for link in found where seen.insert(LinkPosition(hex: link.id, position: link.position)).inserted {
                    links.append(Link(place: LinkPosition(hex: link.id, position: link.position), urlBytes: link.url))
                }
                guard links.count <= Self.maximumLinks else {
                    throw HexlistError(
                        .badRequest, "One request checks \(Self.maximumLinks) links of named hexes at most.", hint: "Check fewer hexes.")
                }
            }
            for id in hexes { try add(reader.mineLinks(of: id)) }
            for pair in numbers {
                let (hex, position) = (pair[0], Int(clamping: pair[1] - 1))
                let found = try reader.mineLinks(of: hex).filter { $0.id == hex && $0.position == position }
                guard !found.isEmpty else {
                    throw HexlistError(
                        .notFound, "Hex \(hex) has no link \(pair[1]).", hint: "`hexlist show \(hex)` numbers its links.")
                }
                try add(found)
            }
            return links
        }
        (count, rest, isAtEnd) = (links.count, .links(links), links.isEmpty)
    }

    /// Returns the next links. Updates `isAtEnd`.
    mutating func next(in store: HexStore) async throws -> [Link] {
        switch rest {
        case .links(let links):
            isAtEnd = true
            return links
        case .all(let cursor):
            let page = try await store.read {
                try $0.linkPage(HexFilter(location: .mine), unique: false, limit: Self.page, after: cursor)
            }
            rest = .all(after: page.next)
            isAtEnd = page.next == nil
            return page.items.map { Link(place: LinkPosition(hex: $0.id, position: $0.position), urlBytes: $0.url) }
        }
    }
}
