@testable import HexlistTransport
import HexlistModel
import Logging
import NIOCore
import NIOPosix
import TestSupport
import Testing

extension TransportLimits {
    /// Limits for tests that do not test the handshake timeout. On a loaded machine 5 s may pass before the first byte is read, and the
    /// connection would be dropped.
    static var patient: TransportLimits {
        var limits = TransportLimits()
        limits.handshakeSeconds = 60
        return limits
    }
}

/// One peer on loopback.
final class Endpoint: Sendable {
    let identity: Identity
    let transport: PeerTransport
    let port: UInt16
    let accepted = Inbox<PeerConnection>()

    init(
        _ limits: TransportLimits = .patient, acceptsPlain: Bool = false, identity: Identity? = nil,
        addresses: [String] = ["127.0.0.1"]
    ) async throws {
        self.identity = try identity ?? Identity.ephemeral()
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        transport = try PeerTransport(
            identity: self.identity, eventLoop: MultiThreadedEventLoopGroup.singleton.next(), limits: limits,
            acceptsPlain: acceptsPlain, logger: logger)
        let accepted = accepted
        let port = try await transport.listen(addresses: addresses, port: 0) { accepted.put($0) }
        self.port = try #require(UInt16(exactly: port))
    }

    var target: DialTarget { DialTarget(host: "127.0.0.1", port: port) }

    func dial(_ other: Endpoint, expecting: PeerID? = nil) async throws -> PeerConnection {
        let report = try await transport.dial([other.target], expecting: expecting).report.get()
        return try #require(report.connection, "\(report.failures)")
    }

    /// Two connected peers and both ends of their connection.
    static func pair(limits: TransportLimits = .patient) async throws -> Pair {
        let left = try await Endpoint(limits)
        let right = try await Endpoint(limits)
        let dialled = try await left.dial(right)
        return Pair(left: left, right: right, dialled: dialled, accepted: try await right.accepted.next())
    }

    /// Admission's counts: all connections, and those before Hello.
    func counts() async throws -> [Int] {
        let state = transport.state
        return try await transport.eventLoop.submit {
            [state.value.admission.connections, state.value.admission.unidentified]
        }.get()
    }

    /// Waits for these counts, because connections closed by the other side end here a little later.
    func reaches(_ counts: [Int]) async throws {
        try await eventually("admission has \(counts)") { try await self.counts() == counts }
    }
}

struct Pair: Sendable {
    var left: Endpoint
    var right: Endpoint
    var dialled: PeerConnection
    var accepted: PeerConnection

    func shutdown() async {
        await left.transport.shutdown()
        await right.transport.shutdown()
    }
}
