import HexlistDiscovery
import HexlistModel
import Synchronization
import Testing

@testable import HexlistDNS
@testable import HexlistDaemon

@Suite("Discovery on a machine", .timeLimit(.minutes(5)))
struct MachineDiscoveryTests {
    private static let announcement = ServiceAnnouncement(instanceName: "ada", port: 24_391, txt: [])

    /// A discovery without multicast, with a domain that lists no peer.
    private static func discovery() -> (discovery: CombinedDiscovery, questions: AsyncStream<String>) {
        let (questions, continuation) = AsyncStream.makeStream(of: String.self)
        let unicast = UnicastDiscovery(domains: ["corp.example"]) { name, type in
            continuation.yield("\(name) \(type)")
            return .none
        }
        return (CombinedDiscovery(multicast: nil, unicast: unicast), questions)
    }

    @Test("addresses are reported first, with the note that nothing is announced")
    func start() async {
        let (discovery, _) = Self.discovery()
        let events = Mutex<[DiscoveryEvent]>([])
        discovery.start(publishing: Self.announcement) { event in events.withLock { $0.append(event) } }
        let told = events.withLock { $0 }
        guard case .interfaces(let addresses)? = told.first else {
            Issue.record("\(told)")
            return
        }
        #expect(addresses.contains { $0.address == IPAddress("127.0.0.1") && $0.prefixLength == 8 && $0.index > 0 })
        #expect(told.dropFirst().first == .backend(.off))
        await discovery.stop()
        let count = events.withLock { $0.count }
        discovery.report(.woke)
        #expect(events.withLock { $0.count } == count)
    }

    @Test(
        "waking and network changes are reported, and each domain is queried again at once",
        arguments: [.woke, .interfaces([])] as [DiscoveryEvent])
    func askedAnew(event: DiscoveryEvent) async {
        let (discovery, questions) = Self.discovery()
        let (events, continuation) = AsyncStream.makeStream(of: DiscoveryEvent.self)
        discovery.start(publishing: Self.announcement) { continuation.yield($0) }
        var asked = questions.makeAsyncIterator()
        #expect(await asked.next() == "_hexlist._tcp.corp.example. pointer")
        // The domain lists no peer, so the next regular query is a minute later.
        for await event in events { if case .domain = event { break } }
        discovery.report(event)
        #expect(await asked.next() == "_hexlist._tcp.corp.example. pointer")
        await discovery.stop()
    }
}
