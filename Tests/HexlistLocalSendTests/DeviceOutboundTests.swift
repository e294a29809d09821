import HexlistModel
import TestSupport
import Testing

@testable import HexlistLocalSend

@Suite struct DeviceOutboundTests {
    /// A delivery with a clock that the test moves, and a source of randomness.
    private struct Rig {
        var outbound: DeviceOutbound
        var now = ContinuousClock.now
        var random = SeededGenerator(seed: 1)

        init(files: [String] = ["a"], pin: String? = nil) { outbound = DeviceOutbound(files: files, pin: pin) }

        mutating func prepared(_ reply: DeviceReply) -> [DeviceOutbound.Action] { outbound.prepared(reply, now: now, using: &random) }

        mutating func uploaded(_ reply: DeviceReply) -> [DeviceOutbound.Action] { outbound.uploaded(reply, now: now, using: &random) }

        /// The pause in progress; `nil` without one.
        var pause: Duration? { if case .retry(let until)? = outbound.wait { until - now } else { nil } }

        mutating func waitForPause() -> [DeviceOutbound.Action] {
            if let pause { now += pause }
            return outbound.timePassed(now: now)
        }
    }

    private static func status(_ status: Int, _ body: String = "") -> DeviceReply { .response(status: status, body: Array(body.utf8)) }

    /// The response 200 to `prepare-upload`.
    private static func accepted(_ files: String...) -> DeviceReply {
        let tokens = files.map { "\"\($0)\":\"token-\($0)\"" }.joined(separator: ",")
        return status(200, "{\"sessionId\":\"s\",\"files\":{\(tokens)}}")
    }

    private static let other: Fingerprint = {
        guard let other = Fingerprint(bytes: [UInt8](repeating: 7, count: 32)) else { preconditionFailure("not 32 bytes") }
        return other
    }()

    @Test(
        "replies to a request that end it at once",
        arguments: [
            (Self.status(204), DeviceOutbound.End.delivered(note: nil)),
            (Self.status(403, "{\"message\":\"Rejected\"}"), .declined),
            (.unreachable("connection refused"), .away("connection refused")),
            (.timeout, .away("did not answer within 10 minutes")),
            (.otherCertificate(Self.other), .otherCertificate(Self.other)),
            (.file("photo.jpg has changed."), .failed(message: "photo.jpg has changed.")),
        ])
    func ends(_ reply: DeviceReply, _ end: DeviceOutbound.End) {
        var rig = Rig()
        #expect(rig.outbound.wait == nil)
        #expect(rig.outbound.start() == [.prepare(pin: nil)])
        #expect(rig.outbound.wait == .answer)
        #expect(rig.prepared(reply) == [.end(end)])
        #expect(rig.outbound.wait == nil)
        #expect(rig.prepared(Self.status(204)).isEmpty && rig.uploaded(Self.status(200)).isEmpty && rig.outbound.withdraw().isEmpty)
    }

    @Test func acceptedFilesAreUploadedInOrder() {
        var rig = Rig(files: ["a", "b", "c"])
        _ = rig.outbound.start()
        #expect(rig.prepared(Self.accepted("c", "a", "unknown")) == [.upload(0, session: "s", token: "token-a")])
        #expect(rig.outbound.wait == nil)
        #expect(rig.uploaded(Self.status(200)) == [.upload(2, session: "s", token: "token-c")])
        #expect(rig.uploaded(Self.status(200)) == [.end(.delivered(note: "2 of 3 files accepted"))])

        rig = Rig(files: ["a"])
        _ = rig.outbound.start()
        _ = rig.prepared(Self.accepted("a"))
        #expect(rig.uploaded(Self.status(200)) == [.end(.delivered(note: nil))])

        rig = Rig(files: ["a"])
        _ = rig.outbound.start()
        #expect(rig.prepared(Self.accepted()) == [.cancel(session: "s"), .end(.declined)])
    }

    @Test("pauses after temporary refusals, which do not count as failures", arguments: [(409, 10), (429, 60)])
    func refusals(_ status: Int, seconds: Int) {
        var rig = Rig()
        _ = rig.outbound.start()
        for _ in 0..<20 {
            #expect(rig.prepared(Self.status(status)) == [.wait(until: rig.now + .seconds(seconds))])
            #expect(rig.pause == .seconds(seconds) && rig.outbound.problem != nil)
            #expect(rig.outbound.timePassed(now: rig.now) == [.wait(until: rig.now + .seconds(seconds))], "an early timer")
            #expect(rig.waitForPause() == [.prepare(pin: nil)])
        }
        #expect(rig.prepared(Self.status(204)) == [.end(.delivered(note: nil))])
    }

    @Test(
        "failures pause with back-off, and the eighth ends",
        arguments: [
            Self.status(400), Self.status(404), Self.status(413), Self.status(500), Self.status(503), Self.status(302), Self.status(201),
            .closed, .invalid("No TLS"),
            Self.status(200, "no JSON"), Self.status(200, "{}"), Self.status(200, "{\"sessionId\":\"s\",\"files\":{\"a\":1}}"),
        ])
    func failures(_ reply: DeviceReply) {
        var rig = Rig()
        _ = rig.outbound.start()
        var longest = Duration.zero
        for failure in 1...7 {
            _ = rig.prepared(reply)
            let pause = rig.pause ?? .zero
            #expect(pause >= DeviceOutbound.shortestPause && pause <= DeviceOutbound.backoff.pause(after: failure))
            longest = max(longest, pause)
            #expect(rig.waitForPause() == [.prepare(pin: nil)])
        }
        #expect(longest > .seconds(2))
        guard case .end(.failed(let message))? = rig.prepared(reply).last else { return #expect(Bool(false), "it did not end") }
        #expect(message.hasPrefix("Failed 8 times. Last: "))
    }

    @Test func aPINIsTriedOnce() {
        var rig = Rig(pin: "1")
        #expect(rig.outbound.start() == [.prepare(pin: "1")])
        #expect(rig.prepared(Self.status(401)) == [.forgetPIN])
        #expect(rig.outbound.wait == .pin)
        #expect(rig.outbound.timePassed(now: rig.now + .seconds(3_600)).isEmpty)
        #expect(rig.outbound.pinChanged(to: nil).isEmpty)
        #expect(rig.outbound.pinChanged(to: "2") == [.prepare(pin: "2")])
        #expect(rig.outbound.pinChanged(to: "3").isEmpty, "a request is in flight")
        #expect(rig.prepared(Self.status(429)).count == 1)
        #expect(rig.waitForPause() == [.prepare(pin: "3")])
        #expect(rig.prepared(Self.status(204)) == [.end(.delivered(note: nil))])

        rig = Rig()
        _ = rig.outbound.start()
        #expect(rig.prepared(Self.status(401)).isEmpty, "nothing to forget")
        #expect(rig.outbound.wait == .pin)
        #expect(rig.outbound.retryNow() == [.prepare(pin: nil)])
    }

    @Test func aFileWithAWrongChecksumIsSentThreeTimes() {
        var rig = Rig(files: ["a", "b"])
        _ = rig.outbound.start()
        _ = rig.prepared(Self.accepted("a", "b"))
        for _ in 0..<2 { #expect(rig.uploaded(Self.status(422)) == [.upload(0, session: "s", token: "token-a")]) }
        #expect(rig.uploaded(Self.status(200)) == [.upload(1, session: "s", token: "token-b")])
        for _ in 0..<2 { #expect(rig.uploaded(Self.status(422)) == [.upload(1, session: "s", token: "token-b")]) }
        #expect(rig.uploaded(Self.status(422)).first == .cancel(session: "s"))
        #expect(rig.pause != nil)
    }

    @Test(
        "an upload that fails ends its session, and the hex is sent again",
        arguments: [Self.status(403), Self.status(409), Self.status(500), .closed, .timeout, .invalid("No HTTP")])
    func uploads(_ reply: DeviceReply) {
        var rig = Rig()
        _ = rig.outbound.start()
        _ = rig.prepared(Self.accepted("a"))
        #expect(rig.uploaded(reply).first == .cancel(session: "s"))
        #expect(rig.waitForPause() == [.prepare(pin: nil)])
    }

    @Test func anUploadMeetsTheEndOfTheDeviceOrOfTheFile() {
        for (reply, end) in [
            (DeviceReply.unreachable("no route"), DeviceOutbound.End.away("no route")),
            (.otherCertificate(Self.other), .otherCertificate(Self.other)),
        ] {
            var rig = Rig()
            _ = rig.outbound.start()
            _ = rig.prepared(Self.accepted("a"))
            #expect(rig.uploaded(reply) == [.end(end)])
        }
        var rig = Rig()
        _ = rig.outbound.start()
        _ = rig.prepared(Self.accepted("a"))
        #expect(rig.uploaded(.file("a has changed.")) == [.cancel(session: "s"), .end(.failed(message: "a has changed."))])
    }

    @Test func aWithdrawalEndsTheRequestInFlight() {
        var rig = Rig()
        #expect(rig.outbound.withdraw().isEmpty)
        rig = Rig()
        _ = rig.outbound.start()
        #expect(rig.outbound.withdraw() == [.abort])
        #expect(rig.prepared(Self.status(204)).isEmpty)
        rig = Rig()
        _ = rig.outbound.start()
        _ = rig.prepared(Self.accepted("a"))
        #expect(rig.outbound.withdraw() == [.abort, .cancel(session: "s")])
        rig = Rig()
        _ = rig.outbound.start()
        _ = rig.prepared(Self.status(409))
        #expect(rig.outbound.withdraw().isEmpty && rig.outbound.timePassed(now: rig.now + .seconds(60)).isEmpty)
    }
}
