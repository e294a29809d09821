public import HexlistModel
import Testing

@testable import HexlistDiscovery

// Addresses as texts, for tests: an invalid address traps.
extension IPAddress: ExpressibleByStringLiteral {
    public init(stringLiteral text: String) {
        guard let address = IPAddress(text) else { fatalError("\(text) is no address") }
        self = address
    }
}

/// A directory with a manual clock and a record of its outputs.
struct Stage {
    static let start = ContinuousClock.Instant.now
    static let own = PeerID(UUIDBytes(high: 0x0, low: 0x1).with(version: 8))
    static let boot = BootNonce(0xB007)
    static let interfaces = [
        InterfaceAddress(interface: "eth0", index: 2, address: "192.168.7.1", prefixLength: 24),
        InterfaceAddress(interface: "eth0", index: 2, address: "fe80::1", prefixLength: 64),
        InterfaceAddress(interface: "eth1", index: 3, address: "192.168.8.1", prefixLength: 24),
    ]

    var directory: PeerDirectory
    var now = Stage.start
    /// Running probes, oldest first. A check needs the handshake only.
    var probes: [(id: ProbeID, endpoints: [Endpoint], expecting: PeerID?, isCheck: Bool)] = []
    var begun: [ContinuousClock.Instant] = []
    var open: Set<Record> = []
    var events: [PeerEvent] = []

    /// - Parameter remembers: peers with data in the store.
    init(
        limits: DirectoryLimits = .init(), boot: BootNonce = Self.boot, own: PeerID = Self.own, remembers: Set<PeerID> = []
    ) {
        directory = PeerDirectory(own: own, boot: boot, limits: limits, now: now)
        tell(.remembered(remembers))
        tell(.discovery(.interfaces(Self.interfaces)))
    }

    static func peer(_ number: UInt64) -> PeerID { PeerID(UUIDBytes(high: (0xABCD_0000 + number) << 32, low: number).with(version: 8)) }

    @discardableResult
    mutating func tell(_ input: PeerDirectory.Input) -> [PeerDirectory.Output] {
        let outputs = directory.handle(input, now: now)
        for output in outputs {
            switch output {
            case .probe(let id, let endpoints, let expecting):
                probes.append((id, endpoints, expecting, false))
                begun.append(now)
            case .check(let id, let endpoints, let expecting):
                probes.append((id, endpoints, expecting, true))
                begun.append(now)
            case .openResolver(let record): open.insert(record)
            case .closeResolver(let record): open.remove(record)
            case .changed(let event): events.append(event)
            case .listingChanged: break
            }
        }
        return outputs
    }

    /// Advances the clock, stopping at each deadline.
    mutating func pass(_ duration: Duration) {
        let end = now + duration
        while let deadline = directory.nextDeadline, deadline <= end {
            now = max(now, deadline)
            tell(.tick)
        }
        now = end
        tell(.tick)
    }

    /// Ends the oldest probe.
    mutating func end(_ result: ProbeResult) {
        guard !probes.isEmpty else { return }
        let probe = probes.removeFirst()
        tell(.probeEnded(probe.id, result))
    }

    static func record(_ name: String, ipv6: Bool = false, interface: Int32 = 2) -> Record {
        Record(key: InstanceKey(name: name, type: "_hexlist._tcp", domain: "local"), interface: interface, ipv6: ipv6)
    }

    static func txt(_ peer: PeerID, boot: BootNonce? = BootNonce(1)) -> [[UInt8]] {
        var strings = ["txtvers=1", "id=\(peer)", "v=1.0.0", "p=1"]
        if let boot { strings.append("boot=\(boot)") }
        return strings.map { Array($0.utf8) }
    }

    /// Announces an instance and resolves it.
    @discardableResult
    mutating func announce(
        _ peer: PeerID, name: String? = nil, boot: BootNonce? = BootNonce(1), address: String = "192.168.7.20", port: UInt16 = 24391,
        interface: Int32 = 2
    ) -> Record {
        let ipv6 = address.contains(":")
        let record = Self.record(name ?? PeerName.instance(displayName: "P", peer: peer), ipv6: ipv6, interface: interface)
        tell(.discovery(.appeared(record, interfaceName: interface == 2 ? "eth0" : "eth1")))
        resolve(record, Self.txt(peer, boot: boot), address: address, port: port)
        return record
    }

    mutating func resolve(_ record: Record, _ txt: [[UInt8]], address: String = "192.168.7.20", port: UInt16 = 24391) {
        tell(.discovery(.resolved(record, Resolution(host: "p.local", address: address, port: port, txt: txt))))
    }

    /// Dials a session with the peer, which ends the oldest probe.
    @discardableResult
    mutating func prove(_ peer: PeerID, boot: BootNonce = BootNonce(1), name: String = "P") -> SessionInfo {
        let endpoint = probes.first?.endpoints.first
        let session = SessionInfo(peer: peer, boot: boot, name: name, version: "1.0.0", endpoint: endpoint)
        tell(.sessionUp(session))
        if let endpoint { end(.proved(peer, boot, endpoint)) }
        return session
    }

    /// Announces a peer, proves it and ends its session: the peer is verified.
    mutating func verified(_ peer: PeerID) -> Record {
        let record = announce(peer)
        let session = prove(peer)
        tell(.sessionDown(session, .idle))
        return record
    }

    var rows: [DirectoryRow] { directory.listing() }
    /// The peer's row in the list, which must equal `PeerDirectory.row(of:comparing:)`.
    func row(_ peer: PeerID) -> DirectoryRow? {
        let row = rows.first { $0.peer == peer && $0.state != .ghost }
        let found = directory.row(of: peer, comparing: true).flatMap { $0.state == .ghost ? nil : $0 }
        #expect(found == row)
        return row
    }
    func ghosts(_ peer: PeerID? = nil) -> [DirectoryRow] { rows.filter { $0.state == .ghost && (peer == nil || $0.peer == peer) } }
}
