import DequeModule
import HexlistModel

/// The state machine of one connection to a broker: login, one subscription, publishes with QoS 1, and keep-alive. Performs no IO.
package struct MQTTSession: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// Maximum publishes in flight.
    package static let window: Int = 16
    /// Timeout of the broker's reply to a packet.
    package static let answerTime = Duration.seconds(30)
    /// Time after the last sent packet when a PINGREQ is sent. Less than the keep-alive of 240 s.
    package static let pingTime = Duration.seconds(180)

    package enum Action: Equatable, Sendable {
        case send(MQTTPacket)
        /// The broker accepted login and subscription.
        case ready
        /// A message arrived. `id` is the argument of `acknowledge`; `nil` for QoS 0.
        case received(id: UInt16?, topic: String, payload: [UInt8])
        /// A message that is too long for an envelope arrived; it was acknowledged without being read.
        case skipped
        /// The broker acknowledged the publish with this number.
        case accepted(Int)
        /// The broker did not acknowledge the publish with this number in time.
        case expired(Int)
        case close(MQTTFault)
    }

    private enum State: Equatable { case idle, connecting, subscribing, ready, closed }

    /// Maximum number of acknowledgements in the send buffer of a connection that the broker does not read. At this number, reading is
    /// paused.
    private static let unsentAcknowledgements = 1_024

    private let login: MQTTConnect
    private let topic: String
    private var state = State.idle
    /// The present limit on publishes in flight. If the previous connection ended with publishes in flight, it is 1 until the first PUBACK.
    private var window: Int
    private var inFlight: [UInt16: (number: Int, until: Instant)] = [:]
    /// Ids of expired publishes, whose PUBACK may still come.
    private var abandoned: Set<UInt16> = []
    /// Publishes that wait for room in the window.
    private var waiting: Deque<(number: Int, topic: String, payload: [UInt8])> = []
    private var nextID: UInt16 = 1
    /// The deadline of CONNACK, SUBACK or PINGRESP; `nil` while none is awaited.
    private var answerUntil: Instant?
    private var lastSent: Instant
    /// Acknowledgements sent since the connection became unwritable.
    private var unsent = 0
    /// Whether the owner has no room for more messages.
    package var isFull = false
    /// Whether the connection is writable: its send buffer is not full.
    package var isWritable = true {
        didSet { if isWritable { unsent = 0 } }
    }

    /// - Parameters:
    ///   - topic: the topic of this machine's mailbox, to subscribe to.
    ///   - isCautious: whether to send one publish at a time until the first PUBACK.
    package init(login: MQTTConnect, topic: String, isCautious: Bool = false, now: Instant) {
        self.login = login
        self.topic = topic
        window = isCautious ? 1 : Self.window
        lastSent = now
    }

    /// Whether the broker accepted the login.
    package var isLoggedIn: Bool { state == .ready || state == .subscribing }

    /// Whether reading is paused, so that the broker has to wait. If the owner is full, reading goes on while a reply of the broker is
    /// awaited. For example, the PUBACK of a published receipt arrives only after the messages that the broker has already sent. The owner
    /// removes no envelope before that PUBACK, so a pause would last forever.
    package var isReadingPaused: Bool {
        unsent >= Self.unsentAcknowledgements || (state == .ready && isFull && unfinished.isEmpty && answerUntil == nil)
    }

    /// The numbers of the publishes in flight.
    package var numbersInFlight: [Int] { inFlight.values.map(\.number) }
    /// The numbers of all publishes that were not accepted and have not expired.
    package var unfinished: [Int] { numbersInFlight + waiting.map(\.number) }

    /// Logs in. Called once the connection is open.
    package mutating func begin(now: Instant) -> [Action] {
        guard state == .idle else { return [] }
        state = .connecting
        answerUntil = now + Self.answerTime
        lastSent = now
        return [.send(.connect(login))]
    }

    /// Publishes a message now or when the window has room.
    /// - Parameter number: identifies the publish in `accepted` and `expired`.
    package mutating func publish(_ payload: [UInt8], to topic: String, number: Int, now: Instant) -> [Action] {
        guard state != .closed else { return [] }
        waiting.append((number, topic, payload))
        return sendWaiting(now: now)
    }

    /// Acknowledges a received message, so that the broker removes it.
    package mutating func acknowledge(_ id: UInt16, now: Instant) -> [Action] {
        state == .ready || state == .subscribing ? [acknowledgement(id, now: now)] : []
    }

    package mutating func received(_ packet: MQTTPacket, now: Instant) -> [Action] {
        switch (state, packet) {
        case (.connecting, .connectAcknowledgement(0)):
            state = .subscribing
            answerUntil = now + Self.answerTime
            return [.send(.subscribe(id: takeID(), topic: topic))]
        case (.connecting, .connectAcknowledgement(let code)): return close(.refused(code))
        case (.subscribing, .subscribeAcknowledgement(_, let codes)):
            guard codes == [1] else { return close(.notSubscribed) }
            state = .ready
            answerUntil = nil
            return [.ready] + sendWaiting(now: now)
        case (.ready, .publishAcknowledgement(let id)):
            guard let (number, _) = inFlight.removeValue(forKey: id) else {
                // A late PUBACK of an expired publish is ignored. A PUBACK of any other id is a fault of the broker.
                return abandoned.remove(id) == nil ? close(.malformed) : []
            }
            window = Self.window
            return [.accepted(number)] + sendWaiting(now: now)
        // The broker may deliver stored messages before its SUBACK, because its session is persistent.
        case (.ready, .publish(let publish)), (.subscribing, .publish(let publish)):
            guard !publish.isRetained else { return publish.id.map { [acknowledgement($0, now: now)] } ?? [] }
            return [.received(id: publish.id, topic: publish.topic, payload: publish.payload)]
        case (.ready, .skippedPublish(let id)), (.subscribing, .skippedPublish(let id)):
            return (id.map { [acknowledgement($0, now: now)] } ?? []) + [.skipped]
        case (.ready, .pingResponse):
            answerUntil = nil
            return []
        case (.closed, _): return []
        default: return close(.malformed)
        }
    }

    package mutating func tick(now: Instant) -> [Action] {
        guard state != .closed, state != .idle else { return [] }
        if let answerUntil, now >= answerUntil { return close(.silent) }
        var actions: [Action] = []
        for (id, (number, until)) in inFlight where now >= until {
            inFlight[id] = nil
            abandoned.insert(id)
            actions.append(.expired(number))
        }
        // Each expired publish stays in the send buffer if the broker does not read. The connection ends before the buffer grows.
        guard actions.isEmpty || isWritable, abandoned.count <= Self.maximumAbandoned else { return close(.silent) }
        actions += sendWaiting(now: now)
        if state == .ready, answerUntil == nil, now >= lastSent + Self.pingTime {
            lastSent = now
            // While reading is paused, a PINGRESP would not be read, so there is no deadline for it.
            if !isReadingPaused { answerUntil = now + Self.answerTime }
            actions.append(.send(.pingRequest))
        }
        return actions
    }

    /// The instant at which to call `tick` next.
    package var nextTick: Instant? {
        switch state {
        case .idle, .closed: nil
        case .connecting, .subscribing: answerUntil
        case .ready: (inFlight.values.map(\.until) + [answerUntil ?? lastSent + Self.pingTime]).min()
        }
    }

    /// Handles the end of the connection.
    package mutating func end() { state = .closed }

    private mutating func acknowledgement(_ id: UInt16, now: Instant) -> Action {
        lastSent = now
        if !isWritable { unsent += 1 }
        return .send(.publishAcknowledgement(id: id))
    }

    private mutating func sendWaiting(now: Instant) -> [Action] {
        var actions: [Action] = []
        while state == .ready, inFlight.count < window, let next = waiting.popFirst() {
            let id = takeID()
            inFlight[id] = (next.number, now + Self.answerTime)
            lastSent = now
            actions.append(.send(.publish(MQTTPublish(id: id, topic: next.topic, payload: next.payload))))
        }
        return actions
    }

    /// Maximum number of expired publishes. Their ids cannot be used again on this connection. One more ends the connection.
    private static let maximumAbandoned = 1_024

    /// Returns an id that is neither in flight nor expired. A free one exists always, because both are bounded.
    private mutating func takeID() -> UInt16 {
        repeat { nextID = nextID == .max ? 1 : nextID + 1 } while inFlight[nextID] != nil || abandoned.contains(nextID)
        return nextID
    }

    private mutating func close(_ fault: MQTTFault) -> [Action] {
        state = .closed
        return [.close(fault)]
    }
}
