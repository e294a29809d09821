import NIOCore
import NIOEmbedded
import TestSupport
import Testing

@testable import HexlistTransport

@Suite(.timeLimit(.minutes(5))) struct HandshakeRateLimitTests {
    /// A loop and a clock that advance only on request.
    private final class Stage {
        let loop = EmbeddedEventLoop()
        var now = ContinuousClock.now
        var begun: [Int] = []
        lazy var turns = HandshakeRateLimit(perSecond: 10, eventLoop: loop, now: { [unowned self] in now })

        func enter(_ numbers: ClosedRange<Int>) -> [HandshakeRateLimit.Waiter] {
            numbers.compactMap { number in
                let waiter = turns.enter { self.begun.append(number) }
                if waiter == nil { begun.append(number) }
                return waiter
            }
        }

        func advance(_ milliseconds: Int64) {
            now += .milliseconds(milliseconds)
            loop.advanceTime(by: .milliseconds(milliseconds))
        }
    }

    @Test("a second's worth starts at once; the others wait and start in order")
    func order() {
        let stage = Stage()
        #expect(stage.enter(1...15).count == 5)
        #expect(stage.begun == Array(1...10))
        stage.advance(99)
        #expect(stage.begun.count == 10)
        stage.advance(1)
        #expect(stage.begun == Array(1...11))
        // A new handshake does not overtake waiting ones.
        _ = stage.enter(16...16)
        for _ in 0..<5 { stage.advance(100) }
        #expect(stage.begun == Array(1...16))
    }

    @Test("a waiting client that disconnects uses no turn")
    func givenUp() {
        let stage = Stage()
        let waiting = stage.enter(1...40)
        for waiter in waiting.dropLast() { waiter.cancel() }
        stage.advance(100)
        #expect(stage.begun == Array(1...10) + [40])
    }

    @Test("a delayed handshake does not start early, and then processes the bytes that arrived meanwhile")
    func endToEnd() async throws {
        var limits = TransportLimits.patient
        limits.handshakesPerSecond = 1
        let peer = try await Endpoint(limits)
        let other = try await Endpoint()
        let waited = try await peer.occupyTurnsUntilOneWaits()
        _ = try await other.dial(peer)
        #expect(try await peer.transport.eventLoop.submit { waited.value }.get())
        #expect(try await peer.accepted.next().peerFingerprint == other.identity.fingerprint)
        #expect(try await peer.waitingTurns() == [0, 0])
        await peer.transport.shutdown()
        await other.transport.shutdown()
    }

    @Test("strangers and the last addresses of trusted peers wait separately, and disconnects are noticed while waiting")
    func apart() async throws {
        var limits = TransportLimits.patient
        limits.handshakesPerSecond = 1
        let peer = try await Endpoint(limits)
        let other = try await Endpoint()
        _ = try await other.dial(peer)
        let waiting = try await peer.occupyTurns()
        var strangers: [any Channel] = []
        for _ in 0..<8 { strangers.append(try await RawPeer.connect(to: peer.port, greeting: [0x16, 3, 1]).1) }
        try await eventually("all strangers wait") { try await waiting() == strangers.count }
        peer.transport.setReservedAddresses(["127.0.0.1"])
        _ = try await other.dial(peer)
        for stranger in strangers { try await stranger.close() }
        // Both dialled connections remain, and no handshake of a stranger has begun.
        try await peer.reaches([2, 2])
        #expect(try await waiting() == strangers.count)
        await peer.transport.shutdown()
        await other.transport.shutdown()
    }
}

extension Endpoint {
    /// Adds placeholder turns in front, and removes them once a real connection waits behind them.
    /// - Returns: whether one has waited. Runs on the loop, because a dial may time out before a slow test.
    fileprivate func occupyTurnsUntilOneWaits() async throws -> NIOLoopBoundBox<Bool> {
        let (state, loop) = (transport.state, transport.eventLoop)
        let hasWaited = NIOLoopBoundBox.makeBoxSendingValue(false, eventLoop: loop)
        try await loop.submit {
            let turns = state.value.handshakes
            var begun = 0
            let first = (0..<100).compactMap { _ in turns.enter { begun += 1 } }
            func look() {
                guard !state.value.isStopping else { return }
                guard turns.count > first.count - begun else {
                    loop.assumeIsolated().scheduleTask(in: .milliseconds(5), look)
                    return
                }
                hasWaited.value = true
                for waiter in first { waiter.cancel() }
            }
            look()
        }.get()
        return hasWaited
    }

    /// Adds placeholder turns in front that last longer than the test.
    /// - Returns: the number of turns behind them.
    fileprivate func occupyTurns() async throws -> () async throws -> Int {
        let (state, loop) = (transport.state, transport.eventLoop)
        let left = NIOLoopBoundBox.makeBoxSendingValue(0, eventLoop: loop)
        try await loop.submit {
            for _ in 0..<1_000 where state.value.handshakes.enter({ left.value -= 1 }) != nil { left.value += 1 }
        }.get()
        return { try await loop.submit { state.value.handshakes.count - left.value }.get() }
    }

    /// Handshakes waiting for a turn: from any address, and from reserved addresses.
    fileprivate func waitingTurns() async throws -> [Int] {
        let state = transport.state
        return try await transport.eventLoop.submit { [state.value.handshakes.count, state.value.reservedHandshakes.count] }.get()
    }
}
