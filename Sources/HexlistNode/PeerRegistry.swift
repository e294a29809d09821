import HexlistAPI
import HexlistDiscovery
import HexlistEventLoop
import HexlistModel
import HexlistSession
import HexlistStore
import HexlistTransport
import HexlistWire
import Logging
import NIOCore

/// The known peers: the store's records as last read, and the keys proven since the start. Decides to which of two keys with one UUID a
/// record belongs.
final class PeerRegistry {
    /// The most proven keys kept before those are dropped that no announcement and no session has.
    private static let keysBound = 2 * 8_192

    /// The records of peers that the store knows: trust, alias, counters. Strangers that left nothing are not here.
    private var records: [PeerID: PeerRecord] = [:]
    /// The proven keys, also of peers that the store need not know: at most `keysBound`, and those of listed peers.
    private(set) var keys: [PeerID: Fingerprint] = [:]
    /// The last addresses of trusted peers that had a session since the start, whoever dialled: peers that only dial have no endpoint.
    private var lastAddresses: [PeerID: String] = [:]
    /// The timer that runs while the transport has not been told all of `lastAddresses`.
    private let reserveTimer: DeadlineTimer
    /// Rises with all that makes an older reading of the store's peers an old one.
    private var changes = 0
    private var isReading = false

    init(on eventLoop: any EventLoop, _ clocks: Clocks) { reserveTimer = DeadlineTimer(on: eventLoop, clocks) }

    // MARK: Who is this

    /// The store's record of a peer, whatever key the peer proved.
    subscript(peer: PeerID) -> PeerRecord? { records[peer] }

    var all: some Collection<PeerRecord> { records.values }

    /// The record of a peer with this key; `nil` if it is known by another key with the same UUID.
    /// - Parameter key: the key; `nil` for any.
    func record(of peer: PeerID, key: Fingerprint?) -> PeerRecord? {
        guard let record = records[peer] else { return nil }
        if let kept = record.fingerprint, let key, kept != key { return nil }
        return record
    }

    /// The record of a peer by the key it proved last, if any.
    func record(of peer: PeerID) -> PeerRecord? { record(of: peer, key: keys[peer]) }

    /// The trust in a key. Trust binds to the whole fingerprint: a key that only shares a UUID is a stranger's, as is a missing one.
    func trust(of key: Fingerprint?) -> Trust { key.flatMap { record(of: $0.peerID, key: $0)?.trust } ?? .stranger }

    /// Whether a peer is trusted, by its UUID alone.
    func isTrusted(_ peer: PeerID) -> Bool { records[peer]?.trust == .trusted }

    /// - Parameter name: what it calls itself, as it said since the start.
    func label(of peer: PeerID, name: String?) -> PeerDisplayName {
        let record = record(of: peer)
        return PeerDisplayName(peer, name: name ?? record?.name ?? "", alias: record?.alias, trust: record?.trust ?? .stranger)
    }

    // MARK: Keys

    /// - Parameter listed: peers to be remembered in any case; asked for where there are too many.
    func proved(_ peer: PeerID, _ key: Fingerprint, listed: @autoclosure () -> Set<PeerID>) {
        if keys.count >= Self.keysBound {
            let listed = listed()
            keys = keys.filter { listed.contains($0.key) }
        }
        keys[peer] = key
    }

    func forgetKey(of peer: PeerID) { keys[peer] = nil }

    // MARK: From the store

    func set(_ records: [PeerRecord]) {
        self.records = Dictionary(records.map { ($0.peer, $0) }, uniquingKeysWith: { first, _ in first })
    }

    func set(_ records: [PeerRecord], _ host: isolated some PeersHost) {
        set(records)
        host.finder.apply(.remembered(Set(self.records.keys)), host)
    }

    func reload(_ host: isolated some PeersHost) async {
        let changes = self.changes
        do {
            set(try await host.store.read { try $0.peers() }, host)
            if self.changes != changes { read(host) }
        } catch {
            host.logger.error("peers could not be read", metadata: ["error": "\(error)"])
        }
    }

    /// Reads the records again after a change on the hot path, without waiting.
    func reloadSoon(_ host: isolated some PeersHost) {
        changes += 1
        read(host)
    }

    /// Reads the records, and tells those who watch: what they look at next shows them. One reading is under way at a time; later changes
    /// are in the next.
    private func read(_ host: isolated some PeersHost) {
        guard !isReading else { return }
        isReading = true
        let changes = self.changes
        host.store.submitRead({ try $0.peers() }) { [host] result in
            host.onLoop { host in
                host.known.isReading = false
                if case .success(let records) = result { host.known.set(records, host) }
                if host.known.changes != changes { host.known.read(host) } else { host.watchers.notify() }
            }
        }
    }

    // MARK: Into the store

    /// A peer the store knows showed itself: its name, version and address are the newest.
    func remember(
        _ peer: PeerID, fingerprint: Fingerprint, hello: Hello, version: String, session: PeerSession, _ host: isolated some PeersHost
    ) {
        guard let record = record(of: peer, key: fingerprint) else { return }
        let address = session.connection.remoteAddress
        if record.trust == .trusted, lastAddresses[peer] != address {
            lastAddresses[peer] = address
            // One call for all peers that come within a second.
            reserveTimer.set(host.clocks.now + .seconds(1), host) { $0.known.reserveAddresses($0) }
        }
        let at = host.clocks.milliseconds
        var endpoints: [PeerEndpoint] = []
        if let dialled = session.dialled?.endpoint {
            if let host = session.addressBehindName {
                endpoints.append(PeerEndpoint(Endpoint(host: host, port: dialled.port, interface: dialled.interface, via: .lastKnown), at))
            }
            endpoints.append(PeerEndpoint(dialled, at))  // so that the name is tried first
        }
        keep(
            ContactInfo(
                peer: peer, fingerprint: fingerprint, name: PeerName.cut(hello.name, bytes: NameKey.bytes),
                version: PeerName.cut(version, bytes: 64),
                boot: hello.boot, seenAt: at, endpoints: endpoints), host)
    }

    /// Records that a peer was seen until now, when a session with it ended; trusted peers alone, and none while the node stops.
    func rememberSeen(_ peer: PeerID, _ host: isolated some PeersHost) {
        guard !host.isStopping, let record = records[peer], record.trust == .trusted else { return }
        let name = PeerName.cut(host.finder.directory.provenName(of: peer) ?? record.name, bytes: NameKey.bytes)
        keep(ContactInfo(record, name: name, seenAt: host.clocks.milliseconds), host)
    }

    /// Stores the places where a trusted peer answered, for the next start.
    func rememberPlaces(of peer: PeerID, _ host: isolated some PeersHost) {
        guard let record = records[peer], record.trust == .trusted else { return }
        let at = host.clocks.milliseconds
        let endpoints = host.finder.directory.answeredEndpoints(of: peer).map { PeerEndpoint($0, at) }
        guard !endpoints.isEmpty else { return }
        keep(ContactInfo(record, name: record.name, seenAt: at, endpoints: endpoints), host)
    }

    /// A later Hello told another name: that is its latest. One such write a second at most for each session, and none that no Hello
    /// caused: two sessions of one key may tell different names, and neither is to write its own over and over.
    func rememberName(_ session: PeerSession, _ host: isolated some PeersHost) {
        guard !host.isStopping, session.connection.isOpen, let fingerprint = session.connection.peerFingerprint, let peer = session.peer,
            let record = records[peer], record.fingerprint == fingerprint, let hello = session.machine.peerHello
        else { return }
        guard session.namePause == nil else { return session.namePause = .toldAgain }
        let name = PeerName.cut(hello.name, bytes: NameKey.bytes)
        guard !name.utf8.elementsEqual(record.name.utf8) else { return }
        session.namePause = .quiet
        keep(ContactInfo(record, name: name, seenAt: host.clocks.milliseconds), tells: true, host)
        host.eventLoop.scheduleTask(in: .seconds(1)) { [weak host, weak session] in
            host?.assumeIsolated { host in
                guard let session, session.namePause.take() == .toldAgain else { return }
                host.known.rememberName(session, host)
            }
        }
    }

    /// - Parameter tells: whether those who watch are told.
    private func keep(_ sighting: ContactInfo, tells: Bool = false, _ host: isolated some PeersHost) {
        host.store.record(sighting) { [host] result in
            switch result {
            case .success(let record):
                host.onLoop { host in
                    host.known.records[sighting.peer] = record
                    host.known.changes += 1
                    if tells { host.watchers.notify() }
                }
            case .failure(let error):
                host.logger.error("peer could not be recorded", metadata: ["peer.id": "\(sighting.peer)", "error": "\(error)"])
            }
        }
    }

    // MARK: Reserved addresses

    /// Places kept for the last addresses of trusted peers, so that a flood of strangers does not shut them out.
    func reserveAddresses(_ host: isolated some PeersHost) {
        lastAddresses.merge(host.sessionAddresses) { _, new in new }
        lastAddresses = lastAddresses.filter { isTrusted($0.key) }
        let endpoints = records.values.filter { $0.trust == .trusted }.flatMap { $0.endpoints.map(\.host) }
        host.transport.setReservedAddresses(endpoints + lastAddresses.values)
    }

    func stop() { reserveTimer.cancel() }
}

extension ContactInfo {
    /// A peer as it is recorded, seen again.
    fileprivate init(_ record: PeerRecord, name: String, seenAt: Int64, endpoints: [PeerEndpoint] = []) {
        self.init(
            peer: record.peer, fingerprint: record.fingerprint, name: name, version: record.version, boot: record.boot, seenAt: seenAt,
            endpoints: endpoints)
    }
}
