import CMalloc
import Glibc
import HexlistDiscovery
import HexlistModel

/// A link with many peers, simulated: what the directory costs in time and memory, and how many probes it begins.
///
/// Each peer is announced over IPv4 and IPv6. All are asked who they are, answer, and are asked again in turn for some hours of the
/// simulated clock, while every now and then one goes, comes back, restarts, or does not answer.
///
/// Memory is counted twice: `megabytes` is what the process has become larger by in physical memory since before the first
/// announcement, whatever the allocator makes of it; `heapMegabytes` is what of it is in use. What the simulation itself remembers is
/// there before.
///
/// In the end all are trusted, and for two hours nobody answers: the network fell apart. Then it is whole again.
@main
struct DirectoryBench {
    static let own = PeerID(UUIDBytes(high: 1, low: 1).with(version: 8))

    static func main() {
        let count = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 5_000
        warmUp()
        var link = SimulatedLink(peers: count)
        let before = Memory.now
        link.announceAll()
        let settled = link.run(for: .seconds(count))  // two probes a second are enough for all of them
        let fresh = Memory.now - before
        var rows = 0
        let listing = processSeconds { rows = link.directory.listing().count { $0.state == .verified } }
        let churned = link.churn(hours: 3)
        let later = Memory.now - before
        let verified = link.directory.listing().count { $0.state == .verified }
        let (cut, cutMicroseconds, healed) = link.cutAndHeal()
        print(
            """
            {"peers":\(count),"verified":\(rows),"verifiedAfterChurn":\(verified),"events":\(link.events),\
            "eventMicroseconds":\(round3(1e6 * link.seconds / Double(link.events))),\
            "worstEventMilliseconds":\(round3(1e3 * link.worst)),"probes":\(link.probes),\
            "probesPerSecondSettling":\(round3(Double(settled) / Double(count))),"probesPerSecond":\(round3(Double(churned) / 10_800)),\
            "mostProbesInTenSeconds":\(link.mostProbes),"listingMilliseconds":\(round3(1e3 * listing)),\
            "megabytes":\(fresh.resident),"heapMegabytes":\(fresh.heap),\
            "megabytesAfterChurn":\(later.resident),"heapMegabytesAfterChurn":\(later.heap),\
            "probesPerSecondCut":\(round3(Double(cut) / 7_200)),"eventMicrosecondsCut":\(round3(cutMicroseconds)),\
            "firstHeardAfterSeconds":\(round3(healed.first)),"allHeardAfterSeconds":\(round3(healed.all))}
            """)
    }

    /// The code is in memory afterwards, and counts no more.
    private static func warmUp() {
        var link = SimulatedLink(peers: 20)
        link.announceAll()
        _ = link.run(for: .seconds(60))
        _ = link.directory.listing()
    }

    static func round3(_ value: Double) -> Double { (value * 1_000).rounded() / 1_000 }

    static func processSeconds(_ body: () -> Void) -> Double {
        let begin = clock()
        body()
        return Double(clock() - begin) / Double(CLOCKS_PER_SEC)
    }
}

struct SimulatedLink {
    var directory = PeerDirectory(own: DirectoryBench.own, boot: BootNonce(7))
    var now = ContinuousClock.now
    let count: Int
    var events = 0
    var seconds = 0.0
    var worst = 0.0
    var probes = 0
    var mostProbes = 0
    /// Peers listed, by what was told.
    private var verified = 0
    private var lastSeconds: [ContinuousClock.Instant] = []
    private var waiting: [(id: ProbeID, endpoints: [Endpoint], peer: PeerID?)] = []
    /// The start of each peer, by number, from 1.
    private var boots: [BootNonce]
    private var isAbsent: [Bool]
    private var isCut = false
    private var generator = SystemRandomNumberGenerator()

    init(peers count: Int) {
        self.count = count
        boots = (0...count).map { BootNonce(UInt64($0)) }
        isAbsent = Array(repeating: false, count: count + 1)
        tell(
            .discovery(
                .interfaces(
                    [("10.0.0.1", 8), ("fe80::1", 64)].compactMap { address, prefixLength in
                        IPAddress(address).map {
                            InterfaceAddress(interface: "eth0", index: 2, address: $0, prefixLength: prefixLength)
                        }
                    })))
    }

    static func peer(_ number: Int) -> PeerID {
        PeerID(UUIDBytes(high: UInt64(0xABCD_0000 + number) << 32, low: UInt64(number)).with(version: 8))
    }

    private static func number(_ peer: PeerID) -> Int { Int(peer.uuid.low & 0xFFFF_FFFF) }

    private func record(_ number: Int, ipv6: Bool) -> Record {
        let name = PeerName.instance(displayName: "Machine number \(number)", peer: Self.peer(number))
        return Record(key: InstanceKey(name: name, type: "_hexlist._tcp", domain: "local"), interface: 2, ipv6: ipv6)
    }

    mutating func announceAll() { for number in 1...count { announce(number) } }

    private mutating func announce(_ number: Int) {
        let peer = Self.peer(number)
        isAbsent[number] = false
        let txt = ["txtvers=1", "id=\(peer)", "v=1.0.0", "p=1", "boot=\(boots[number])"].map { Array($0.utf8) }
        for ipv6 in [false, true] {
            let address =
                ipv6 ? "fe80::a00:27ff:fe4e:\(String(number, radix: 16))" : "10.\(number >> 16).\(number >> 8 & 255).\(number & 255)"
            tell(.discovery(.appeared(record(number, ipv6: ipv6), interfaceName: "eth0")))
            tell(
                .discovery(
                    .resolved(record(number, ipv6: ipv6), Resolution(host: "m\(number).local", address: address, port: 24391, txt: txt))))
        }
    }

    private mutating func withdraw(_ number: Int) {
        isAbsent[number] = true
        for ipv6 in [false, true] { tell(.discovery(.withdrawn(record(number, ipv6: ipv6)))) }
    }

    private mutating func tell(_ input: PeerDirectory.Input) {
        var outputs: [PeerDirectory.Output] = []
        var begin = timespec()
        var end = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin)
        outputs = directory.handle(input, now: now)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end)
        let took = Double(end.tv_sec - begin.tv_sec) + Double(end.tv_nsec - begin.tv_nsec) / 1e9
        events += 1
        seconds += took
        worst = max(worst, took)
        for case .changed(let event) in outputs {
            switch event {
            case .up: verified += 1
            case .down: verified -= 1
            case .conflict, .conflictEnded, .ghost: break
            }
        }
        for case .probe(let id, let endpoints, let peer) in outputs {
            waiting.append((id, endpoints, peer))
            probes += 1
            lastSeconds.removeAll { now - $0 > .seconds(10) }
            lastSeconds.append(now)
            mostProbes = max(mostProbes, lastSeconds.count)
        }
    }

    /// Answers what was asked.
    private mutating func answer() {
        while let probe = waiting.popLast() {
            guard !isCut else {
                tell(.probeEnded(probe.id, .noAnswer))
                continue
            }
            guard let peer = probe.peer, !isAbsent[Self.number(peer)] else {
                tell(.probeEnded(probe.id, .refused))
                continue
            }
            let number = Self.number(peer)
            let boot = boots[number]
            let session = SessionInfo(
                peer: peer, boot: boot, name: "Machine number \(number)", version: "1.0.0", endpoint: probe.endpoints[0])
            tell(.sessionUp(session))
            tell(.probeEnded(probe.id, .proved(peer, boot, probe.endpoints[0])))
            tell(.sessionDown(session, .idle))
        }
    }

    /// - Returns: probes begun.
    mutating func run(for duration: Duration) -> Int {
        let before = probes
        let end = now + duration
        answer()
        while let deadline = directory.nextDeadline, deadline <= end {
            now = max(now, deadline)
            tell(.tick)
            answer()
        }
        now = end
        return probes - before
    }

    /// - Returns: probes begun while it was cut, what an event took then, and seconds until the first and all were heard again.
    mutating func cutAndHeal() -> (probes: Int, eventMicroseconds: Double, healed: (first: Double, all: Double)) {
        for number in 1...count {
            announce(number)
            tell(.trustChanged(Self.peer(number), .trusted))
        }
        _ = run(for: .seconds(count))
        let (events, seconds) = (self.events, self.seconds)
        isCut = true
        let probes = run(for: .seconds(7_200))
        let microseconds = 1e6 * (self.seconds - seconds) / Double(self.events - events)
        isCut = false
        let (begin, silent) = (now, verified)
        var first: Double?
        while verified < count, now - begin < .seconds(2 * count) {
            _ = run(for: .seconds(1))
            if first == nil, verified > silent { first = (now - begin) / .seconds(1) }
        }
        return (probes, microseconds, (first ?? -1, (now - begin) / .seconds(1)))
    }

    mutating func churn(hours: Int) -> Int {
        let before = probes
        for _ in 0..<(hours * 360) {
            let number = Int.random(in: 1...count, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: withdraw(number)
            case 1:
                boots[number] = BootNonce(UInt64.random(in: 1...UInt64.max, using: &generator))
                announce(number)
            default: announce(number)
            }
            _ = run(for: .seconds(10))
        }
        return probes - before
    }
}

/// The memory of the process in megabytes.
struct Memory {
    var resident: Double
    var heap: Double

    static var now: Memory {
        let heap = mallinfo2()
        return Memory(resident: megabytes(residentBytes()), heap: megabytes(Int(heap.uordblks + heap.hblkhd)))
    }

    static func - (later: Memory, before: Memory) -> Memory {
        Memory(resident: DirectoryBench.round3(later.resident - before.resident), heap: DirectoryBench.round3(later.heap - before.heap))
    }

    private static func megabytes(_ bytes: Int) -> Double { Double(bytes) / 1e6 }

    private static func residentBytes() -> Int {
        guard let file = fopen("/proc/self/statm", "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 128)
        fgets(&line, Int32(line.count), file)
        let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * Int(getpagesize())
    }
}
