import HexlistModel
import TestSupport
import Testing

@testable import HexlistDiscovery

/// Networks that partition and heal without any notification.
@Suite struct DirectoryMissingTests {
    let peer = Stage.peer(1)
    let other = Stage.peer(2)

    /// A directory whose peers were announced and proved, and then fell silent: each lost its session, and two probes of it failed.
    private func silent(_ peers: [PeerID], trust: Trust = .trusted, boot: BootNonce = Stage.boot) -> Stage {
        var stage = Stage(boot: boot)
        var sessions: [SessionInfo] = []
        for (number, peer) in peers.enumerated() {
            stage.tell(.knownPeer(KnownPeer(id: peer, name: "P", trust: trust)))
            stage.announce(peer, address: "192.168.7.\(20 + number % 200)", port: UInt16(2_000 + number))
            stage.pass(.seconds(1))
            sessions.append(stage.prove(peer))
        }
        for session in sessions { stage.tell(.sessionDown(session, .lost)) }
        while peers.contains(where: { stage.directory.peers[$0]?.isAway != true }) { stage.wait(.seconds(1), answer: .noAnswer) }
        return stage
    }

    /// Start times of each probe, in seconds since `start`.
    private func asked(_ stage: Stage, since start: ContinuousClock.Instant) -> [Double] {
        stage.begun.filter { $0 > start }.map { ($0 - start) / .seconds(1) }
    }

    @Test("a silent trusted peer is probed every 5 to 15 s, later after a 60th of its silence, besides its regular schedule")
    func trusted() throws {
        var stage = silent([peer])
        let gone = try #require(stage.directory.peers[peer]?.lastSeen)
        stage.wait(.seconds(10 * 3_600), answer: .noAnswer)
        let asked = asked(stage, since: gone)
        for (one, next) in zip(asked, asked.dropFirst()) {
            #expect(next - one <= 15.1 + one / 60, "after \(one) s of silence")
            #expect(next - one <= 300.1)
        }
        // The regular schedule is unchanged: 5 s after each of the first two failures, then doubling.
        var turn = 5.0
        for pause in [5.0, 10, 20, 40, 80, 160, 300, 300] {
            turn += pause
            #expect(asked.contains { abs($0 - turn) < 1.1 }, "\(turn) is no turn: \(asked.prefix(60))")
        }
        // At the end only the regular probes remain.
        let last = asked.suffix(20)
        #expect(zip(last, last.dropFirst()).allSatisfy { $1 - $0 >= 299 })
        #expect(asked.count < 700)
    }

    @Test("a stranger, and a peer that refuses, said goodbye or never answered, is probed on the regular schedule only", arguments: 0..<4)
    func turnsOnly(_ kind: Int) {
        var stage = silent([peer], trust: kind == 0 ? .stranger : .trusted)
        switch kind {
        case 1: stage.wait(.seconds(15), answer: .refused)
        case 2:
            stage.tell(.discovery(.woke))
            stage.tell(.sessionDown(stage.prove(peer), .shutdown))
        case 3:
            stage = Stage()
            stage.tell(
                .knownPeer(KnownPeer(id: peer, name: "P", trust: .trusted, endpoints: [Endpoint(host: "a", port: 99, via: .static)])))
        default: break
        }
        let before = stage.now
        stage.wait(.seconds(3_600), answer: kind == 1 ? .refused : .noAnswer)
        #expect(asked(stage, since: before).count <= 6 + 3_600 / 300)
    }

    @Test("one returning peer makes all silent peers be probed at once, trusted ones first", arguments: [true, false])
    func heard(_ isBack: Bool) throws {
        let numbers: Range<UInt64> = 10..<14
        let strangers = numbers.map { Stage.peer($0) }
        var stage = silent([peer, other])
        for (number, stranger) in zip(numbers, strangers) {
            stage.announce(stranger, address: "192.168.8.\(number)", interface: 3)
            stage.pass(.seconds(1))
            stage.tell(.sessionDown(stage.prove(stranger), .lost))
        }
        stage.wait(.seconds(1_200), answer: .noAnswer)
        while stage.probes.first?.expecting != peer {
            if stage.probes.isEmpty { stage.pass(.milliseconds(100)) } else { stage.end(.noAnswer) }
        }
        let before = stage.now
        if isBack { stage.prove(peer) } else { stage.end(.refused) }
        #expect(stage.probes.first?.expecting == other)
        stage.pass(.seconds(4))
        #expect(Set(stage.probes.compactMap(\.expecting)).subtracting([peer]) == Set(strangers + [other]))
        #expect(stage.now - before <= .seconds(5))
        // A peer that was not missing is no sign of a healed network.
        while !stage.probes.isEmpty { stage.end(.noAnswer) }
        let count = stage.begun.count
        stage.tell(.sessionUp(SessionInfo(peer: Stage.peer(20), boot: BootNonce(1), name: "N")))
        #expect(stage.begun.count == count)
    }

    @Test("a peer being probed when another returns is probed once more, because the first probe may have been too early")
    func askedTooEarly() {
        var stage = silent([peer, other])
        stage.wait(.seconds(1_200), answer: .noAnswer)
        while stage.probes.first?.expecting != peer {
            if stage.probes.isEmpty { stage.pass(.milliseconds(100)) } else { stage.end(.noAnswer) }
        }
        stage.tell(.sessionUp(SessionInfo(peer: other, boot: BootNonce(1), name: "P")))
        stage.end(.noAnswer)
        stage.pass(.seconds(1))
        #expect(stage.probes.map(\.expecting) == [peer])
    }

    @Test("a waiting probe that becomes due moves to the front and delays no other")
    func inLine() {
        var stage = silent([peer, other])
        stage.wait(.seconds(1_200), answer: .noAnswer)
        let target = ProbeTarget.peer(peer)
        stage.directory.schedules[target]?.nextAt = nil
        stage.directory.schedules[target]?.askedAt = stage.directory.peers[peer]?.lastSeen
        for number: UInt64 in 100..<150 { stage.directory.queue.enqueue(.peer(Stage.peer(number)), as: .routine) }
        stage.directory.queue.enqueue(target, as: .routine)
        stage.directory.now = stage.now
        stage.directory.probeMissing()
        #expect(stage.directory.schedules[target]?.regularAt == nil)
        // Trusted peers get every second slot.
        var queue = stage.directory.queue
        let next = [queue.next(now: stage.now + .seconds(60)), queue.next(now: stage.now + .seconds(60))]
        #expect(next.contains(target))
    }

    @Test("a peer that had no address when it fell silent is probed once it has one")
    func unreachedBefore() {
        var stage = Stage()
        stage.tell(.knownPeer(KnownPeer(id: peer, name: "P", trust: .trusted)))
        let session = stage.prove(peer)
        stage.tell(.sessionDown(session, .lost))
        stage.wait(.seconds(120), answer: .noAnswer)
        #expect(stage.begun.isEmpty)
        stage.announce(peer)
        let before = stage.now
        stage.wait(.seconds(600), answer: .noAnswer)
        #expect(asked(stage, since: before).count > 30)
    }

    @Test("an announcement that is lost and found again triggers a probe within the peer's allowance")
    func foundAgain() {
        var stage = silent([peer], trust: .stranger)
        stage.wait(.seconds(700), answer: .noAnswer)
        guard let record = stage.directory.records.keys.first else { return }
        let count = stage.begun.count
        stage.resolve(record, Stage.txt(peer), port: 2_000)  // the record was already resolved to this
        #expect(stage.begun.count == count)
        stage.tell(.discovery(.resolveFailed(record, "Timeout reached")))
        stage.resolve(record, Stage.txt(peer), port: 2_000)
        #expect(stage.begun.count == count + 1)
        let before = stage.now
        for _ in 0..<600 {
            while !stage.probes.isEmpty { stage.end(.noAnswer) }
            stage.tell(.discovery(.resolveFailed(record, "Timeout reached")))
            stage.resolve(record, Stage.txt(peer), port: 2_000)
            stage.pass(.milliseconds(100))
        }
        #expect(asked(stage, since: before).count <= 2 + 60 / 5 + 4)
    }

    @Test("machines that lost one network together probe at different moments") func spread() {
        let firsts = (1...40).map { (boot: UInt64) in
            var stage = silent([peer], boot: BootNonce(boot &* 0x9E37_79B9_7F4A_7C15))
            stage.wait(.seconds(120), answer: .noAnswer)
            let before = stage.now
            while stage.probes.isEmpty { stage.pass(.milliseconds(100)) }
            return (stage.now - before) / .seconds(1)
        }
        let early = firsts.count { $0 < 5 }
        #expect(early >= 8 && early <= 32, "\(firsts.sorted())")
    }

    @Test("60 missing peers: besides the regular schedule at most one probe per five seconds") func many() {
        let peers = (1...60).map { Stage.peer($0) }
        var stage = silent(peers)
        stage.wait(.seconds(3_600), answer: .noAnswer)
        let before = stage.now
        stage.wait(.seconds(600), answer: .noAnswer)
        #expect(stage.directory.missing.count == 60)
        let count = asked(stage, since: before).count
        #expect(count > 120 && count <= 120 + 600 / 5 + 8, "\(count)")
    }

    // MARK: A network of machines

    @Test("machines partitioned for minutes meet again within 30 s of the network's return", .offPool, arguments: [1, 8, 30], [2, 3])
    func partition(minutes: Int, machines: Int) {
        for seed in 1...5 {
            var network = Network(machines, seed: UInt64(seed))
            network.run(.seconds(90))
            #expect(network.isMet)
            network.isCut = true
            network.run(.seconds(60 * minutes + seed))
            #expect(!network.isMet)
            network.isCut = false
            let seconds = network.secondsToMeet()
            #expect(seconds <= 30, "\(machines) machines, seed \(seed), \(minutes) min: \(seconds) s")
        }
    }
}

extension Stage {
    /// Advances time. Each probe ends with the given result.
    mutating func wait(_ duration: Duration, answer: ProbeResult) {
        let end = now + duration
        while now < end {
            pass(min(.seconds(1), end - now))
            while !probes.isEmpty { self.end(answer) }
        }
    }
}

/// Directories that trust each other, and the network between them. A dial to an unreachable machine takes 3 s; a session to it is found
/// silent within 45 s.
private struct Network {
    private struct Session {
        var ends: (one: Int, other: Int)
        var silentAt: ContinuousClock.Instant?
    }

    private var stages: [Stage]
    private var sessions: [Session] = []
    private var dials: [(machine: Int, probe: ProbeID, peer: PeerID, endpoint: Endpoint, at: ContinuousClock.Instant)] = []
    private var random: UInt64
    var isCut = false

    init(_ count: Int, seed: UInt64) {
        random = seed &* 0x9E37_79B9_7F4A_7C15
        stages = (0..<count).map {
            Stage(boot: BootNonce(UInt64($0 + 1) &* 0xD1B5_4A32_D192_ED03 &* seed), own: Stage.peer(UInt64($0 + 1)))
        }
        for one in stages.indices {
            for other in stages.indices where other != one {
                stages[one].tell(.knownPeer(KnownPeer(id: Stage.peer(UInt64(other + 1)), name: "P", trust: .trusted)))
                stages[one].announce(Stage.peer(UInt64(other + 1)), address: "192.168.7.\(20 + other)")
            }
        }
    }

    var isMet: Bool {
        stages.indices.allSatisfy { one in
            stages.indices.allSatisfy { $0 == one || stages[one].row(Stage.peer(UInt64($0 + 1)))?.hasSession == true }
        }
    }

    mutating func run(_ duration: Duration) {
        let end = stages[0].now + duration
        while stages[0].now < end { step() }
    }

    mutating func secondsToMeet() -> Double {
        let begin = stages[0].now
        while !isMet, stages[0].now - begin < .seconds(400) { step() }
        return (stages[0].now - begin) / .seconds(1)
    }

    private mutating func step() {
        for machine in stages.indices {
            stages[machine].pass(.milliseconds(250))
            for probe in stages[machine].probes {
                guard let peer = probe.expecting else { continue }
                dials.append((machine, probe.id, peer, probe.endpoints[0], stages[machine].now))
            }
            stages[machine].probes = []
        }
        let now = stages[0].now
        for dial in dials {
            guard let other = stages.indices.first(where: { Stage.peer(UInt64($0 + 1)) == dial.peer }) else { continue }
            if !isCut {
                connect(dial.machine, other, dial.endpoint)
                stages[dial.machine].tell(.probeEnded(dial.probe, .proved(dial.peer, BootNonce(1), dial.endpoint)))
            } else if now - dial.at >= .seconds(3) {
                stages[dial.machine].tell(.probeEnded(dial.probe, .noAnswer))
            } else {
                continue
            }
            dials.removeAll { $0.machine == dial.machine && $0.probe == dial.probe }
        }
        for index in sessions.indices.reversed() {
            if isCut, sessions[index].silentAt == nil {
                random ^= random << 13
                random ^= random >> 7
                random ^= random << 17
                sessions[index].silentAt = now + .milliseconds(30_000 + Int(random % 15_000))
            }
            guard let silentAt = sessions[index].silentAt, silentAt <= now else { continue }
            let (one, other) = sessions.remove(at: index).ends
            stages[one].tell(.sessionDown(info(of: other, nil), .lost))
            stages[other].tell(.sessionDown(info(of: one, nil), .lost))
        }
    }

    private mutating func connect(_ dialer: Int, _ other: Int, _ endpoint: Endpoint) {
        guard !sessions.contains(where: { $0.ends == (dialer, other) || $0.ends == (other, dialer) }) else { return }
        sessions.append(Session(ends: (dialer, other)))
        stages[dialer].tell(.sessionUp(info(of: other, endpoint)))
        stages[other].tell(.sessionUp(info(of: dialer, nil)))
    }

    private func info(of machine: Int, _ endpoint: Endpoint?) -> SessionInfo {
        SessionInfo(peer: Stage.peer(UInt64(machine + 1)), boot: BootNonce(1), name: "P", endpoint: endpoint)
    }
}
