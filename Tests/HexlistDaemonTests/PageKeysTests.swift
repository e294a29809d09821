import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import HexlistDaemon

@Suite("The page: secrets and lifetime", .timeLimit(.minutes(5))) struct PageKeysTests {
    private let start = ContinuousClock.now

    /// The keys in a class, because expectations cannot mutate a value.
    private final class Keys {
        private var keys: PageKeys

        init(now: PageKeys.Instant) { keys = PageKeys(now: now) }

        func add(_ secret: String, _ now: PageKeys.Instant) { _ = keys.add(secret: secret, now: now) }
        func exchange(_ secret: String, token: String, reload: String, now: PageKeys.Instant) -> Bool {
            keys.exchange(secret, token: token, reload: reload, now: now)
        }
        func admit(_ token: String, now: PageKeys.Instant) -> Bool { keys.admit(token, now: now) }
        func streamBegan(_ token: String) -> Int { keys.streamBegan(token) }
        func streamEnded(_ number: Int, now: PageKeys.Instant) { keys.streamEnded(number, now: now) }
        func isOpen(stream: Int) -> Bool { keys.isOpen(stream: stream) }
    }

    private final class Time: Sendable {
        private let time: Mutex<PageKeys.Instant>

        init(_ start: PageKeys.Instant) { time = Mutex(start) }

        var now: PageKeys.Instant { time.withLock { $0 } }
        func pass(_ seconds: Int64) { time.withLock { $0 += .seconds(seconds) } }
    }

    @Test("a secret works once, within 30 s") func secret() {
        let keys = Keys(now: start)
        keys.add("one", start)
        #expect(!keys.exchange("other", token: "t0", reload: "r0", now: start))
        #expect(keys.exchange("one", token: "t1", reload: "r1", now: start + .seconds(29)))
        #expect(!keys.exchange("one", token: "t2", reload: "r2", now: start + .seconds(29)))
        keys.add("two", start + .seconds(40))
        #expect(!keys.exchange("two", token: "t3", reload: "r3", now: start + .seconds(70)))
        #expect(
            keys.admit("t1", now: start) && !keys.admit("t0", now: start) && !keys.admit("t2", now: start) && !keys.admit("t3", now: start))
    }

    @Test("a reload secret works once, until a minute after its page is gone") func reload() {
        let keys = Keys(now: start)
        for name in ["a", "b", "c"] {
            keys.add(name, start)
            #expect(keys.exchange(name, token: "token \(name)", reload: "reload \(name)", now: start))
        }
        #expect(keys.exchange("reload a", token: "d", reload: "e", now: start + .seconds(60)))
        #expect(!keys.exchange("reload a", token: "f", reload: "g", now: start + .seconds(60)))
        #expect(!keys.exchange("reload b", token: "h", reload: "i", now: start + .seconds(61)))
        let stream = keys.streamBegan("token c")
        #expect(keys.exchange("reload c", token: "j", reload: "k", now: start + .seconds(3_600)))
        keys.streamEnded(stream, now: start + .seconds(3_600))
    }

    @Test("secrets, pages and streams are bounded: the oldest is dropped") func bounds() {
        let keys = Keys(now: start)
        for number in 0...PageKeys.maximumSecrets { keys.add("\(number)", start) }
        #expect(!keys.exchange("0", token: "", reload: "", now: start))
        #expect(keys.exchange("1", token: "", reload: "", now: start))
        for number in 0...PageKeys.maximumPages {
            keys.add("s", start)
            #expect(keys.exchange("s", token: "t\(number)", reload: "r\(number)", now: start + .milliseconds(number)))
        }
        #expect(!keys.admit("t0", now: start) && keys.admit("t1", now: start + .seconds(1)))
        let streams = (0...PageKeys.maximumStreams).map { _ in keys.streamBegan("t1") }
        #expect(!keys.isOpen(stream: streams[0]) && streams.dropFirst().allSatisfy { keys.isOpen(stream: $0) })
    }

    @Test("the listener ends 15 minutes after the last page, but never while a page follows events") func end() async {
        let time = Time(start)
        let loop = NIOAsyncTestingEventLoop()
        let server = PageListenerState(loop: loop, now: { time.now })
        func pass(_ seconds: Int64) async {
            time.pass(seconds)
            await loop.advanceTime(by: .seconds(seconds))
        }
        server.opened(port: 1)
        await pass(899)
        let invitation = server.invite()
        #expect(invitation?.url.hasPrefix("http://127.0.0.1:1/#") == true)
        guard let session = server.exchange(String(invitation?.url.suffix(64) ?? "")) else {
            Issue.record("the secret is not taken")
            return
        }
        let stream = server.streamBegan(session.token)
        await pass(7_200)
        #expect(server.invite() != nil)
        server.streamEnded(stream)
        await pass(899)
        #expect(server.admits(session.token))
        await pass(899)
        #expect(server.invite() != nil)
        await pass(900)
        #expect(server.invite() == nil)
        for await _ in server.ended {}
        await loop.shutdownGracefully()
    }

    @Test("a page that follows events stays, however many others open") func room() {
        let keys = Keys(now: start)
        func open(_ name: String, _ seconds: Int64) -> Bool {
            keys.add(name, start + .seconds(seconds))
            return keys.exchange(name, token: "token \(name)", reload: "reload \(name)", now: start + .seconds(seconds))
        }
        #expect(open("first", 0) && open("second", 1))
        _ = keys.streamBegan("token first")
        for number in 2...40 { #expect(open("\(number)", Int64(number))) }
        #expect(keys.admit("token first", now: start + .seconds(50)) && keys.admit("token 40", now: start + .seconds(50)))
        #expect(!keys.admit("token second", now: start + .seconds(50)))
    }
}
