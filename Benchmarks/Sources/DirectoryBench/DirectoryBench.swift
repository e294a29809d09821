import Glibc
import HexlistDiscovery
import HexlistModel

/// A link with many peers, simulated: what the directory costs in time and memory, and how many probes it begins.
///
/// Each peer is announced over IPv4 and IPv6. All are asked who they are, answer, and are asked again in turn for some hours of the
/// simulated clock, while every now and then one goes, comes back, restarts, or does not answer.
@main
struct DirectoryBench {
    static let own = PeerID(UUIDBytes(high: 1, low: 1).with(version: 8))

    static func main() {
        let count = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 5_000
        warmUp()
        let before = residentBytes()
        var link = SimulatedLink(peers: count)
        link.announceAll()
        let settled = link.run(for: .seconds(count))  // two probes a second are enough for all of them
        let bytes = residentBytes() - before
        let listing = processSeconds { _ = link.directory.listing() }
        let churned = link.churn(hours: 3)
        let bytesLater = residentBytes() - before
        let verified = link.directory.listing().count { $0.state == .verified }
        print(
            """
            {"peers":\(count),"verified":\(verified),"events":\(link.events),"eventMicroseconds":\(round3(1e6 * link.seconds / Double(link.events))),\
            "worstEventMilliseconds":\(round3(1e3 * link.worst)),"probes":\(link.begun.count),\
            "probesPerSecondSettling":\(round3(Double(settled) / Double(count))),"probesPerSecond":\(round3(Double(churned) / 10_800)),\
            "mostProbesInTenSeconds":\(link.mostProbes(within: .seconds(10))),"listingMilliseconds":\(round3(1e3 * listing)),\
            "megabytes":\(round3(Double(bytes) / 1e6)),"megabytesAfterChurn":\(round3(Double(bytesLater) / 1e6))}
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

    static func residentBytes() -> Int {
        guard let file = fopen("/proc/self/statm", "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 128)
        fgets(&line, Int32(line.count), file)
        let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * Int(getpagesize())
    }

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
    var begun: [ContinuousClock.Instant] = []
    private var waiting: [(id: ProbeID, endpoints: [Endpoint], peer: PeerID?)] = []
    private var boots: [PeerID: BootNonce] = [:]
    private var absent: Set<PeerID> = []
    private var generator = SystemRandomNumberGenerator()

    init(peers count: Int) {
        self.count = count
        tell(
            .discovery(
                .interfaces([
                    InterfaceAddress(interface: "eth0", index: 2, address: "10.0.0.1", prefixLength: 8),
                    InterfaceAddress(interface: "eth0", index: 2, address: "fe80::1", prefixLength: 64),
                ])))
    }

    static func peer(_ number: Int) -> PeerID {
        PeerID(UUIDBytes(high: UInt64(0xABCD_0000 + number) << 32, low: UInt64(number)).with(version: 8))
    }

    private func record(_ number: Int, ipv6: Bool) -> Record {
        let name = PeerName.instance(displayName: "Machine number \(number)", peer: Self.peer(number))
        return Record(key: InstanceKey(name: name, type: "_hexlist._tcp", domain: "local"), interface: 2, ipv6: ipv6)
    }

    mutating func announceAll() { for number in 1...count { announce(number) } }

    private mutating func announce(_ number: Int) {
        let peer = Self.peer(number)
        let boot = boots[peer] ?? BootNonce(UInt64(number))
        boots[peer] = boot
        absent.remove(peer)
        let txt = ["txtvers=1", "id=\(peer)", "v=1.0.0", "p=1", "boot=\(boot)"].map { Array($0.utf8) }
        for ipv6 in [false, true] {
            let address = ipv6 ? "fe80::\(String(number, radix: 16))" : "10.\(number >> 16).\(number >> 8 & 255).\(number & 255)"
            tell(.discovery(.appeared(record(number, ipv6: ipv6), interfaceName: "eth0")))
            tell(
                .discovery(
                    .resolved(record(number, ipv6: ipv6), Resolution(host: "m\(number).local", address: address, port: 24391, txt: txt))))
        }
    }

    private mutating func withdraw(_ number: Int) {
        absent.insert(Self.peer(number))
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
        for case .probe(let id, let endpoints, let peer) in outputs {
            begun.append(now)
            waiting.append((id, endpoints, peer))
        }
    }

    /// Answers what was asked.
    private mutating func answer() {
        while let probe = waiting.popLast() {
            guard let peer = probe.peer, let boot = boots[peer], !absent.contains(peer) else {
                tell(.probeEnded(probe.id, .refused))
                continue
            }
            let session = SessionInfo(peer: peer, boot: boot, name: "Machine", version: "1.0.0", endpoint: probe.endpoints[0])
            tell(.sessionUp(session))
            tell(.probeEnded(probe.id, .proved(peer, boot, probe.endpoints[0])))
            tell(.sessionDown(session, .idle))
        }
    }

    /// - Returns: probes begun.
    mutating func run(for duration: Duration) -> Int {
        let before = begun.count
        let end = now + duration
        answer()
        while let deadline = directory.nextDeadline, deadline <= end {
            now = max(now, deadline)
            tell(.tick)
            answer()
        }
        now = end
        return begun.count - before
    }

    mutating func churn(hours: Int) -> Int {
        let before = begun.count
        for _ in 0..<(hours * 360) {
            let number = Int.random(in: 1...count, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: withdraw(number)
            case 1:
                boots[Self.peer(number)] = BootNonce(UInt64.random(in: 1...UInt64.max, using: &generator))
                announce(number)
            default: announce(number)
            }
            _ = run(for: .seconds(10))
        }
        return begun.count - before
    }

    func mostProbes(within window: Duration) -> Int {
        var first = 0
        var most = 0
        for last in begun.indices {
            while begun[last] - begun[first] > window { first += 1 }
            most = max(most, last - first + 1)
        }
        return most
    }
}
