import HexlistModel
import TestSupport
import Testing

@testable import HexlistDiscovery

/// A peer restarts: mDNS caches report old and new records in every order, and the list must end up right.
@Suite struct DirectoryRestartTests {
    static let peer = Stage.peer(1)
    static let (former, current) = (BootNonce(1), BootNonce(2))

    /// A fact about the restart that this machine learns. The first three are mDNS records, which are cached and replaced one at a time.
    enum Step: CaseIterable { case port, start, address, sessionLost, session }

    /// The values that change with the restart.
    enum Move: CaseIterable {
        case port, address, both, rename

        var steps: [Step] {
            switch self {
            case .port, .rename: [.port, .start, .sessionLost, .session]
            case .address: [.start, .address, .sessionLost, .session]
            case .both: Step.allCases
            }
        }
    }

    /// How the new start's session is opened. `none`: the peer has no session before the restart, and dials no peer.
    enum Opening: CaseIterable { case inbound, dialled, none }

    struct Case: CustomTestStringConvertible {
        var move: Move
        var opening: Opening
        var trust: Trust
        var testDescription: String { "\(move), \(opening), \(trust)" }
    }

    static let cases = Move.allCases.flatMap { move in
        Opening.allCases.flatMap { opening in [Trust.stranger, .trusted].map { Case(move: move, opening: opening, trust: $0) } }
    }

    /// avahi-daemon's answers for one record. An open resolver reports them; the first comes when it opens.
    struct Cache {
        var record: Record
        var resolution: Resolution
        var isAnnounced = true
        private var told: Resolution?

        init(_ record: Record, _ resolution: Resolution) {
            self.record = record
            self.resolution = resolution
        }

        /// - Returns: whether anything was reported.
        mutating func tell(_ stage: inout Stage) -> Bool {
            guard stage.open.contains(record) else {
                told = nil
                return false
            }
            guard isAnnounced, told != resolution else { return false }
            told = resolution
            stage.tell(.discovery(.resolved(record, resolution)))
            return true
        }
    }

    /// The actual state of the peer's machine and the network.
    struct World {
        var stage = Stage(remembers: [peer])
        var caches: [Cache] = []
        var session: SessionInfo?
        let move: Move

        var port: UInt16 { move == .address ? 24391 : 40_000 }
        func host(ipv6: Bool) -> String {
            let isOld = move == .port || move == .rename
            return ipv6 ? isOld ? "fe80::20" : "fe80::21" : isOld ? "192.168.7.20" : "192.168.7.21"
        }
        var places: Set<Endpoint.SocketAddress> {
            [.init(host: host(ipv6: false), port: port), .init(host: host(ipv6: true) + "%eth0", port: port)]
        }

        init(_ test: Case) {
            move = test.move
            if test.trust == .trusted { stage.tell(.knownPeer(KnownPeer(id: peer, name: "P", trust: .trusted))) }
            for address in ["192.168.7.20", "fe80::20"] {
                let record = Stage.record(PeerName.instance(displayName: "P", peer: peer), ipv6: address.contains(":"))
                let resolution = Resolution(host: "p.local", address: address, port: 24391, txt: Stage.txt(peer, boot: former))
                caches.append(Cache(record, resolution))
                stage.tell(.discovery(.appeared(record, interfaceName: "eth0")))
                _ = caches[caches.count - 1].tell(&stage)
            }
            session = stage.prove(peer, boot: former)
            if test.opening == .none, let session = session.take() { stage.tell(.sessionDown(session, .idle)) }
            settle(isUp: false)
        }

        /// Reports resolver results and probe results until nothing changes.
        /// - Parameter isUp: whether the new start already listens; otherwise the port is closed.
        mutating func settle(isUp: Bool) {
            repeat {
                while let probe = stage.probes.first {
                    stage.probes.removeFirst()
                    let reached = isUp ? probe.endpoints.first { places.contains($0.socketAddress) } : nil
                    guard let reached else {
                        stage.tell(.probeEnded(probe.id, .refused))
                        continue
                    }
                    guard !probe.isCheck else {
                        stage.tell(.probeEnded(probe.id, .reached(reached)))
                        continue
                    }
                    stage.tell(.sessionUp(SessionInfo(peer: peer, boot: current, name: "P", endpoint: reached)))
                    stage.tell(.probeEnded(probe.id, .proved(peer, current, reached)))
                }
            } while caches.indices.reduce(false) { caches[$1].tell(&stage) || $0 }
        }

        mutating func take(_ step: Step, _ opening: Opening) {
            switch step {
            case .port where move == .rename:
                // avahi-daemon still has the old name, so the new start is announced under the next one.
                for index in caches.indices {
                    let old = caches[index]
                    stage.tell(.discovery(.withdrawn(old.record)))
                    let record = Record(
                        key: InstanceKey(name: old.record.key.name + " #2", type: "_hexlist._tcp", domain: "local"), interface: 2,
                        ipv6: old.record.ipv6)
                    caches[index] = Cache(record, old.resolution)
                    caches[index].resolution.port = port
                    stage.tell(.discovery(.appeared(record, interfaceName: "eth0")))
                }
            case .port: for index in caches.indices { caches[index].resolution.port = port }
            case .start: for index in caches.indices { caches[index].resolution.txt = Stage.txt(peer, boot: current) }
            case .address:
                for index in caches.indices { caches[index].resolution.address = host(ipv6: caches[index].record.ipv6) }
            case .sessionLost: if let session = session.take() { stage.tell(.sessionDown(session, .lost)) }
            case .session:
                let inbound = Endpoint(host: host(ipv6: false), port: 50_000, via: .inbound)
                let dialled = Endpoint(host: host(ipv6: false), port: port, via: .mdns)
                guard opening != .none else { break }
                stage.tell(
                    .sessionUp(SessionInfo(peer: peer, boot: current, name: "P", endpoint: opening == .inbound ? inbound : dialled)))
            }
            settle(isUp: true)
        }
    }

    private static func orders(_ steps: [Step]) -> [[Step]] {
        guard steps.count > 1 else { return [steps] }
        return steps.indices.flatMap { index in
            var rest = steps
            let first = rest.remove(at: index)
            return orders(rest).map { [first] + $0 }
        }
    }

    @Test("in every order of facts, only the new endpoint is listed 5 s later", .offPool, arguments: cases)
    func everyOrder(_ test: Case) throws {
        for order in Self.orders(test.move.steps) {
            var world = World(test)
            #expect(Set(try #require(world.stage.row(Self.peer)).endpoints.map(\.endpoint.port)) == [24391])
            for step in order { world.take(step, test.opening) }
            // Seconds pass one at a time, because probes end in between.
            for _ in 0..<5 {
                world.stage.pass(.seconds(1))
                world.settle(isUp: true)
            }
            let row = try #require(world.stage.row(Self.peer), "\(order)")
            #expect(row.state == .verified && row.boot == Self.current, "\(order): \(row)")
            let listed = Set(row.endpoints.map(\.endpoint.socketAddress))
            #expect(!listed.isEmpty && listed.isSubset(of: world.places), "\(order): \(listed)")
            // The peer's ghosts do not list another endpoint either.
            for ghost in world.stage.ghosts(Self.peer) {
                #expect(ghost.reason == .duplicate, "\(order): \(ghost)")
                #expect(Set(ghost.endpoints.map(\.endpoint.socketAddress)).isSubset(of: world.places), "\(order): \(ghost)")
            }
        }
    }

    @Test("a stale announcement is not listed beside the new start's, and the session's source port is not dialled")
    func leftOver() throws {
        var stage = Stage(remembers: [Self.peer])
        stage.announce(Self.peer, boot: Self.former)
        stage.tell(.sessionDown(stage.prove(Self.peer, boot: Self.former), .lost))
        stage.end(.refused)
        let source = Endpoint(host: "192.168.7.20", port: 50_000, via: .inbound)
        stage.tell(.sessionUp(SessionInfo(peer: Self.peer, boot: Self.current, name: "P", endpoint: source)))
        #expect(stage.row(Self.peer)?.endpoints.map(\.endpoint) == [source])
        stage.announce(Self.peer, name: "P [ABCD0001] #2", boot: Self.current, port: 40_000)
        #expect(stage.row(Self.peer)?.endpoints.map(\.endpoint.port) == [40_000])
    }

    @Test("a probe that began before another start proved itself proves no endpoint of that start")
    func lateCheck() throws {
        var stage = Stage()
        let old = Endpoint(host: "192.168.7.20", port: 24391, interface: "eth0", via: .mdns)
        stage.tell(.knownPeer(KnownPeer(id: Self.peer, name: "P", trust: .trusted)))
        let source = Endpoint(host: "192.168.7.20", port: 50_000, via: .inbound)
        let first = SessionInfo(peer: Self.peer, boot: Self.former, name: "P", endpoint: source)
        stage.tell(.sessionUp(first))
        let record = stage.announce(Self.peer, boot: Self.former)
        let check = try #require(stage.probes.first)
        #expect(check.isCheck)
        stage.tell(.sessionUp(SessionInfo(peer: Self.peer, boot: Self.current, name: "P", endpoint: source)))
        stage.tell(.sessionDown(first, .lost))
        stage.end(.reached(old))
        #expect(stage.directory.answeredEndpoints(of: Self.peer).isEmpty)
        stage.resolve(record, Stage.txt(Self.peer, boot: Self.current), port: 40_000)
        let again = try #require(stage.probes.first)
        #expect(again.isCheck && again.endpoints.map(\.port) == [40_000])
        stage.end(.reached(again.endpoints[0]))
        #expect(stage.directory.answeredEndpoints(of: Self.peer).map(\.port) == [40_000])
    }

    @Test("a start dialled at another start's endpoint is probed again at its next announcement, not marked as disproved")
    func correctedStart() throws {
        var stage = Stage(remembers: [Self.peer])
        let record = stage.announce(Self.peer, boot: Self.former)
        stage.prove(Self.peer, boot: Self.former)
        let other = stage.announce(Self.peer, name: "other", boot: Self.current, port: 24391)
        stage.end(.refused)
        #expect(stage.ghosts(Self.peer).map(\.reason) == [.stale])
        stage.resolve(other, Stage.txt(Self.peer, boot: Self.current), port: 40_000)
        #expect(stage.ghosts(Self.peer).map(\.reason) == [.unverified])
        #expect(stage.probes.first?.endpoints.map(\.port) == [40_000])
        #expect(stage.directory.records[record] != nil)
    }

    @Test("the failure of an old endpoint is not attributed to a new one")
    func failureOfAnotherPlace() {
        var stage = Stage()
        let record = stage.announce(Self.peer, boot: Self.former)
        stage.end(.refused)
        #expect(stage.ghosts(Self.peer).map(\.why) == ["announced on eth0 over IPv4, but the connection is refused (192.168.7.20:24391)"])
        stage.resolve(record, Stage.txt(Self.peer, boot: Self.current), port: 40_000)
        #expect(stage.ghosts(Self.peer).map(\.why) == ["announced on eth0 over IPv4; its identity is being checked"])
    }

    @Test("resolvers of unproven endpoints give way after one rotation, and no sooner")
    func resolverSlots() {
        var limits = DirectoryLimits()
        limits.resolvers = 1
        var stage = Stage(limits: limits)
        let session = SessionInfo(
            peer: Self.peer, boot: Self.former, name: "P", endpoint: Endpoint(host: "192.168.7.20", port: 50_000, via: .inbound))
        stage.tell(.sessionUp(session))
        let record = stage.announce(Self.peer, boot: Self.former)
        stage.pass(.seconds(60))
        #expect(stage.open == [record])
        let other = Stage.record("other")
        stage.tell(.discovery(.appeared(other, interfaceName: "eth0")))
        #expect(stage.open == [other])
        stage.pass(.seconds(600))
        #expect(stage.open == [other] && stage.directory.nextDeadline.map { $0 > stage.now + .seconds(20) } ?? true)
        // Without a session the peer must be found again: its resolver gets a slot, in rotation with the other one.
        stage.tell(.sessionDown(session, .lost))
        #expect(stage.open == [record])
        stage.pass(ResolverSlots.timeSlice)
        #expect(stage.open == [other])
    }
}
