import HexlistModel
import Logging
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import HexlistTransport

@Suite(.timeLimit(.minutes(5))) struct ListenTests {
    private static let hasIPv6 =
        IPAddress("::1")?.socketAddress(port: 0).map { address in
            (try? ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton).bind(to: address).wait())
                .map { (try? $0.close().wait()) != nil } ?? false
        } ?? false

    private func transport(_ limits: TransportLimits = TransportLimits()) throws -> PeerTransport {
        try PeerTransport(
            identity: .ephemeral(), eventLoop: MultiThreadedEventLoopGroup.singleton.next(), limits: limits,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    @Test("no addresses: both IP versions on one port", .enabled(if: hasIPv6))
    func everyAddress() async throws {
        let peer = try await Endpoint(addresses: [])
        let other = try await Endpoint()
        for (host, seen) in [("127.0.0.1", "127.0.0.1"), ("::1", "::1")] {
            let report = try await other.transport.dial([DialTarget(host: host, port: peer.port)]).report.get()
            #expect(report.connection?.remoteAddress == host, "\(report.failures)")
            // An IPv4 address is never reported as IPv4-mapped IPv6.
            #expect(try await peer.accepted.next().remoteAddress == seen)
        }
        await peer.transport.shutdown()
        await other.transport.shutdown()
    }

    @Test("a port in use is an error that names it, and no socket stays bound", .enabled(if: hasIPv6))
    func portInUse() async throws {
        let taken = try await RawPeer.serve()
        let transport = try transport()
        for addresses in [["127.0.0.1"], ["::1", "127.0.0.1"], []] {
            let fault = await #expect(throws: HexlistError.self) {
                try await transport.listen(addresses: addresses, port: Int(taken.port)) { _ in }
            }
            #expect(fault?.code == .portInUse)
            #expect(fault?.message.contains("\(taken.port)") == true)
            #expect(fault?.hint?.contains("`port`") == true)
        }
        try await taken.channel.close()
        let port = try await transport.listen(addresses: ["::1", "127.0.0.1"], port: Int(taken.port)) { _ in }
        #expect(port == Int(taken.port))
        await transport.shutdown()
    }

    @Test(
        "an invalid address or port is a configuration error",
        arguments: [("nowhere", 0), ("192.0.2.1", 0), ("", 0), ("fe80::1%nosuch0", 0), ("127.0.0.1", -1), ("127.0.0.1", 65_536)])
    func noAddress(address: String, port: Int) async throws {
        let transport = try transport()
        let fault = await #expect(throws: HexlistError.self) {
            try await transport.listen(addresses: [address], port: port) { _ in }
        }
        #expect(fault?.code == .configuration)
        #expect(fault?.hint?.isEmpty == false)
        await transport.shutdown()
    }

    @Test("shutdown closes sessions, handshakes, dials and listeners, and frees the port")
    func shutdown() async throws {
        let pair = try await Endpoint.pair()
        let left = try await pair.dialled.record()
        let right = try await pair.accepted.record()
        let (half, _) = try await RawPeer.connect(to: pair.right.port, greeting: [0x16])
        let silent = try await RawPeer.serve()
        let begun = ContinuousClock.now
        let dial = pair.right.transport.dial([DialTarget(host: "127.0.0.1", port: silent.port)])
        _ = try await silent.accepted.next()
        try await pair.right.reaches([2, 2])
        // A dial has 3 s. On a loaded machine it may have ended before this point.
        let isDialling = ContinuousClock.now - begun < .seconds(3)
        await pair.right.transport.shutdown()
        #expect(try await left.end() == .closed(nil))
        #expect(try await right.end() == .closed(nil))
        #expect(try await half.all().last == .closed)
        let summary = try await dial.report.get().summary
        #expect(summary == .cancelled || !isDialling)
        #expect(try await pair.right.counts() == [0, 0])
        await pair.right.transport.shutdown()
        let again = try transport()
        #expect(try await again.listen(addresses: ["127.0.0.1"], port: Int(pair.right.port)) { _ in } == Int(pair.right.port))
        await again.shutdown()
        await pair.left.transport.shutdown()
        try await silent.channel.close()
    }

    @Test("without descriptors accepting pauses, and resumes automatically")
    func acceptPause() async throws {
        let accepted = Inbox<Int>()
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        AcceptPause(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, pause: .milliseconds(300)))
                }
            }
            .childChannelInitializer { channel in
                accepted.put(1)
                return channel.eventLoop.makeSucceededVoidFuture()
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port.flatMap(UInt16.init(exactly:)))
        let isReading = { try await server.getOption(.autoRead).get() }
        let begin = ContinuousClock.now
        for _ in 0..<3 { server.pipeline.fireErrorCaught(IOError(errnoCode: EMFILE, reason: "accept")) }
        #expect(try await isReading() == false)
        let (_, client) = try await RawPeer.connect(to: port)
        _ = try await accepted.next()
        #expect(begin.duration(to: .now) >= .milliseconds(300))
        #expect(try await isReading())
        // An error of one connection does not pause the others.
        server.pipeline.fireErrorCaught(IOError(errnoCode: ECONNABORTED, reason: "accept"))
        #expect(try await isReading())
        try await client.close()
        try await server.close()
    }

    @Test("a listening socket that closes unexpectedly is bound again")
    func boundAgain() async throws {
        let peer = try await Endpoint()
        let state = peer.transport.state
        let sockets = try await peer.transport.eventLoop.submit { state.value.listeners.sockets }.get()
        try await #require(sockets.first).close()
        let other = try await Endpoint()
        try await eventually("the port takes a connection") { try await other.transport.dial([peer.target]).report.get().connection != nil }
        await peer.transport.shutdown()
        await other.transport.shutdown()
    }

    // MARK: Limits

    @Test("connections per address are limited, and the end of one frees its slot")
    func perAddress() async throws {
        var limits = TransportLimits()
        limits.perAddress = 3
        let peer = try await Endpoint(limits)
        let other = try await Endpoint()
        var open: [PeerConnection] = []
        for _ in 0..<3 { open.append(try await other.dial(peer)) }
        try await peer.reaches([3, 3])
        #expect(try await other.transport.dial([peer.target]).report.get().summary == .closed)
        try await open[0].on { $0.abort() }
        try await peer.reaches([2, 2])
        _ = try await other.dial(peer)
        await peer.transport.shutdown()
        await other.transport.shutdown()
    }

    @Test("connections before Hello are limited separately, and a Hello frees its slot; reserved addresses have their own limit")
    func unidentified() async throws {
        var limits = TransportLimits()
        limits.unidentified = 1
        limits.reserved = 1
        limits.perAddress = 99
        let peer = try await Endpoint(limits)
        let other = try await Endpoint()
        _ = try await other.dial(peer)
        let first = try await peer.accepted.next()
        #expect(try await other.transport.dial([peer.target]).report.get().summary == .closed)
        try await first.on {
            $0.markIdentified()
            $0.markIdentified()
        }
        #expect(try await peer.counts() == [1, 0])
        _ = try await other.dial(peer)
        #expect(try await other.transport.dial([peer.target]).report.get().summary == .closed)
        peer.transport.setReservedAddresses(["127.0.0.1", "no address"])
        _ = try await other.dial(peer)
        #expect(try await other.transport.dial([peer.target]).report.get().summary == .closed)
        limits.unidentified = 50
        peer.transport.setLimits(limits)
        _ = try await other.dial(peer)
        await peer.transport.shutdown()
        await other.transport.shutdown()
    }
}
