// libFuzzer target: announcements from anyone on the link, that is TXT records, instance names and addresses, and the peer directory that
// evaluates them. Must never trap, and memory and probes stay within the limits.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzDiscovery(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var whole = FuzzInput(data, count)
    readAlone(whole.all())
    var input = FuzzInput(data, count)
    var stage = DirectoryStage()
    while !input.isAtEnd { stage.step(&input) }
    stage.checkListing()
    return 0
}

/// Reads one record's strings and one name from the same bytes.
private func readAlone(_ bytes: [UInt8]) {
    var strings: [[UInt8]] = []
    var rest = bytes[...]
    while let length = rest.popFirst() {
        strings.append(Array(rest.prefix(Int(length))))
        rest = rest.dropFirst(Int(length))
    }
    let record = TXTRecord(strings: strings)
    check((record.version ?? "").utf8.count <= DirectoryLimits.versionBytes, "a long version")
    check(TXTRecord.readable(strings).reduce(0) { $0 + $1.count + 1 } <= TXTRecord.maximumBytes, "a long record is read")
    let name = String(decoding: bytes, as: UTF8.self)
    let display = PeerName.display(instance: name)
    check(display.utf8.count <= name.utf8.count, "a name grows")
    for limit in [0, 1, PeerName.displayBytes] {
        let cut = PeerName.cut(name, bytes: limit)
        check(cut.utf8.count <= limit && name.utf8.starts(with: cut.utf8), "a name is cut to what it is not")
    }
    let own = PeerName.instance(displayName: name, peer: PeerID(UUIDBytes(high: 1, low: 2)))
    check(
        own.utf8.count <= 63 && PeerName.display(instance: own).utf8.elementsEqual(PeerName.cut(name, bytes: 52).utf8), "an instance name")
    if let address = IPAddress(name) { _ = DialPolicy().refusal(address: address, port: 1_024, interface: 0) }
}

/// A directory and the events that a network can cause.
private struct DirectoryStage {
    static let limits: DirectoryLimits = {
        var limits = DirectoryLimits()
        limits.instances = 24
        limits.resolvers = 4
        limits.concurrentProbes = 3
        return limits
    }()

    var directory: PeerDirectory
    var now = ContinuousClock.now
    var resolvers: Set<Record> = []
    var probes: [ProbeID: (endpoints: [Endpoint], expecting: PeerID?)] = [:]
    var sessions: [SessionInfo] = []

    init() {
        directory = PeerDirectory(own: Self.peer(0), boot: BootNonce(1), limits: Self.limits, now: now)
        let interfaces = IPAddress("192.168.1.5").map { InterfaceAddress(interface: "eth0", index: 2, address: $0, prefixLength: 24) }
        handle(.discovery(.interfaces([interfaces].compactMap { $0 })))
    }

    static func peer(_ number: UInt8) -> PeerID { PeerID(UUIDBytes(high: UInt64(number % 8) << 40 | 0x8000, low: 1 << 63)) }

    mutating func step(_ input: inout FuzzInput) {
        switch input.byte() % 16 {
        case 0...3: handle(.discovery(.appeared(record(&input), interfaceName: input.flag() ? input.text() : "eth0")))
        case 4...7: handle(.discovery(.resolved(record(&input), resolution(&input))))
        case 8: handle(.discovery(.withdrawn(record(&input))))
        case 9: handle(.discovery(.resolveFailed(record(&input), input.text())))
        case 10: handle(.discovery(.backend(input.flag() ? .running : .unavailable(input.text()))))
        case 11, 12: pass(&input)
        case 13: endProbe(&input)
        case 14: changeSession(&input)
        default: handle(.trustChanged(Self.peer(input.byte()), [.stranger, .trusted, .blocked][Int(input.byte() % 3)]))
        }
        check(directory.records.count <= Self.limits.records, "\(directory.records.count) records")
        check(resolvers.count <= Self.limits.resolvers, "\(resolvers.count) resolvers")
        check(probes.count <= Self.limits.concurrentProbes, "\(probes.count) probes")
        // Peers that proved their key are kept beyond the limit; this target has eight.
        check(directory.peers.count <= Self.limits.instances + 8, "\(directory.peers.count) peers")
    }

    private func record(_ input: inout FuzzInput) -> Record {
        let choice = input.byte()
        // A DNS label has at most 63 bytes, a host name 255.
        let name = choice & 0x80 == 0 ? "p\(choice & 31) [00000\(choice & 7)00]" : PeerName.cut(input.text(), bytes: 63)
        return Record(
            key: InstanceKey(name: name, type: "_hexlist._tcp", domain: "local"), interface: choice & 0x20 == 0 ? 2 : 3,
            ipv6: choice & 0x40 != 0)
    }

    private func resolution(_ input: inout FuzzInput) -> Resolution {
        let choice = input.byte()
        let txt: [[UInt8]]
        if choice & 1 == 0 {
            txt = [
                Array("id=\(Self.peer(input.byte()))".utf8), Array("boot=\(BootNonce(UInt64(input.byte() % 4)))".utf8), Array("p=1".utf8),
                Array("v=".utf8) + input.bytes(),
            ]
        } else {
            txt = (0..<Int(choice >> 4) * 4).map { _ in input.bytes() }
        }
        let addresses = ["192.168.1.7", "192.168.1.8", "8.8.8.8", "fe80::1", "", "127.0.0.1", "::"]
        let address = choice & 2 == 0 ? addresses[Int(input.byte()) % addresses.count] : input.text()
        return Resolution(
            host: choice & 4 == 0 ? "host.local" : PeerName.cut(input.text(), bytes: 255), address: address, port: input.word(), txt: txt)
    }

    private mutating func pass(_ input: inout FuzzInput) {
        if input.flag(), let deadline = directory.nextDeadline {
            now = max(now, deadline)
        } else {
            now += .milliseconds(Int(input.word()))
        }
        handle(.tick)
        if let next = directory.nextDeadline { check(next > now, "the deadline stays in the past") }
    }

    private mutating func endProbe(_ input: inout FuzzInput) {
        guard let (id, probe) = probes.min(by: { $0.key.number < $1.key.number }) else { return }
        probes[id] = nil
        let endpoint = probe.endpoints[Int(input.byte()) % probe.endpoints.count]
        switch input.byte() % 6 {
        case 0: handle(.probeEnded(id, .refused))
        case 1: handle(.probeEnded(id, .noAnswer))
        case 2: handle(.probeEnded(id, .otherIdentity(Self.peer(input.byte() | 1), endpoint)))
        case 3: handle(.probeEnded(id, .ownIdentity(sameBoot: input.flag(), endpoint)))
        case 4: handle(.probeEnded(id, .failed(input.text())))
        default:
            let peer = probe.expecting ?? Self.peer(input.byte() | 1)
            guard peer != Self.peer(0) else { return handle(.probeEnded(id, .noAnswer)) }
            let session = SessionInfo(peer: peer, boot: BootNonce(UInt64(input.byte() % 4)), name: input.text(), endpoint: endpoint)
            sessions.append(session)
            handle(.sessionUp(session))
            handle(.probeEnded(id, .proved(peer, session.boot, endpoint)))
        }
    }

    private mutating func changeSession(_ input: inout FuzzInput) {
        guard !sessions.isEmpty, input.flag() else {
            let session = SessionInfo(peer: Self.peer(input.byte() | 1), boot: BootNonce(UInt64(input.byte() % 4)), name: input.text())
            sessions.append(session)
            return handle(.sessionUp(session))
        }
        let ends: [SessionEnd] = [.shutdown, .idle, .lost, .other]
        handle(.sessionDown(sessions.remove(at: Int(input.byte()) % sessions.count), ends[Int(input.byte()) % ends.count]))
    }

    private mutating func handle(_ event: PeerDirectory.Input) {
        if case .discovery(.withdrawn(let record)) = event { resolvers.remove(record) }
        if case .discovery(.backend(.unavailable)) = event { resolvers = [] }
        for output in directory.handle(event, now: now) {
            switch output {
            case .check(let id, let endpoints, let expecting): probes[id] = (endpoints, expecting)
            case .probe(let id, let endpoints, let expecting):
                check(!endpoints.isEmpty && endpoints.count <= 8, "a probe of \(endpoints.count) endpoints")
                for endpoint in endpoints where endpoint.via == .mdns { check(endpoint.port >= 1_024, "port \(endpoint.port) is dialled") }
                probes[id] = (endpoints, expecting)
            case .openResolver(let record): resolvers.insert(record)
            case .closeResolver(let record): resolvers.remove(record)
            case .changed(.ghost(let ghost)): check(ghost.why.utf8.count <= 2_048, "a long reason")
            case .changed(.up), .changed(.down), .changed(.conflict), .changed(.conflictEnded), .listingChanged: break
            }
        }
        // The directory ends a probe that got no result.
        probes = probes.filter { directory.running[$0.key] != nil }
    }

    /// Checks that the list is printable.
    func checkListing() {
        for row in directory.listing() {
            check(row.name.utf8.count <= DirectoryLimits.nameBytes && row.why.utf8.count <= 4_096, "a long row")
            check(TerminalText.clean(row.why).unicodeScalars.allSatisfy(TerminalText.isShown), "a reason that cannot be shown")
        }
    }
}

private func check(_ holds: Bool, _ message: @autoclosure () -> String) {
    if !holds { fatalError(message()) }
}
