import HexlistMQTT
import Testing

@Suite("MQTT session") struct MQTTSessionTests {
    typealias Action = MQTTSession.Action

    private let start = ContinuousClock.now
    private static let login = MQTTConnect(clientID: "c")

    private func session(isCautious: Bool = false) -> MQTTSession {
        MQTTSession(login: Self.login, topic: "own", isCautious: isCautious, now: start)
    }

    /// A session after login and subscription.
    private func ready(isCautious: Bool = false) -> MQTTSession {
        var session = session(isCautious: isCautious)
        #expect(session.begin(now: start) == [.send(.connect(Self.login))])
        #expect(session.received(.connectAcknowledgement(code: 0), now: start) == [.send(.subscribe(id: 2, topic: "own"))])
        #expect(session.received(.subscribeAcknowledgement(id: 2, codes: [1]), now: start) == [.ready])
        return session
    }

    private static func publish(_ id: UInt16, _ payload: [UInt8]) -> Action {
        .send(.publish(MQTTPublish(id: id, topic: "t", payload: payload)))
    }

    @Test(
        "a refused login or subscription, and packets out of order, end the connection",
        arguments: [
            ([.connectAcknowledgement(code: 5)], .refused(5)),
            ([.connectAcknowledgement(code: 0), .subscribeAcknowledgement(id: 2, codes: [0x80])], .notSubscribed),
            ([.connectAcknowledgement(code: 0), .subscribeAcknowledgement(id: 2, codes: [0])], .notSubscribed),
            ([.pingResponse], .malformed), ([.publish(MQTTPublish(id: 1, topic: "own", payload: []))], .malformed),
            ([.connectAcknowledgement(code: 0), .connectAcknowledgement(code: 0)], .malformed),
        ] as [([MQTTPacket], MQTTFault)])
    func logins(_ packets: [MQTTPacket], _ fault: MQTTFault) {
        var session = session()
        _ = session.begin(now: start)
        var actions: [Action] = []
        for packet in packets { actions = session.received(packet, now: start) }
        #expect(actions == [.close(fault)])
        #expect(session.received(.pingResponse, now: start).isEmpty && session.nextTick == nil)
    }

    @Test("a message before SUBACK, of an earlier session, is acknowledged at once") func messageBeforeSubscription() {
        var session = session()
        _ = session.begin(now: start)
        _ = session.received(.connectAcknowledgement(code: 0), now: start)
        let early = session.received(.publish(MQTTPublish(id: 7, topic: "own", payload: [1])), now: start)
        #expect(early == [.received(id: 7, topic: "own", payload: [1])])
        #expect(session.acknowledge(7, now: start) == [.send(.publishAcknowledgement(id: 7))])
    }

    @Test("a publish that expires while the broker does not read ends the connection", arguments: [true, false])
    func unread(isWritable: Bool) {
        var session = ready()
        _ = session.publish([0], to: "t", number: 0, now: start)
        session.isWritable = isWritable
        let actions = session.tick(now: start + .seconds(60))
        #expect(isWritable ? actions.first == .expired(0) : actions == [.close(.silent)])
    }

    @Test("publishes before the login wait; at most 16 are in flight; each PUBACK sends another one") func window() {
        var session = session()
        _ = session.begin(now: start)
        for number in 0..<20 { #expect(session.publish([UInt8(number)], to: "t", number: number, now: start).isEmpty) }
        _ = session.received(.connectAcknowledgement(code: 0), now: start)
        let actions = session.received(.subscribeAcknowledgement(id: 2, codes: [1]), now: start)
        let expected: [Action] = (0..<16).map { (number: UInt8) -> Action in Self.publish(UInt16(number) + 3, [number]) }
        #expect(actions.first == .ready && Array(actions.dropFirst()) == expected)
        #expect(session.numbersInFlight.count == 16 && session.unfinished.count == 20)
        #expect(session.received(.publishAcknowledgement(id: 5), now: start) == [.accepted(2), Self.publish(19, [16])])
        #expect(session.received(.publishAcknowledgement(id: 5), now: start) == [.close(.malformed)], "answered before")
    }

    @Test("a cautious session publishes one at a time until the first PUBACK") func caution() {
        var session = ready(isCautious: true)
        #expect(session.publish([0], to: "t", number: 0, now: start) == [Self.publish(3, [0])])
        #expect(
            session.publish([1], to: "t", number: 1, now: start).isEmpty && session.publish([2], to: "t", number: 2, now: start).isEmpty)
        #expect(
            session.received(.publishAcknowledgement(id: 3), now: start) == [.accepted(0), Self.publish(4, [1]), Self.publish(5, [2])])
    }

    @Test("a publish without PUBACK expires after 30 s and makes room; its late PUBACK is ignored, once") func expiry() {
        var session = ready()
        for number in 0..<17 { _ = session.publish([], to: "t", number: number, now: start) }
        let later = start + MQTTSession.answerTime
        #expect(session.nextTick == later && session.tick(now: later - .milliseconds(1)).isEmpty)
        let actions = session.tick(now: later)
        var expired = 0
        for action in actions { if case .expired = action { expired += 1 } }
        #expect(expired == 16)
        #expect(actions.last == Self.publish(19, []) && session.numbersInFlight == [16])
        #expect(session.received(.publishAcknowledgement(id: 3), now: later).isEmpty)
        #expect(session.received(.publishAcknowledgement(id: 3), now: later) == [.close(.malformed)])
    }

    @Test("a ping follows 180 s of silence; without an answer the connection ends after 30 s") func pings() {
        var session = ready()
        let ping = start + MQTTSession.pingTime
        #expect(session.nextTick == ping && session.tick(now: ping) == [.send(.pingRequest)])
        #expect(session.received(.pingResponse, now: ping).isEmpty && session.nextTick == ping + MQTTSession.pingTime)
        #expect(session.tick(now: ping + MQTTSession.pingTime) == [.send(.pingRequest)])
        #expect(session.tick(now: ping + MQTTSession.pingTime + MQTTSession.answerTime) == [.close(.silent)])
        var connecting = self.session()
        _ = connecting.begin(now: start)
        #expect(connecting.tick(now: start + MQTTSession.answerTime) == [.close(.silent)])
    }

    @Test("messages are passed on and acknowledged on request; retained and too long ones are not passed on") func messages() {
        var session = ready()
        let message = MQTTPublish(id: 7, topic: "own", payload: [1])
        #expect(session.received(.publish(message), now: start) == [.received(id: 7, topic: "own", payload: [1])])
        #expect(session.acknowledge(7, now: start) == [.send(.publishAcknowledgement(id: 7))])
        let retained = MQTTPublish(id: 8, topic: "own", payload: [1], isRetained: true)
        #expect(session.received(.publish(retained), now: start) == [.send(.publishAcknowledgement(id: 8))])
        #expect(session.received(.skippedPublish(id: 9), now: start) == [.send(.publishAcknowledgement(id: 9)), .skipped])
        session.end()
        #expect(session.acknowledge(7, now: start).isEmpty && session.publish([], to: "t", number: 1, now: start).isEmpty)
    }

    @Test("while the owner is full nothing is read, except for the answer to a publish or a ping") func full() {
        var session = ready()
        #expect(!session.isReadingPaused)
        session.isFull = true
        #expect(session.isReadingPaused)
        _ = session.publish([1], to: "t", number: 0, now: start)
        #expect(!session.isReadingPaused, "its PUBACK is behind messages")
        #expect(session.received(.publish(MQTTPublish(id: 9, topic: "own", payload: [])), now: start).count == 1)
        _ = session.received(.publishAcknowledgement(id: 3), now: start)
        #expect(session.isReadingPaused)
        // A ping keeps the connection open. Its answer is not awaited, because it is not read.
        let ping = start + MQTTSession.pingTime
        #expect(session.tick(now: ping) == [.send(.pingRequest)] && session.isReadingPaused)
        #expect(session.tick(now: ping + MQTTSession.answerTime).isEmpty)
        session.isFull = false
        #expect(!session.isReadingPaused && session.received(.pingResponse, now: ping).isEmpty)
        let second = ping + MQTTSession.pingTime
        #expect(session.tick(now: second) == [.send(.pingRequest)])
        session.isFull = true
        #expect(!session.isReadingPaused, "the ping was sent before")
        _ = session.received(.pingResponse, now: second)
        #expect(session.isReadingPaused)
    }

    @Test("a broker that sends and does not read has to wait after 1 024 acknowledgements") func unread() {
        var session = ready()
        let message = MQTTPacket.publish(MQTTPublish(id: 7, topic: "own", payload: [], isRetained: true))
        for _ in 0..<5_000 { _ = session.received(message, now: start) }
        #expect(!session.isReadingPaused, "the connection took them")
        session.isWritable = false
        for _ in 0..<1_023 { _ = session.received(message, now: start) }
        #expect(!session.isReadingPaused)
        _ = session.acknowledge(7, now: start)
        #expect(session.isReadingPaused)
        _ = session.publish([1], to: "t", number: 0, now: start)
        #expect(session.isReadingPaused, "also while an answer is awaited")
        session.isWritable = true
        #expect(!session.isReadingPaused)
    }

    @Test("packet ids are reused after 65 535, but not those in flight") func ids() {
        var session = ready()
        _ = session.publish([], to: "t", number: 0, now: start)
        for number in 1...70_000 {
            let actions = session.publish([], to: "t", number: number, now: start)
            guard case .send(.publish(let publish))? = actions.first, let id = publish.id, id != 0, id != 3 else {
                return #expect(Bool(false), "\(actions)")
            }
            _ = session.received(.publishAcknowledgement(id: id), now: start)
        }
    }
}

@Suite("MQTT addresses") struct MQTTAddressTests {
    @Test("a whole address") func whole() throws {
        let text = "mqtts://ada%40x@broker.example:8884?ca=/etc/ca.pem&password=/home/ada/p&id=x%20y&max=100000"
        let address = try #require(MQTTAddress(text))
        #expect(address.isEncrypted && address.host == "broker.example" && address.port == 8_884 && address.user == "ada@x")
        #expect(address.caFile == "/etc/ca.pem" && address.passwordFile == "/home/ada/p" && address.clientID == "x y")
        #expect(address.maximumBytes == 100_000 && address.text == text && address.place == "mqtts://ada%40x@broker.example:8884")
    }

    @Test(
        "hosts and default ports",
        arguments: [
            ("mqtts://b", "b", 8_883), ("mqtts://[2001:db8::1]", "2001:db8::1", 8_883), ("mqtts://[::1]:9", "::1", 9),
            ("mqtt://127.0.0.1", "127.0.0.1", 1_883), ("mqtt://[::1]:1884", "::1", 1_884), ("mqtt://127.8.9.10:1", "127.8.9.10", 1),
        ])
    func hosts(_ text: String, _ host: String, _ port: Int) throws {
        let address = try #require(MQTTAddress(text))
        #expect(address.host == host && address.port == port && address.user == nil)
    }

    @Test(
        "others are refused: no encryption beyond loopback, relative files, unknown members, a password",
        arguments: [
            "", "mqtts://", "mqtt://b", "mqtt://localhost", "mqtt://192.0.2.1", "mqtt://[2001:db8::1]", "mqtts://@b", "mqtts://b:0",
            "mqtts://b:65536", "mqtts://b:x", "mqtts://b?ca=ca.pem", "mqtts://b?password=/p", "mqtts://u@b?password=p", "mqtts://b?x=1",
            "mqtts://b?max=10", "mqtts://b?max=x", "mqtts://b?id=", "mqtt://127.0.0.1?ca=/c", "mqtts://b/x", "mqtts://[b]", "MQTTS://b",
            "http://b", "mqtts://bob:secret@b", "mqtts://" + String(repeating: "a", count: 5_000),
        ])
    func refused(_ text: String) {
        #expect(MQTTAddress(text) == nil)
    }
}

@Suite("MQTT reconnecting") struct MQTTReconnectTests {
    private let start = ContinuousClock.now

    /// Random numbers that give the longest pauses.
    private struct Longest: RandomNumberGenerator { mutating func next() -> UInt64 { .max } }

    @Test("pauses grow from 1 to 300 s, and start again after a connection that lasted") func pauses() {
        var reconnect = MQTTReconnect()
        var random = Longest()
        let failure = MQTTReconnect.End(fault: .failed("x"), loggedInAt: nil, hadPublishes: false)
        for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            #expect(reconnect.pause(after: failure, now: start, using: &random) == .seconds(seconds))
        }
        let lasted = MQTTReconnect.End(fault: .closed, loggedInAt: start - .seconds(60), hadPublishes: false)
        #expect(reconnect.pause(after: lasted, now: start, using: &random) == .seconds(1) && !reconnect.hasSecondClient)
    }

    @Test("for five minutes after a connection that worked the pauses stay short, but not if the broker closes it soon") func recovery() {
        var reconnect = MQTTReconnect()
        var random = Longest()
        func pauses(after lasted: Int) -> [Duration] {
            let first = MQTTReconnect.End(fault: .closed, loggedInAt: start - .seconds(lasted), hadPublishes: true)
            let failure = MQTTReconnect.End(fault: .failed("connection refused"), loggedInAt: nil, hadPublishes: false)
            return [reconnect.pause(after: first, now: start, using: &random)]
                + [1, 3, 7, 150, 299, 300].map { reconnect.pause(after: failure, now: start + .seconds($0), using: &random) }
        }
        #expect(pauses(after: 2) == [1, 2, 4, 8, 16, 32, 64].map { .seconds($0) })
        #expect(pauses(after: 60) == [1, 2, 4, 4, 4, 4, 64].map { .seconds($0) })
    }

    @Test(
        "three closes soon after the login within a minute show a second client",
        arguments: [
            ([0, 10, 20], 2, .closed, false, true), ([0, 10, 20], 2, .closed, true, false), ([0, 40, 80], 2, .closed, false, false),
            ([0, 10, 20], 30, .closed, false, false), ([0, 10, 20], 2, .silent, false, false), ([0, 10], 2, .closed, false, false),
        ] as [([Int], Int, MQTTFault, Bool, Bool)])
    func secondClient(_ ends: [Int], _ lasted: Int, _ fault: MQTTFault, _ hadPublishes: Bool, _ isSecond: Bool) {
        var reconnect = MQTTReconnect()
        var random = Longest()
        var pause = Duration.zero
        for seconds in ends {
            let now = start + .seconds(seconds)
            pause = reconnect.pause(
                after: MQTTReconnect.End(fault: fault, loggedInAt: now - .seconds(lasted), hadPublishes: hadPublishes), now: now,
                using: &random)
        }
        #expect(reconnect.hasSecondClient == isSecond && (pause == MQTTReconnect.secondClientPause) == isSecond)
    }
}
