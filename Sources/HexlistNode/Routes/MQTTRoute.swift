import HexlistEnvelope
import HexlistEventLoop
import HexlistMQTT
import HexlistModel
import HexlistSystem
import HexlistTransport
import Logging

/// An MQTT broker with a topic for each peer, `hexlist/v1/UUID`. The mailbox of a peer is its persistent session at the broker.
final class MQTTRoute: Route, @unchecked Sendable {
    private static let topicPrefix = "hexlist/v1/"
    /// Maximum number of envelopes that are opened in one round.
    private static let roundLetters = 64
    /// The time for which nothing is published to a peer after its mailbox was full.
    private static let fullPause = Duration.seconds(600)
    /// Maximum bytes of a password.
    private static let passwordBytes = 4_096

    let configuration: RouteConfiguration
    private let address: MQTTAddress
    private let coder: EnvelopeCoder
    private let identity: Identity
    private let timer: DeadlineTimer
    private var connection: MQTTConnection?
    private var reconnect = MQTTReconnect()
    private(set) var fault: RouteFault? = RouteFault(text: "not connected yet")
    let interval = Duration.seconds(300)
    let envelopeBytes: Int

    private var inbox = MQTTInbox()
    private var publishes = MQTTPublishes()
    /// The peers whose mailboxes are full, with the end of the pause.
    private var full: [PeerID: ContinuousClock.Instant] = [:]
    /// Whether the last connection ended with publishes in flight, so that the next one publishes one at a time at first.
    private var isCautious = false
    private var isStopped = false

    init(
        _ configuration: RouteConfiguration, _ address: MQTTAddress, _ coder: EnvelopeCoder, _ identity: Identity, on timer: DeadlineTimer
    ) {
        self.configuration = configuration
        self.address = address
        self.coder = coder
        self.identity = identity
        self.timer = timer
        envelopeBytes = min(Envelope.sizes.upperBound, address.maximumBytes ?? .max)
    }

    func start(_ node: isolated Node) { connect(node) }

    func stop() {
        isStopped = true
        timer.cancel()
        connection?.close()
        connection = nil
    }

    // MARK: Connection

    private func connect(_ node: isolated Node) {
        node.onFileThreads { [address, identity] in
            let password = try address.passwordFile.map { try Self.password(in: $0) }
            let tls = try address.isEncrypted ? BrokerTLS(identity: address.user == nil ? identity : nil, caFile: address.caFile) : nil
            return (password, tls)
        } then: { [weak self] (result: Result<([UInt8]?, BrokerTLS?), any Error>, node) in
            guard let self, !self.isStopped else { return }
            switch result {
            case .success((let password, let tls)): connect(password, tls, node)
            case .failure(let error):
                ended(.failed((error as? HexlistError)?.message ?? "\(error)"), inFlight: [], loggedInAt: nil, node)
            }
        }
    }

    private func connect(_ password: [UInt8]?, _ tls: BrokerTLS?, _ node: isolated Node) {
        let login = MQTTConnect(clientID: address.clientID ?? node.id.description, user: address.user, password: password)
        let session = MQTTSession(login: login, topic: Self.topicPrefix + node.id.description, isCautious: isCautious, now: .now)
        connection = MQTTConnection(to: address, tls: tls, session: session, on: node.eventLoop) { [weak self, weak node] event in
            node?.assumeIsolated { node in
                self?.handle(event, node)
            }
        }
    }

    /// Reads a password file, which only its owner may read.
    private static func password(in file: String) throws -> [UInt8] {
        guard SmallFile.isPrivate(file) else {
            throw HexlistError(.configuration, "the password file \(file) is missing, or others may read it: it needs mode 0600")
        }
        var bytes = Array(try SmallFile.read(file, limit: passwordBytes).utf8)
        while let last = bytes.last, last == 0x0A || last == 0x0D { bytes.removeLast() }
        return bytes
    }

    private func handle(_ event: MQTTConnection.Event, _ node: isolated Node) {
        guard !isStopped else { return stopped(event, node) }
        switch event {
        case .ready:
            fault = nil
            node.logger.info("broker connected", metadata: ["route": "\(name)"])
            node.routes.worksAgain(self, node)
        case .received(let id, let topic, let payload):
            guard topic.utf8.elementsEqual((Self.topicPrefix + node.id.description).utf8) else {
                if let id { connection?.acknowledge(id) }
                return
            }
            guard Envelope.sizes.contains(payload.count) else {
                if let id { connection?.acknowledge(id) }
                node.routes.reader(name)?.dropped(.noEnvelope, node)
                return
            }
            // A message with QoS 0 is stored like any other; it needs no acknowledgement.
            if inbox.add(payload, id: id) { node.routes.reader(name)?.envelopeArrived(node) }
            connection?.setFull(!inbox.hasRoom)
        case .skipped:
            node.routes.reader(name)?.dropped(.noEnvelope, node)
        case .accepted(let number):
            isCautious = false
            publishes.accepted(number)?(node)
        case .expired(let number):
            if let peer = publishes.recipient(of: number) { full[peer] = node.clocks.now + Self.fullPause }
            publishes.failed(number, .full)?(node)
        case .ended(let fault, let inFlight, let unsent):
            let loggedInAt = connection?.loggedInAt
            connection = nil
            // A broker that closes the connection twice at the same envelope refuses it.
            let refused = isCautious && inFlight.count == 1 && fault == .closed
            if refused, let peer = publishes.recipient(of: inFlight[0]) { full[peer] = node.clocks.now + Self.fullPause }
            isCautious = !inFlight.isEmpty && !refused
            ended(fault, inFlight: inFlight, loggedInAt: loggedInAt, node)
            let obstacle = RouteObstacle.fault(self.fault ?? RouteFault(text: fault.text))
            for number in inFlight + unsent { publishes.failed(number, refused && number == inFlight[0] ? .full : obstacle)?(node) }
        }
    }

    /// Ends the posts in progress of a route that was removed, so that their letters can be posted on other routes.
    private func stopped(_ event: MQTTConnection.Event, _ node: isolated Node) {
        guard case .ended(let fault, let inFlight, let unsent) = event, !node.isStopping else { return }
        for number in inFlight + unsent { publishes.failed(number, .fault(RouteFault(text: fault.text)))?(node) }
    }

    private func ended(_ end: MQTTFault, inFlight: [Int], loggedInAt: ContinuousClock.Instant?, _ node: isolated Node) {
        // The broker sends unacknowledged envelopes again on the next connection.
        let isPlanned = inbox.clear()
        var random = SystemRandomNumberGenerator()
        let pause = reconnect.pause(
            after: MQTTReconnect.End(fault: end, loggedInAt: loggedInAt, hadPublishes: !inFlight.isEmpty || isPlanned), now: .now,
            using: &random)
        let text = reconnect.hasSecondClient ? "another machine is using this mailbox (same identity on two machines?)" : end.text
        fault = RouteFault(text: text, nextTry: node.clocks.now + pause)
        node.logger.notice("broker not connected", metadata: ["route": "\(name)", "reason": "\(text)"])
        timer.set(node.clocks.now + pause, node) { [weak self] node in
            guard let self, !self.isStopped else { return }
            self.connect(node)
        }
    }

    // MARK: Reading

    func open(
        _ trusts: [Fingerprint: Trust], leavingOut postponed: PostponedEnvelopes, _ node: isolated Node,
        then completion: @escaping @Sendable (Result<MailboxRoundResult, any Error>, isolated Node) -> Void
    ) {
        let (now, instant) = (node.clocks.milliseconds, node.clocks.now)
        let due = inbox.envelopes.filter { !postponed.contains($0.name, now: instant) }
        let round = Array(due.prefix(Self.roundLetters))
        let hasMore = due.count > round.count
        let work: @Sendable () throws -> MailboxRoundResult = { [coder] in
            var arrivals = MailboxRoundResult(hasMore: hasMore)
            for envelope in round {
                guard arrivals.weight < ProtocolLimits.sessionWeight else {
                    arrivals.hasMore = true
                    break
                }
                do throws(EnvelopeFault) {
                    try arrivals.open(envelope.name, envelope.bytes, with: coder, now: now) { trusts[$0] ?? .stranger }
                } catch {
                    // A broker delivers whole messages, so none is incomplete.
                    arrivals.dropped.append((envelope.name, error))
                }
            }
            return arrivals
        }
        node.onFileThreads(work, then: completion)
    }

    func remove(
        _ envelopes: [String], _ node: isolated Node, then completion: @escaping @Sendable ([String], isolated Node) -> Void
    ) {
        for envelope in envelopes {
            // An envelope of an earlier connection is not in the inbox; the broker sends it again.
            if let id = inbox.remove(envelope) { connection?.acknowledge(id) }
        }
        connection?.setFull(!inbox.hasRoom)
        // The broker sends envelopes that did not fit into memory only on a new connection.
        if inbox.needsConnection { connection?.close() }
        completion([], node)
    }

    // MARK: Posting

    func post(
        _ letters: [[[UInt8]]], to key: Fingerprint, card: Card?, _ node: isolated Node,
        then completion: @escaping @Sendable (PostResult, isolated Node) -> Void
    ) {
        let now = node.clocks.milliseconds
        if let obstacle = obstacle(for: key.peerID, node) { return completion(PostResult(obstacle: obstacle), node) }
        guard let card else { return completion(PostResult(obstacle: .noCard), node) }
        node.onFileThreads { [coder] in
            try letters.map { try coder.seal($0, for: card, at: now) }
        } then: { [weak self] result, node in
            guard let self else { return completion(PostResult(obstacle: .fault(RouteFault(text: "not connected"))), node) }
            guard let connection, let envelopes = try? result.get(), !envelopes.isEmpty else {
                return completion(PostResult(obstacle: .fault(fault ?? RouteFault(text: "not connected"))), node)
            }
            let files = envelopes.map { (file: EnvelopeFileName(postedAt: now, id: $0.id), bytes: $0.bytes.count) }
            let first = publishes.begin(files, to: key.peerID, then: completion)
            for (index, envelope) in envelopes.enumerated() {
                connection.publish(envelope.bytes, to: Self.topicPrefix + key.peerID.description, number: first + index)
            }
        }
    }

    private func obstacle(for peer: PeerID, _ node: isolated Node) -> RouteObstacle? {
        if connection == nil || fault != nil { return .fault(fault ?? RouteFault(text: "not connected yet")) }
        guard let until = full[peer] else { return nil }
        if node.clocks.now < until { return .full }
        full[peer] = nil
        return nil
    }

    /// Reports no file as present, because a broker does not report which messages it stores.
    func present(
        _ files: [EnvelopeFileName], of peer: PeerID, _ node: isolated Node,
        then completion: @escaping @Sendable (Set<EnvelopeFileName>, isolated Node) -> Void
    ) { completion([], node) }

    func withdraw(_ files: [EnvelopeFileName], of peer: PeerID, _ node: isolated Node) {}
}
