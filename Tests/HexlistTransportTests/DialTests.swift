import HexlistModel
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import HexlistTransport

@Suite(.timeLimit(.minutes(5))) struct DialTests {
    private func report(_ peer: Endpoint, _ targets: [DialTarget], expecting: PeerID? = nil) async throws -> DialReport {
        try await peer.transport.dial(targets, expecting: expecting).report.get()
    }

    private func target(_ port: UInt16, host: String = "127.0.0.1") -> DialTarget { DialTarget(host: host, port: port) }

    @Test("no listener: `refused`, and no other failure is")
    func refused() async throws {
        let peer = try await Endpoint()
        let (one, other) = (try #require(RefusingPort()), try #require(RefusingPort(isIPv6: true)))
        defer { for port in [one, other] { port.close() } }
        let targets = [target(one.port), target(other.port, host: "::1")]
        let report = try await report(peer, targets)
        #expect(report.failures == targets.map { DialFailure(target: $0, error: .refused) })
        #expect(report.summary == .refused)
        await peer.transport.shutdown()
    }

    @Test("one refused and one silent address are together not `refused`")
    func summary() async throws {
        let peer = try await Endpoint()
        let silent = try await RawPeer.serve()
        let refusing = try #require(RefusingPort())
        defer { refusing.close() }
        let report = try await report(peer, [target(refusing.port), target(silent.port)])
        #expect(report.failures.map(\.error) == [.refused, .timeout])
        #expect(report.summary == .timeout)
        try await silent.channel.close()
        await peer.transport.shutdown()
    }

    @Test("a server that accepts and disconnects is neither `refused` nor foreign")
    func hangsUp() async throws {
        let peer = try await Endpoint()
        var limits = TransportLimits()
        limits.connections = 0
        let full = try await Endpoint(limits)
        #expect(try await report(peer, [full.target]).summary == .closed)
        await peer.transport.shutdown()
        await full.transport.shutdown()
    }

    @Test("silent address first: the good one wins long before the timeout, and the loser is closed")
    func happyEyeballs() async throws {
        let peer = try await Endpoint()
        let other = try await Endpoint()
        let silent = try await RawPeer.serve()
        let report = try await report(peer, [target(silent.port), other.target], expecting: other.identity.peerID)
        #expect(report.connection?.target == other.target)
        #expect(report.connection?.peerFingerprint == other.identity.fingerprint)
        // The dial of the silent server had not failed yet.
        #expect(report.failures.isEmpty)
        // The silent server received only a ClientHello.
        let bytes = try await silent.accepted.next().bytes()
        #expect(bytes.first == 0x16 && bytes.count < 4_096)
        try await silent.channel.close()
        await peer.transport.shutdown()
        await other.transport.shutdown()
    }

    @Test("of many that answer one is used, and the others are closed without a frame")
    func oneWinner() async throws {
        let peer = try await Endpoint()
        let other = try await Endpoint()
        let targets = (0..<8).map { _ in other.target }
        let report = try await peer.transport.dial(targets, stagger: .zero).report.get()
        let winner = try #require(report.connection)
        let recorder = try await winner.record()
        try await other.reaches([1, 1])
        try await winner.send([[1]])
        // A connection that lost the race ends; the one that won gets the frame.
        var got: [[UInt8]] = []
        while got.isEmpty {
            let session = try await other.accepted.next().record()
            got += try await session.frames(1)
        }
        #expect(got == [[1]])
        try await winner.on { $0.close() }
        #expect(try await recorder.end() == .closed(nil))
        await peer.transport.shutdown()
        await other.transport.shutdown()
    }

    @Test("another identity is reported by name, and the other addresses are tried")
    func otherIdentity() async throws {
        let peer = try await Endpoint()
        let wanted = try await Endpoint()
        let impostor = try await Endpoint()
        // The next dial starts as soon as the previous one failed, and not before.
        let report = try await peer.transport.dial(
            [impostor.target, wanted.target], expecting: wanted.identity.peerID, stagger: .hours(1)
        ).report.get()
        #expect(report.connection?.peerFingerprint == wanted.identity.fingerprint)
        #expect(report.failures == [DialFailure(target: impostor.target, error: .otherIdentity(impostor.identity.peerID))])
        let alone = try await self.report(peer, [impostor.target], expecting: wanted.identity.peerID)
        #expect(alone.connection == nil)
        #expect(alone.summary == .otherIdentity(impostor.identity.peerID))
        try await impostor.reaches([0, 0])
        for one in [peer, wanted, impostor] { await one.transport.shutdown() }
    }

    @Test("a cancelled dial reports it at once, and its sockets are closed")
    func cancel() async throws {
        let peer = try await Endpoint()
        let silent = try await RawPeer.serve()
        let begun = ContinuousClock.now
        let dial = peer.transport.dial([target(silent.port), target(silent.port)])
        let raw = try await silent.accepted.next()
        // A dial has 3 s. On a loaded machine it may have ended before this point.
        let isDialling = ContinuousClock.now - begun < .seconds(2)
        dial.cancel()
        dial.cancel()
        let report = try await dial.report.get()
        #expect(report.connection == nil)
        #expect(report.summary == .cancelled || !isDialling)
        #expect(try await raw.all().last == .closed)
        try await silent.channel.close()
        await peer.transport.shutdown()
    }

    @Test("names are resolved", arguments: ["localhost"])
    func names(name: String) async throws {
        let peer = try await Endpoint()
        let other = try await Endpoint()
        // The name may also have an IPv6 address without a listener.
        let report = try await report(peer, [target(other.port, host: name)])
        #expect(report.connection?.target?.host == name)
        #expect(report.failures.allSatisfy { $0.error == .refused })
        await peer.transport.shutdown()
        await other.transport.shutdown()
    }

    @Test("an address that cannot be dialled is an error of its own")
    func senseless() async throws {
        let peer = try await Endpoint()
        #expect(try await report(peer, []).summary == .failed("there is no address to dial"))
        let cases: [DialTarget] = [
            DialTarget(host: "fe80::1%nosuch0", port: 9), DialTarget(host: "fe80::1", port: 9, interface: "nosuch0"),
            DialTarget(host: "1:2:3", port: 9), DialTarget(host: "127.1", port: 9), DialTarget(host: "0177.0.0.1", port: 9),
        ]
        for target in cases {
            guard case .unreachable? = try await report(peer, [target]).summary else { throw Unexpected("\(target)") }
        }
        for host in ["", String(repeating: "x", count: 300), "a\0b"] {
            guard case .nameNotFound? = try await report(peer, [target(9, host: host)]).summary else { throw Unexpected(host) }
        }
        guard case .failed? = try await report(peer, [target(0)]).summary else { throw Unexpected("port 0") }
        // A link-local address without interface is unreachable, even if some interface has a route.
        #expect(try await report(peer, [target(9, host: "fe80::1")]).connection == nil)
        await peer.transport.shutdown()
    }

    @Test(
        "resolved names: not an address, and nothing the system would read as one",
        arguments: [
            ("ada", true), ("ada.local", true), ("ada.local.", true), ("1.2.3.4.5", true), ("node.1", true), ("1a", true), ("", true),
            ("1.2.3.4", false), ("1.2.3", false), ("1", false), ("16909060", false), ("0x7f.1", false), ("0177.0.0.1", false),
            ("010.0.0.1", false), ("::1", false), ("fe80::1%nosuch0", false), ("a:b", false), ("a%b", false),
        ])
    func names(host: String, isName: Bool) {
        #expect(DialTarget(host: host, port: 9).isName == isName)
    }

    @Test("a dial after shutdown is cancelled")
    func afterShutdown() async throws {
        let peer = try await Endpoint()
        await peer.transport.shutdown()
        #expect(try await report(peer, [peer.target]).summary == .failed("there is no address to dial"))
    }

    static let codes: [(CInt, DialError)] = [
        (ECONNREFUSED, .refused), (ETIMEDOUT, .timeout), (ECONNRESET, .closed),
        (EHOSTUNREACH, .unreachable(String(cString: strerror(EHOSTUNREACH)))),
        (ENETUNREACH, .unreachable(String(cString: strerror(ENETUNREACH)))), (EMFILE, .failed(String(cString: strerror(EMFILE)))),
    ]

    @Test("system errors are distinguished", arguments: codes)
    func classify(code: CInt, error: DialError) {
        #expect(DialAttempt.classify(IOError(errnoCode: code, reason: "connect")) == error)
    }
}
