import TestSupport
import HexlistModel
import Synchronization
import Testing

@testable import HexlistDiscovery

@Suite(.timeLimit(.minutes(5))) struct InMemoryDiscoveryTests {
    /// A directory fed by an in-memory discovery. The listener at the port answers probes.
    final class Node: Sendable {
        let id: PeerID
        let discovery: InMemoryDiscovery
        let state: Mutex<PeerDirectory>
        let events = Mutex<[DiscoveryEvent]>([])
        let world: Mutex<[UInt16: (PeerID, BootNonce)]>

        init(_ number: UInt64, _ link: InMemoryLink, _ world: World) {
            id = Stage.peer(number)
            discovery = InMemoryDiscovery(link: link)
            state = Mutex(PeerDirectory(own: id, boot: BootNonce(number), now: Stage.start))
            self.world = Mutex([:])
            self.shared = world
            self.number = number
        }
        let shared: World
        let number: UInt64

        func start(name: String, port: UInt16) {
            shared.listening.withLock { $0[port] = (id, BootNonce(number)) }
            let announcement = ServiceAnnouncement(displayName: name, peer: id, boot: BootNonce(number), port: port)
            discovery.start(publishing: announcement) { [self] event in
                events.withLock { $0.append(event) }
                handle(.discovery(event))
            }
        }

        func handle(_ input: PeerDirectory.Input) {
            var inputs = [input]
            while !inputs.isEmpty {
                let outputs = state.withLock { $0.handle(inputs.removeFirst(), now: Stage.start) }
                for output in outputs {
                    switch output {
                    case .openResolver(let record): discovery.resolve(record, open: true)
                    case .closeResolver(let record): discovery.resolve(record, open: false)
                    case .changed, .listingChanged: break
                    case .check(let probe, let endpoints, _): inputs.append(.probeEnded(probe, .reached(endpoints[0])))
                    case .probe(let probe, let endpoints, _):
                        let answer = endpoints.lazy.compactMap { endpoint in
                            self.shared.listening.withLock { $0[endpoint.port] }.map { (endpoint, $0) }
                        }.first
                        guard let (endpoint, (peer, boot)) = answer else {
                            inputs.append(.probeEnded(probe, .refused))
                            continue
                        }
                        inputs.append(.sessionUp(SessionInfo(peer: peer, boot: boot, name: "n\(peer.shortID)", endpoint: endpoint)))
                        inputs.append(.probeEnded(probe, .proved(peer, boot, endpoint)))
                    }
                }
            }
        }

        var listed: [PeerID] { state.withLock { $0.listing() }.filter { $0.state == .verified }.compactMap(\.peer) }
        var reasons: [GhostReason] { state.withLock { $0.listing() }.compactMap(\.reason) }
    }

    final class World: Sendable {
        let listening = Mutex<[UInt16: (PeerID, BootNonce)]>([:])
    }

    @Test func nodesFindEachOtherAndNotThemselves() async {
        let link = InMemoryLink()
        let world = World()
        let nodes = (1...4).map { Node(UInt64($0), link, world) }
        for node in nodes { node.start(name: "same name", port: UInt16(2_000 + node.number)) }
        for node in nodes {
            #expect(Set(node.listed) == Set(nodes.map(\.id)).subtracting([node.id]))
            #expect(node.reasons.filter { $0 == .self }.count == 1)
            #expect(node.reasons.allSatisfy { $0 == .self || $0 == .duplicate })
        }
        await nodes[3].discovery.stop()
        #expect(nodes[0].events.withLock { $0 }.contains { if case .withdrawn = $0 { true } else { false } })
        for node in nodes { await node.discovery.stop() }
    }

    @Test func renameAndNewPortAreTold() async {
        let link = InMemoryLink()
        let world = World()
        let (one, two) = (Node(1, link, world), Node(2, link, world))
        let seen = Mutex<[Resolution]>([])
        one.discovery.start(publishing: ServiceAnnouncement(displayName: "A", peer: one.id, boot: BootNonce(1), port: 3_000)) { event in
            switch event {
            case .appeared(let record, _): one.discovery.resolve(record, open: true)
            case .resolved(_, let resolution): seen.withLock { $0.append(resolution) }
            default: break
            }
        }
        two.start(name: "B", port: 4_000)
        two.discovery.publish(ServiceAnnouncement(displayName: "B", peer: two.id, boot: BootNonce(2), port: 4_001))
        #expect(seen.withLock { $0 }.map(\.port).suffix(2) == [4_001, 4_001])
        two.discovery.publish(ServiceAnnouncement(displayName: "C", peer: two.id, boot: BootNonce(2), port: 4_002))
        #expect(seen.withLock { $0 }.last?.port == 4_002)
        await two.discovery.stop()
        await two.discovery.stop()
        await one.discovery.stop()
    }

    @Test func crashLeavesTheAnnouncementAndForgeriesAreGhosts() async {
        let link = InMemoryLink()
        let world = World()
        let (one, two) = (Node(1, link, world), Node(2, link, world))
        one.start(name: "A", port: 3_000)
        two.start(name: "B", port: 4_000)
        let forged = link.forge("nobody", port: 5_000, txt: Stage.txt(Stage.peer(9)))
        _ = link.forge("odd", port: 5_000, txt: [])
        #expect(one.listed == [two.id])
        #expect(Set(one.reasons) == [.self, .duplicate, .stale, .invalid])
        link.withdraw(forged)
        #expect(!one.reasons.contains(.stale))
        await two.discovery.crash()
        #expect(
            !one.events.withLock { $0 }.contains { if case .withdrawn(let record) = $0 { record.key.name.hasPrefix("B") } else { false } })
        await one.discovery.stop()
    }

    @Test func backendGoesAndComes() async {
        let link = InMemoryLink()
        let world = World()
        let (one, two) = (Node(1, link, world), Node(2, link, world))
        one.start(name: "A", port: 3_000)
        two.start(name: "B", port: 4_000)
        one.discovery.setBackend(.unavailable("gone"))
        #expect(one.state.withLock { $0.records.isEmpty })
        #expect(one.listed == [two.id])  // its session is still open
        one.discovery.setBackend(.running)
        #expect(one.reasons.contains(.self))
        #expect(one.listed == [two.id])
        await one.discovery.stop()
        await two.discovery.stop()
    }

    @Test func stopBeforeStart() async {
        let discovery = InMemoryDiscovery(link: InMemoryLink())
        await discovery.stop()
        discovery.start(publishing: ServiceAnnouncement(instanceName: "x", port: 1, txt: [])) { _ in Issue.record("stopped") }
    }
}
