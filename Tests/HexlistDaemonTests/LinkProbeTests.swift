import HexlistAPI
import HexlistModel
import HexlistTransport
import Testing

@testable import HexlistDaemon

@Suite("Checks of pages") struct LinkProbeTests {
    /// A server's response to a request, or the absence of a response.
    private enum Reply {
        case status(Int, location: String? = nil, retryAfter: String? = nil)
        case fault(WebFault)
    }

    /// Feeds replies to a probe until it ends.
    /// - Returns: the result, and the requests and waits that led to it.
    private func run(_ url: String, _ replies: [Reply]) -> (result: LinkProbe.Result?, steps: [String]) {
        guard var probe = LinkProbe(url) else { return (nil, []) }
        var steps: [String] = []
        for reply in replies {
            steps.append("\(probe.method) \(probe.target.authority)\(probe.target.resource)")
            switch reply {
            case .fault(let fault): return (LinkProbe.result(after: fault), steps)
            case .status(let status, let location, let retryAfter):
                switch probe.step(after: LinkProbeResponse(status: status, location: location, retryAfter: retryAfter)) {
                case .request: break
                case .wait(let time): steps.append("wait \(time.components.seconds)")
                case .end(let result): return (result, steps)
                }
            }
        }
        return (nil, steps)
    }

    @Test("a page is dead only if GET says so; refusals and faults are unclear")
    func results() {
        let cases: [([Reply], LinkProbe.Result, Int)] = [
            ([.status(200)], .reachable(status: 200), 1), ([.status(204)], .reachable(status: 204), 1),
            ([.status(304)], .reachable(status: 304), 1), ([.status(302)], .reachable(status: 302), 1),
            ([.status(405), .status(200)], .reachable(status: 200), 2), ([.status(404), .status(200)], .reachable(status: 200), 2),
            ([.status(501), .status(404)], .dead(status: 404), 2), ([.status(404), .status(404)], .dead(status: 404), 2),
            ([.status(410), .status(410)], .dead(status: 410), 2),
            ([.status(401), .status(401)], .unclear(.refused, status: 401), 2),
            ([.status(403), .status(403)], .unclear(.refused, status: 403), 2),
            ([.status(451), .status(451)], .unclear(.refused, status: 451), 2),
            ([.status(404), .status(403)], .unclear(.refused, status: 403), 2),
            ([.status(500), .status(502)], .unclear(.serverFault, status: 502), 2),
            ([.status(999), .status(999)], .unclear(.serverFault, status: 999), 2),
            ([.status(404), .fault(.timeout)], .unclear(.timeout, status: nil), 2),
            ([.fault(.noAddress)], .unclear(.noAddress, status: nil), 1), ([.fault(.unreachable)], .unclear(.unreachable, status: nil), 1),
            ([.fault(.tls)], .unclear(.tls, status: nil), 1), ([.fault(.notHTTP)], .unclear(.notHTTP, status: nil), 1),
            ([.fault(.addressNotAllowed)], .skipped(.ownNetwork), 1),
        ]
        for (replies, result, count) in cases {
            let run = run("https://a.example/x", replies)
            #expect(run.result == result && run.steps.count == count, "\(replies)")
            #expect(run.steps.first == "head a.example/x" && (count == 1 || run.steps.last == "get a.example/x"))
        }
    }

    @Test("redirects are followed a few times; the end of the way decides")
    func redirects() {
        let moved = run("http://a.example/x", [.status(301, location: "https://b.example/y"), .status(404), .status(404)])
        #expect(moved.result == .dead(status: 404))
        #expect(moved.steps == ["head a.example/x", "head b.example/y", "get b.example/y"])
        let loop = run("http://a.example/", Array(repeating: .status(302, location: "/"), count: 20))
        #expect(loop.result == .unclear(.redirects, status: 302) && loop.steps.count == TitleRequestSequence.maximumRedirects + 1)
        #expect(run("http://a.example/", [.status(302, location: "ftp://b.example/")]).result == .unclear(.redirects, status: 302))
        #expect(
            run("http://a.example/", [.status(302, location: "http://10.0.0.1/"), .fault(.addressNotAllowed)]).result
                == .skipped(.ownNetwork))
    }

    @Test("a busy server is asked once more, after the time it names")
    func busy() {
        let cases: [(Reply, [String])] = [
            (.status(429, retryAfter: "7"), ["wait 7"]), (.status(503, retryAfter: "0"), ["wait 0"]), (.status(429), ["wait 10"]),
            (.status(429, retryAfter: "31"), []), (.status(429, retryAfter: "Wed, 21 Oct 2035 07:28:00 GMT"), []),
            (.status(429, retryAfter: "99999999999999999999"), []),
        ]
        for (reply, waits) in cases {
            let once = run("https://a.example/", [reply, .status(200)])
            #expect(once.steps.filter { $0.hasPrefix("wait") } == waits)
            #expect(once.result == (waits.isEmpty ? .unclear(.busy, status: 429) : .reachable(status: 200)), "\(reply)")
        }
        #expect(run("https://a.example/", [.status(429), .status(429)]).result == .unclear(.busy, status: 429))
        #expect(run("https://a.example/", [.status(503), .status(503)]).result == .unclear(.serverFault, status: 503))
    }

    @Test("links that are no web pages are not requested", arguments: ["mailto:a@b.example", "ftp://a.example/", "https://", "x", ""])
    func others(url: String) { #expect(LinkProbe(url) == nil) }
}

@Suite("Order of checks") struct LinkProbeQueueTests {
    private let start = ContinuousClock.now
    private var queue = LinkProbeQueue(pause: .seconds(1))

    private func entry(_ id: Int, _ host: String) throws -> LinkProbeQueue.Entry {
        LinkProbeQueue.Entry(id: id, probe: try #require(LinkProbe("https://\(host)/\(id)")))
    }

    /// The id of the next entry; -1 for a wait, `nil` for none.
    private mutating func next(_ seconds: Double) -> Int? {
        switch queue.next(now: start + .seconds(seconds)) {
        case .request(let entry): entry.id
        case .wait: -1
        case .none: nil
        }
    }

    @Test("each host has one request at a time, with a pause; other hosts go on")
    mutating func hosts() throws {
        for (id, host) in [(1, "a.example"), (2, "a.example"), (3, "b.example")] {
            let entry = try entry(id, host)
            #expect(queue.add(entry, now: start) == nil)
        }
        #expect(next(0) == 2 && next(0) == 3 && next(0) == nil && queue.count == 1)
        #expect(queue.ended("a.example", now: start + .seconds(5)).isEmpty)
        #expect(queue.next(now: start + .seconds(5)) == .wait(until: start + .seconds(6)))
        let other = try entry(4, "c.example")
        #expect(queue.add(other, now: start + .seconds(5)) == nil)
        #expect(next(5) == 4 && next(5.5) == -1 && next(6) == 1 && next(6) == nil && queue.count == 0)
    }

    @Test("a host that asks for a longer pause gets it, and its memory survives an idle time until then")
    mutating func pauses() throws {
        let first = try entry(1, "a.example"), second = try entry(2, "a.example")
        #expect(queue.add(first, now: start) == nil)
        #expect(next(0) == 1)
        #expect(queue.ended("a.example", now: start, wait: .seconds(20)).isEmpty)
        queue.forgetIdleHosts(now: start + .seconds(10))
        #expect(queue.add(second, now: start + .seconds(10)) == nil)
        #expect(next(10) == -1 && next(20) == 2)
    }

    @Test("a host that is busy or unknown gets nothing more", arguments: [LinkCheckReason.busy, .noAddress])
    mutating func closed(reason: LinkCheckReason) throws {
        let entries = try (1...3).map { try entry($0, "a.example") }
        for entry in entries.dropLast() { #expect(queue.add(entry, now: start) == nil) }
        #expect(next(0) == 2)
        #expect(queue.ended("a.example", now: start, failure: reason).map(\.id) == [1])
        queue.forgetIdleHosts(now: start + .seconds(100))
        #expect(queue.add(entries[2], now: start + .seconds(100)) == reason)
        #expect(next(100) == nil && queue.count == 0)
    }

    @Test("a host that does not respond is given up after three requests in a row")
    mutating func silent() throws {
        let entries = try (1...6).map { try entry($0, "a.example") }
        for entry in entries { #expect(queue.add(entry, now: start) == nil) }
        for (time, failure) in [(0.0, LinkCheckReason.timeout), (1, nil), (2, .timeout), (3, .tls)] {
            #expect(next(time) ?? -1 > 0)
            #expect(queue.ended("a.example", now: start + .seconds(time), failure: failure).isEmpty)
        }
        #expect(next(4) == 2)
        #expect(queue.ended("a.example", now: start + .seconds(4), failure: .timeout).map(\.id) == [1] && queue.count == 0)
    }
}
