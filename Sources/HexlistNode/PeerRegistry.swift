import HexlistAPI
import HexlistDiscovery
import HexlistEnvelope
import HexlistEventLoop
import HexlistLists
import HexlistModel
import HexlistSession
import HexlistStore
import HexlistTransport
import HexlistWire
import Logging
import NIOCore

/// The known peers: the store's records as last read, and the keys proven since the start. A record belongs to a key, not only to its UUID.
final class PeerRegistry {
    /// Number of proven keys at which keys of peers that have neither an announcement nor a session are dropped.
    private static let keysBound = 2 * 8_192

    /// The stored records of Hexlist peers: trust, alias, counters. Strangers without hexes have none.
    private var records: [PeerID: PeerRecord] = [:]
    /// The stored records of devices. They are separate, so that the trust in a device never applies to a session.
    private(set) var devices: [PeerID: PeerRecord] = [:]
    /// The records of guests and drop tokens, which have no key.
    private(set) var keyless: [PeerID: PeerRecord] = [:]
    /// The proven keys, also of peers without a record. If there are `keysBound` keys, those of peers that are not listed are dropped.
    private(set) var keys: [PeerID: Fingerprint] = [:]
    /// The last address of each trusted peer with a session since the start, in either direction. Needed because a peer that was never
    /// dialled has no stored endpoint.
    private var lastAddresses: [PeerID: String] = [:]
    /// Delays `reserveAddresses`, so that it runs once for several changes.
    private let reserveTimer: DeadlineTimer
    /// Increases with each change after which an earlier read of the store is outdated.
    private var changes = 0
    private var isReading = false

    init(on eventLoop: any EventLoop, _ clocks: Clocks) { reserveTimer = DeadlineTimer(on: eventLoop, clocks) }

    // MARK: Records

    /// The record with a UUID, regardless of the proven key.
    subscript(peer: PeerID) -> PeerRecord? { records[peer] }

    var all: some Collection<PeerRecord> { records.values }

    /// The record of a peer; `nil` if it belongs to another key with the same UUID.
    /// - Parameter key: `nil` for any.
    func record(of peer: PeerID, key: Fingerprint?) -> PeerRecord? {
        guard let record = records[peer] else { return nil }
        if let kept = record.fingerprint, let key, kept != key { return nil }
        return record
    }

    /// The record of a peer, if it belongs to the key that the peer proved last.
    func record(of peer: PeerID) -> PeerRecord? { record(of: peer, key: keys[peer]) }

    /// The trust in a key. Trust is bound to the whole fingerprint: the result is `.stranger` for a different key with the same UUID, and
    /// for `nil`.
    func trust(of key: Fingerprint?) -> Trust { key.flatMap { record(of: $0.peerID, key: $0)?.trust } ?? .stranger }

    /// Whether a Hexlist peer with this key is recorded, or proved the key since the start.
    func isKnown(_ key: Fingerprint) -> Bool { keys[key.peerID] == key || records[key.peerID]?.fingerprint == key }

    /// Whether a peer is trusted, by its UUID alone.
    func isTrusted(_ peer: PeerID) -> Bool { records[peer]?.trust == .trusted }

    /// The name of a peer, a guest or a drop token in messages.
    /// - Parameter name: the name of the peer's last Hello; `nil` if there was none since the start.
    func label(of peer: PeerID, name: String?) -> PeerDisplayName {
        if let sender = keyless[peer] { return sender.label }
        let record = record(of: peer)
        return PeerDisplayName(peer, name: name ?? record?.name ?? "", alias: record?.alias, trust: record?.trust ?? .stranger)
    }

    // MARK: Keys

    /// Records a proven key.
    /// - Parameter listed: the peers whose keys are kept in any case; evaluated only if there are too many.
    func proved(_ peer: PeerID, _ key: Fingerprint, listed: @autoclosure () -> Set<PeerID>) {
        if keys.count >= Self.keysBound {
            let listed = listed()
            keys = keys.filter { listed.contains($0.key) }
        }
        keys[peer] = key
    }

    func forgetKey(of peer: PeerID) { keys[peer] = nil }

    // MARK: Reading

    func set(_ records: [PeerRecord]) {
        let byPeer = { (records: [PeerRecord]) in Dictionary(records.map { ($0.peer, $0) }, uniquingKeysWith: { first, _ in first }) }
        self.records = byPeer(records.filter { $0.kind == .hexlist })
        devices = byPeer(records.filter { $0.kind == .localsend })
        keyless = byPeer(records.filter { !$0.kind.hasKey })
    }

    func set(_ stored: StoredPeers, _ node: isolated Node) {
        set(stored.records)
        node.linkOpening.set(stored.records.contains { $0.openLinks > 0 }, lastEvent: stored.lastEvent)
        node.finder.apply(.remembered(Set(self.records.keys)), node)
        node.devices.knownChanged(node)
        let trusted = self.records.values.lazy.filter { $0.trust == .trusted }.map {
            ($0.peer, $0.isOwn ? ListExchange.Relation.ownMachine : .otherPerson)
        }
        node.lists.peersChanged(to: Dictionary(trusted) { first, _ in first }, node)
    }

    func reload(_ node: isolated Node) async {
        let changes = self.changes
        do {
            set(try await node.store.read(StoredPeers.init), node)
            if self.changes != changes { read(node) }
        } catch {
            node.logger.error("peers could not be read", metadata: ["error": "\(error)"])
        }
    }

    /// Reads the records again in the background.
    func reloadSoon(_ node: isolated Node) {
        changes += 1
        read(node)
    }

    /// Reads the records, then notifies watchers. One read is in progress at a time; another one follows if there were changes meanwhile.
    private func read(_ node: isolated Node) {
        guard !isReading else { return }
        isReading = true
        let changes = self.changes
        node.store.submitRead(StoredPeers.init) { [node] result in
            node.onLoop { node in
                node.registry.isReading = false
                if case .success(let stored) = result { node.registry.set(stored, node) }
                if node.registry.changes != changes { node.registry.read(node) } else { node.watchers.notify() }
            }
        }
    }

    // MARK: Writing

    /// Stores the name, version and address of a known peer after its Hello.
    func remember(
        _ peer: PeerID, fingerprint: Fingerprint, hello: Hello, version: String, session: PeerSession, _ node: isolated Node
    ) {
        guard let record = record(of: peer, key: fingerprint) else { return }
        let address = session.connection.remoteAddress
        if record.trust == .trusted, lastAddresses[peer] != address {
            lastAddresses[peer] = address
            // The addresses are reserved once for all peers that connect within a second.
            reserveTimer.set(node.clocks.now + .seconds(1), node) { $0.registry.reserveAddresses($0) }
        }
        let at = node.clocks.milliseconds
        var endpoints: [PeerEndpoint] = []
        if let dialled = session.dialled?.endpoint {
            if let host = session.addressBehindName {
                endpoints.append(PeerEndpoint(Endpoint(host: host, port: dialled.port, interface: dialled.interface, via: .lastKnown), at))
            }
            endpoints.append(PeerEndpoint(dialled, at))  // last, because the last endpoint is dialled first
        }
        keep(
            PeerContact(
                peer: peer, fingerprint: fingerprint, name: PeerName.cut(hello.name, bytes: NormalizedName.bytes),
                version: PeerName.cut(version, bytes: 64),
                boot: hello.boot, seenAt: at, endpoints: endpoints), node)
    }

    /// Updates the time at which a trusted peer was last seen, when a session with it ended. Does nothing while the node stops.
    func rememberSeen(_ peer: PeerID, _ node: isolated Node) {
        guard !node.isStopping, let record = records[peer], record.trust == .trusted else { return }
        let name = PeerName.cut(node.finder.directory.provenName(of: peer) ?? record.name, bytes: NormalizedName.bytes)
        keep(PeerContact(record, name: name, seenAt: node.clocks.milliseconds), node)
    }

    /// Stores the addresses at which a trusted peer answered, for the next start.
    func rememberPlaces(of peer: PeerID, _ node: isolated Node) {
        guard let record = records[peer], record.trust == .trusted else { return }
        let at = node.clocks.milliseconds
        let endpoints = node.finder.directory.answeredEndpoints(of: peer).map { PeerEndpoint($0, at) }
        guard !endpoints.isEmpty else { return }
        keep(PeerContact(record, name: record.name, seenAt: at, endpoints: endpoints), node)
    }

    /// Stores the peer's new name after a later Hello, at most once a second for each session. Writes only after a Hello, never after a
    /// change of the record: two sessions of one key with different names would overwrite each other forever.
    func rememberName(_ session: PeerSession, _ node: isolated Node) {
        guard !node.isStopping, session.connection.isOpen, let fingerprint = session.connection.peerFingerprint, let peer = session.peer,
            let record = records[peer], record.fingerprint == fingerprint, let hello = session.machine.peerHello
        else { return }
        guard session.namePause == nil else { return session.namePause = .hadHello }
        let name = PeerName.cut(hello.name, bytes: NormalizedName.bytes)
        guard !name.utf8.elementsEqual(record.name.utf8) else { return }
        session.namePause = .quiet
        keep(PeerContact(record, name: name, seenAt: node.clocks.milliseconds), notifies: true, node)
        node.eventLoop.scheduleTask(in: .seconds(1)) { [weak node, weak session] in
            node?.assumeIsolated { node in
                guard let session, session.namePause.take() == .hadHello else { return }
                node.registry.rememberName(session, node)
            }
        }
    }

    /// Stores the card in a Hello of a trusted key, with which envelopes to the peer are encrypted while it is away. A damaged card, a card
    /// of another key and a card that is not newer than the stored one are ignored.
    func rememberCard(_ text: String?, of key: Fingerprint?, _ node: isolated Node) {
        guard let text, let card = Card(base64: text), card.fingerprint == key else { return }
        rememberCard(card, node)
    }

    func rememberCard(_ card: Card, _ node: isolated Node) {
        let key = card.fingerprint
        guard trust(of: key) == .trusted, records[key.peerID]?.card.map({ $0.serial < card.serial }) ?? true, card.isSignatureValid else {
            return
        }
        node.store.setCard(PeerCard(bytes: card.bytes, serial: card.serial), of: key) { [logger = node.logger] result in
            guard case .failure(let error) = result else { return }
            logger.error("card could not be recorded", metadata: ["peer.id": "\(key.peerID)", "error": "\(error)"])
        }
    }

    /// The stored card of a trusted peer; `nil` if this machine has none yet.
    func card(of peer: PeerID) -> Card? {
        guard let record = records[peer], record.trust == .trusted, let card = record.card.flatMap({ Card(bytes: $0.bytes) }),
            card.fingerprint == record.fingerprint
        else { return nil }
        return card
    }

    /// Stores contact information, and then updates the record in memory.
    /// - Parameter notifies: whether watchers are notified.
    private func keep(_ sighting: PeerContact, notifies: Bool = false, _ node: isolated Node) {
        node.store.record(sighting) { [node] result in
            switch result {
            case .success(let record):
                node.onLoop { node in
                    node.registry.records[sighting.peer] = record?.kind == .hexlist ? record : nil
                    node.registry.changes += 1
                    if notifies { node.watchers.notify() }
                }
            case .failure(let error):
                node.logger.error("peer could not be recorded", metadata: ["peer.id": "\(sighting.peer)", "error": "\(error)"])
            }
        }
    }

    // MARK: Reserved addresses

    /// Reserves connections for the last addresses of trusted peers, so that a flood of strangers does not lock them out.
    func reserveAddresses(_ node: isolated Node) {
        lastAddresses.merge(node.links.compactMapValues { $0.sending?.connection.remoteAddress }) { _, new in new }
        lastAddresses = lastAddresses.filter { isTrusted($0.key) }
        let endpoints = records.values.filter { $0.trust == .trusted }.flatMap { $0.endpoints.map(\.host) }
        node.transport.setReservedAddresses(endpoints + lastAddresses.values)
    }

    func stop() { reserveTimer.cancel() }
}

/// The records of all peers, and the number of the last event of the snapshot in which they were read.
struct StoredPeers: Sendable {
    let records: [PeerRecord]
    let lastEvent: Int64

    init(_ reader: StoreReader) throws {
        records = try reader.peers()
        lastEvent = try reader.counts().lastEvent
    }
}

extension PeerContact {
    /// The contact information of a record, with a new name and time.
    fileprivate init(_ record: PeerRecord, name: String, seenAt: Int64, endpoints: [PeerEndpoint] = []) {
        self.init(
            peer: record.peer, fingerprint: record.fingerprint, name: name, version: record.version, boot: record.boot, seenAt: seenAt,
            endpoints: endpoints)
    }
}
