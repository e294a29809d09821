public import HexlistModel
import NIOCore
import NIOPosix

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

extension PeerTransport {
    /// Accepts connections of peers on one port.
    /// - Parameters:
    ///   - addresses: the numeric addresses to listen on. Link-local ones have an interface. If empty, all IPv4 and IPv6 addresses that the
    ///     machine has.
    ///   - port: 0 … 65535. For 0, the system chooses a port.
    ///   - onAccept: called on the event loop when the handshake is complete; on plain TCP, when the first byte has arrived. Frames are
    ///     delivered once `delegate` is set.
    /// - Returns: the port that is used.
    /// - Throws: `HexlistError` `portInUse` or `configuration`. No socket listens then.
    public func listen(
        addresses: [String], port: Int, onAccept: @escaping @Sendable (PeerConnection) -> Void
    ) async throws -> Int {
        guard let port = UInt16(exactly: port) else {
            throw HexlistError(
                .configuration, "\(port) is no port.", hint: "Ports are 1 to 65535; leave it out for one the system chooses.")
        }
        try await onLoop { $0.accept(with: onAccept) }
        return try await listen(addresses, port) { try AcceptedChannel.install(on: $0, state: $1) }
    }

    /// Accepts connections of LocalSend devices on another port.
    /// - Parameters:
    ///   - addresses: the numeric addresses to listen on, as in `listen`.
    ///   - port: 0 … 65535. For 0, the system chooses a port.
    ///   - received: called on the event loop with each request.
    ///   - refused: called on the event loop with the address of each connection whose handshake failed.
    /// - Returns: the port that is used.
    /// - Throws: `HexlistError` `portInUse` or `configuration`. No socket listens then.
    public func listenForDevices(
        addresses: [String], port: UInt16, received: @escaping @Sendable (IncomingDeviceRequest) -> Void,
        refused: @escaping @Sendable (IPAddress) -> Void
    ) async throws -> Int {
        let tls = try DeviceTLS(identity: identity)
        let state = state
        let server = try await eventLoop.submit {
            NIOLoopBound(
                DeviceServer(state: state.value, tls: tls, received: received, refused: refused), eventLoop: state.value.eventLoop)
        }.get()
        return try await listen(addresses, port) { channel, _ in try server.value.install(on: channel) }
    }

    /// Stops listening on a port of `listenForDevices`. Connections that were accepted stay open. Thread-safe.
    public func stopListening(port: Int) {
        let state = state
        eventLoop.execute { state.value.listeners.close(port: port) }
    }

    private typealias Install = @Sendable (any Channel, TransportState) throws -> Void

    /// Listens on all addresses, on the same port.
    /// - Parameter install: prepares an accepted connection.
    private func listen(_ addresses: [String], _ port: UInt16, _ install: @escaping Install) async throws -> Int {
        let wanted = try addresses.isEmpty ? Self.everyAddress : addresses.map(Self.listenAddress)
        // If the system chooses the port for the first address, it may be in use on another address. The method then tries again.
        var triesLeft = port == 0 ? 20 : 1
        while true {
            triesLeft -= 1
            do {
                let channels = try await bindAll(wanted, port: port, isOptional: addresses.isEmpty, install)
                try await onLoop { state in
                    for channel in channels { state.listeners.keep(channel) { self.bind($0, install) } }
                }
                return channels.first?.localAddress?.port ?? Int(port)
            } catch let error as HexlistError where error.code == .portInUse && triesLeft > 0 {
                continue
            }
        }
    }

    private static var everyAddress: [IPAddress] { ["0.0.0.0", "::"].compactMap { IPAddress($0) } }

    private static func listenAddress(_ text: String) throws -> IPAddress {
        guard let address = IPAddress(scoped: text) else {
            throw HexlistError(
                .configuration, "`listen`: \(TerminalText.clean(text, columns: 60)) is no address.",
                hint: "Give addresses of this machine such as 192.168.1.5 or fe80::1%eth0, or none to listen on all.")
        }
        return address
    }

    /// - Parameter isOptional: whether an address is skipped if the machine does not support its family.
    private func bindAll(
        _ addresses: [IPAddress], port: UInt16, isOptional: Bool, _ install: @escaping Install
    ) async throws -> [any Channel] {
        var bound: [any Channel] = []
        var port = port
        for address in addresses {
            do {
                guard let socket = address.socketAddress(port: port) else { throw ChannelError.unknownLocalAddress }
                let channel = try await bind(socket, install).get()
                bound.append(channel)
                if port == 0 { port = channel.localAddress?.port.flatMap(UInt16.init(exactly:)) ?? 0 }
            } catch {
                let code = (error as? IOError)?.errnoCode
                if isOptional, address.isIPv6, !bound.isEmpty, code == EAFNOSUPPORT || code == EADDRNOTAVAIL { continue }
                for channel in bound { try? await channel.close() }
                throw Self.describe(error, address, port)
            }
        }
        return bound
    }

    private func bind(_ address: SocketAddress, _ install: @escaping Install) -> EventLoopFuture<any Channel> {
        let state = state
        let logger = logger
        var bootstrap = ServerBootstrap(group: eventLoop)
            .serverChannelOption(.backlog, value: 256)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptPause(logger: logger))
                }
            }
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try install(channel, state.value) }
            }
        if address.protocol == .inet6 {
            // IPv4 and IPv6 have separate sockets, so that IPv4 addresses never have the IPv4-mapped form.
            bootstrap = bootstrap.serverChannelOption(.socket(.init(IPPROTO_IPV6), .init(IPV6_V6ONLY)), value: 1)
        }
        return bootstrap.bind(to: address)
    }

    private static func describe(_ error: any Error, _ address: IPAddress, _ port: UInt16) -> HexlistError {
        let name = HostPort.text(address.host, port)
        switch (error as? IOError)?.errnoCode {
        case EADDRINUSE:
            return HexlistError(
                .portInUse, "Port \(port) is in use on \(address.host).",
                hint: "Another program, or another hexlistd, listens there. Stop it, or set another `port`.")
        case EADDRNOTAVAIL, EINVAL, ENODEV:
            return HexlistError(
                .configuration, "Cannot listen on \(name): it is no address of this machine.",
                hint: "Correct `listen`, or leave it out to listen on all addresses.")
        case EACCES, EPERM:
            return HexlistError(
                .configuration, "Cannot listen on \(name): not permitted.", hint: "Use a `port` from 1024 up.")
        default:
            return HexlistError(.configuration, "Cannot listen on \(name): \(error).", hint: "Check `listen` and `port`.")
        }
    }
}
