import HexlistDiscovery
import Testing

@testable import HexlistDNS

@Suite("Browsing a domain by polling")
struct DomainBrowserTests {
    private static let start = ContinuousClock.Instant.now
    private static let ada = InstanceKey(name: "ada", type: "_hexlist._tcp", domain: "corp.example")

    private static func label(_ text: String) -> [UInt8] { Array(text.utf8) }

    private static func record(_ key: InstanceKey = ada, _ number: Int = 0) -> Record {
        Record(key: key, interface: 0, ipv6: false, unicast: number)
    }

    private static func resolution(_ address: String, port: UInt16 = 24_391) -> Resolution {
        Resolution(host: "ada.corp.example.", address: address, port: port, txt: [label("id=x")])
    }

    private static func browser() throws -> DomainBrowser { try #require(DomainBrowser(domain: "corp.example.", now: start)) }

    /// A browser of a domain with the instance ada, whose resolver is open.
    private static func browserWithAda() throws -> DomainBrowser {
        var browser = try browser()
        #expect(
            browser.browsed(.found([label("ada")], seconds: 60), asked: start, now: start) == [
                .domain("corp.example", .running), .appeared(record(), interfaceName: nil),
            ])
        #expect(browser.resolve(record(), open: true, now: start) == [])
        return browser
    }

    @Test("the domain is queried at once, then after its TTL, within bounds")
    func times() throws {
        var browser = try Self.browser()
        #expect(browser.next.question == .browse && browser.next.at == Self.start)
        for (seconds, wait) in [(60, 60), (0, 5), (1, 5), (86_400, 300)] {
            _ = browser.browsed(.found([Self.label("ada")], seconds: seconds), asked: Self.start, now: Self.start)
            #expect(browser.next.at == Self.start + .seconds(wait))
        }
        let events = browser.browsed(.none, asked: Self.start, now: Self.start)
        #expect(browser.next.at == Self.start + DomainBrowser.emptyRefreshInterval)
        // The domain lists no instance: its name may be misspelt.
        guard case .domain("corp.example", .degraded(let text))? = events.first else {
            Issue.record("\(events)")
            return
        }
        #expect(text.contains("_hexlist._tcp.corp.example"))
    }

    @Test("an instance is queried only while its resolver is open, and again after its TTL")
    func onlyWhileWanted() throws {
        var browser = try Self.browser()
        _ = browser.browsed(.found([Self.label("ada")], seconds: 60), asked: Self.start, now: Self.start)
        #expect(browser.next.question == .browse)
        _ = browser.resolve(Self.record(), open: true, now: Self.start)
        #expect(browser.next.question == .resolve(Self.ada))
        #expect(browser.name(of: Self.ada)?.description == "ada._hexlist._tcp.corp.example.")
        let events = browser.resolved(Self.ada, .found([Self.resolution("10.1.0.2")], seconds: 20), asked: Self.start, now: Self.start)
        #expect(events == [.resolved(Self.record(), Self.resolution("10.1.0.2"))])
        #expect(browser.next.question == .resolve(Self.ada) && browser.next.at == Self.start + .seconds(20))
        _ = browser.resolve(Self.record(), open: false, now: Self.start)
        #expect(browser.next.question == .browse)
        // A reopened resolver reports cached records at once.
        #expect(
            browser.resolve(Self.record(), open: true, now: Self.start) == [.resolved(Self.record(), Self.resolution("10.1.0.2"))])
    }

    @Test("a host's address records come and go on their own; the port is followed")
    func addresses() throws {
        var browser = try Self.browserWithAda()
        let both = [Self.resolution("10.1.0.2"), Self.resolution("fd00::2")]
        #expect(
            browser.resolved(Self.ada, .found(both, seconds: 20), asked: Self.start, now: Self.start) == [
                .resolved(Self.record(), both[0]), .appeared(Self.record(Self.ada, 1), interfaceName: nil),
                .resolved(Self.record(Self.ada, 1), both[1]),
            ])
        let moved = Self.resolution("10.1.0.2", port: 25_000)
        #expect(
            browser.resolved(Self.ada, .found([moved], seconds: 20), asked: Self.start, now: Self.start) == [
                .resolved(Self.record(), moved), .withdrawn(Self.record(Self.ada, 1)),
            ])
        #expect(
            browser.browsed(.found([Self.label("bob")], seconds: 60), asked: Self.start, now: Self.start) == [
                .appeared(Self.record(InstanceKey(name: "bob", type: "_hexlist._tcp", domain: "corp.example")), interfaceName: nil),
                .withdrawn(Self.record()),
            ])
        #expect(browser.name(of: Self.ada) == nil)
        // A late answer is ignored.
        #expect(browser.resolved(Self.ada, .found(both, seconds: 20), asked: Self.start, now: Self.start) == [])
    }

    @Test("a silent server withdraws nothing, is queried less and less often, and is reported once")
    func silence() throws {
        var browser = try Self.browserWithAda()
        _ = browser.resolved(Self.ada, .found([Self.resolution("10.1.0.2")], seconds: 300), asked: Self.start, now: Self.start)
        var now = Self.start + .seconds(60)
        let first = browser.browsed(.failed("gone"), asked: now, now: now)
        guard case .domain("corp.example", .unavailable(let text)) = first.first, first.count == 1 else {
            Issue.record("\(first)")
            return
        }
        #expect(text.contains("corp.example") && text.contains("gone"))
        var waits: [Duration] = [browser.next.at - now]
        for _ in 0..<5 {
            now = browser.next.at
            #expect(browser.browsed(.failed("gone"), asked: now, now: now) == [])
            waits.append(browser.next.at - now)
        }
        #expect(waits == [5, 10, 20, 40, 60, 60].map { .seconds($0) })
        #expect(browser.browsed(.found([Self.label("ada")], seconds: 60), asked: now, now: now) == [.domain("corp.example", .running)])
        // A single failure of an instance is retried after 5 s, although the failures of the domain had led to longer pauses.
        #expect(
            browser.resolved(Self.ada, .failed("gone"), asked: now, now: now) == [
                .resolveFailed(Self.record(), "DNS does not answer: gone")
            ])
        #expect(browser.next.at == now + .seconds(5))
    }

    @Test("a network change repeats all queries")
    func anotherNetwork() throws {
        var browser = try Self.browserWithAda()
        _ = browser.resolved(Self.ada, .found([Self.resolution("10.1.0.2")], seconds: 300), asked: Self.start, now: Self.start)
        let now = Self.start + .seconds(1)
        browser.networkChanged(now: now)
        #expect(browser.next.at == now)
        _ = browser.browsed(.found([Self.label("ada")], seconds: 300), asked: now, now: now)
        #expect(browser.next.question == .resolve(Self.ada) && browser.next.at == now)
        // The domain is queried once more when routes and resolv.conf have settled, then at the normal interval.
        _ = browser.resolve(Self.record(), open: false, now: now)
        #expect(browser.next.question == .browse && browser.next.at == now + DomainBrowser.secondBrowseDelay)
        let settled = now + DomainBrowser.secondBrowseDelay
        _ = browser.browsed(.found([Self.label("ada")], seconds: 300), asked: settled, now: settled)
        #expect(browser.next.at == settled + .seconds(300))
    }

    @Test("after a network change, unanswered queries are repeated at once and earlier failures do not count")
    func anotherNetworkMeanwhile() throws {
        var browser = try Self.browserWithAda()
        var now = Self.start
        for _ in 0..<6 {
            now += .seconds(60)
            _ = browser.browsed(.failed("gone"), asked: now, now: now)
            _ = browser.resolved(Self.ada, .failed("gone"), asked: now, now: now)
        }
        let asked = now
        let changed = now + .seconds(1)
        browser.networkChanged(now: changed)
        now = changed + .seconds(2)
        #expect(browser.browsed(.failed("gone"), asked: asked, now: now) == [])
        #expect(browser.resolved(Self.ada, .failed("gone"), asked: asked, now: now) == [])
        #expect(browser.next.at <= now)
        // A query sent after the change counts as the first failure.
        _ = browser.browsed(.failed("gone"), asked: now, now: now)
        _ = browser.resolved(Self.ada, .failed("gone"), asked: now, now: now)
        #expect(browser.next.at == changed + DomainBrowser.secondBrowseDelay)
        now = browser.next.at
        _ = browser.browsed(.failed("gone"), asked: now, now: now)
        #expect(browser.next.question == .resolve(Self.ada) && browser.next.at == changed + .seconds(7))
    }

    @Test("an address known from the previous network is reported, and queried again at once")
    func addressOfTheNetworkBefore() throws {
        var browser = try Self.browserWithAda()
        let changed = Self.start + .seconds(1)
        browser.networkChanged(now: changed)
        let now = changed + .seconds(1)
        let told = browser.resolved(Self.ada, .found([Self.resolution("10.1.0.2")], seconds: 300), asked: Self.start, now: now)
        #expect(told.contains(.resolved(Self.record(), Self.resolution("10.1.0.2"))))
        _ = browser.browsed(.found([Self.label("ada")], seconds: 300), asked: now, now: now)
        #expect(browser.next.question == .resolve(Self.ada) && browser.next.at <= now)
        _ = browser.resolved(Self.ada, .found([Self.resolution("10.2.0.2")], seconds: 300), asked: now, now: now)
        #expect(browser.next.question == .browse)
    }

    @Test("names that differ only in invalid bytes are one instance; each answer is bounded by the reported records")
    func odd() throws {
        var browser = try Self.browser()
        let events = browser.browsed(.found([[0xFF], [0xFE]], seconds: 60), asked: Self.start, now: Self.start)
        #expect(events.count == 2)
        #expect(DomainBrowser(domain: "a..b", now: Self.start) == nil)
    }
}
