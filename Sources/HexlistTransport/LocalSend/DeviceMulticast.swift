public import HexlistModel
public import Logging
public import NIOCore
import NIOPosix

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The UDP sockets for the announcements of LocalSend devices: one for each IPv4 address and one for each interface with IPv6. They are
/// bound to the wildcard address with `SO_REUSEADDR` and `SO_REUSEPORT`, so they share the port with other programs. Used on its event loop
/// only.
public final class DeviceMulticast {
    /// The multicast groups for IPv4 and IPv6, and the port.
    public struct Groups: Sendable {
        var four: IPAddress
        var six: IPAddress
        var port: UInt16

        /// - Returns: `nil` if an address or the port is invalid.
        public init?(four: String, six: String, port: Int) {
            guard let four = IPAddress(four), let six = IPAddress(six), let port = UInt16(exactly: port) else { return nil }
            (self.four, self.six, self.port) = (four, six, port)
        }
    }

    /// A network on which a socket joins a group: that of an IPv4 address, or an interface with IPv6.
    private struct Link: Hashable {
        var interface: String
        var index: Int32
        /// The IPv4 address; `nil` for IPv6.
        var address: IPAddress?
    }

    private let groups: Groups
    private let eventLoop: any EventLoop
    private let logger: Logger
    private let received: (ByteBuffer, IPAddress) -> Void
    private var channels: [Link: any Channel] = [:]
    /// The networks whose sockets are being opened.
    private var opening: Set<Link> = []
    /// The networks that should have a socket.
    private var wanted: Set<Link> = []
    /// The first error of a network whose group could not be joined; `nil` if there was none.
    public private(set) var failure: String?

    /// - Parameters:
    ///   - maximumBytes: longer datagrams are ignored.
    ///   - received: called on the event loop with each datagram and its source. A link-local source has its scope.
    public init(
        groups: Groups, maximumBytes: Int, eventLoop: any EventLoop, logger: Logger, received: @escaping (ByteBuffer, IPAddress) -> Void
    ) {
        self.groups = groups
        self.maximumBytes = maximumBytes
        self.eventLoop = eventLoop
        self.logger = logger
        self.received = received
    }

    private let maximumBytes: Int

    /// The names of the interfaces on which a group was joined.
    public var interfaces: [String] { Set(channels.keys.map(\.interface)).sorted() }

    /// Opens and closes sockets, so that each IPv4 address and each interface with IPv6 has one.
    /// - Parameter addresses: the addresses of this machine's interfaces. Loopback addresses are ignored.
    public func set(_ addresses: [InterfaceAddress]) {
        wanted = []
        for address in addresses where !address.address.isLoopback {
            wanted.insert(
                Link(interface: address.interface, index: address.index, address: address.address.isIPv6 ? nil : address.address))
        }
        if wanted.isEmpty { failure = nil }
        for (link, channel) in channels where !wanted.contains(link) {
            channels[link] = nil
            channel.close(promise: nil)
        }
        for link in wanted where channels[link] == nil && opening.insert(link).inserted { open(link) }
    }

    /// Sends a datagram to the group, on each socket. If the datagram is lost, it is not sent again.
    public func send(_ bytes: [UInt8]) {
        for (link, channel) in channels {
            let group = link.address == nil ? groups.six.with(scope: UInt32(link.index)) : groups.four
            guard let address = Self.address(of: group, index: link.index, port: groups.port) else { continue }
            channel.writeAndFlush(AddressedEnvelope(remoteAddress: address, data: ByteBuffer(bytes: bytes)), promise: nil)
        }
    }

    public func stop() { set([]) }

    private func open(_ link: Link) {
        let isSix = link.address == nil
        guard let local = IPAddress(isSix ? "::" : "0.0.0.0")?.socketAddress(port: groups.port) else { return }
        let maximumBytes = maximumBytes
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        var bootstrap = DatagramBootstrap(group: eventLoop)
            .channelOption(.socketOption(.so_reuseaddr), value: 1)
            .channelOption(.socketOption(.init(rawValue: SO_REUSEPORT)), value: 1)
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: maximumBytes + 1))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(DatagramHandler(maximumBytes: maximumBytes, bound.value.received))
                }
            }
        if isSix {
            bootstrap = bootstrap.channelOption(.socket(.init(IPPROTO_IPV6), .init(IPV6_V6ONLY)), value: 1)
        }
        bootstrap.bind(to: local).assumeIsolated().whenComplete { result in
            let result = Result { () throws -> any Channel in
                let channel = try result.get()
                do {
                    try self.join(link, channel)
                } catch {
                    channel.close(promise: nil)
                    throw error
                }
                return channel
            }
            self.opened(link, result)
        }
    }

    private func opened(_ link: Link, _ result: Result<any Channel, any Error>) {
        opening.remove(link)
        switch result {
        case .success(let channel):
            guard wanted.contains(link) else { return channel.close(promise: nil) }
            channels[link] = channel
            failure = nil
            channel.closeFuture.assumeIsolated().whenComplete { _ in
                if self.channels[link] === channel { self.channels[link] = nil }
            }
        case .failure(let error):
            // Tunnels do not support multicast, so a failure on one interface is normal.
            failure = "\(link.interface): \(error)"
            logger.debug("no LocalSend announcements", metadata: ["interface": "\(link.interface)", "error": "\(error)"])
        }
    }

    /// Joins the group, and sets the interface, the TTL and the loop-back of sent datagrams.
    private func join(_ link: Link, _ channel: any Channel) throws {
        guard let descriptor = (channel as? any SocketOptionProvider) else { throw ChannelError.operationUnsupported }
        if let address = link.address {
            // `ip_mreqn` has the index of the interface, which is unambiguous even if two interfaces have the same address.
            var request = ip_mreqn()
            Self.copy(groups.four, to: &request.imr_multiaddr)
            Self.copy(address, to: &request.imr_address)
            request.imr_ifindex = link.index
            try Self.set(descriptor, Int(IPPROTO_IP), Int(IP_ADD_MEMBERSHIP), request)
            try Self.set(descriptor, Int(IPPROTO_IP), Int(IP_MULTICAST_IF), request)
            try Self.set(descriptor, Int(IPPROTO_IP), Int(IP_MULTICAST_TTL), CInt(1))
            try Self.set(descriptor, Int(IPPROTO_IP), Int(IP_MULTICAST_LOOP), CInt(1))
            // With this option, the socket receives only datagrams to groups that it has joined itself.
            try Self.set(descriptor, Int(IPPROTO_IP), Self.multicastAll, CInt(0))
        } else {
            var request = ipv6_mreq()
            Self.copy(groups.six, to: &request.ipv6mr_multiaddr)
            request.ipv6mr_interface = CUnsignedInt(link.index)
            try Self.set(descriptor, Int(IPPROTO_IPV6), Int(IPV6_JOIN_GROUP), request)
            try Self.set(descriptor, Int(IPPROTO_IPV6), Int(IPV6_MULTICAST_IF), CInt(link.index))
            try Self.set(descriptor, Int(IPPROTO_IPV6), Int(IPV6_MULTICAST_HOPS), CInt(1))
            try Self.set(descriptor, Int(IPPROTO_IPV6), Int(IPV6_MULTICAST_LOOP), CInt(1))
            try? Self.set(descriptor, Int(IPPROTO_IPV6), Self.multicastAll6, CInt(0))
        }
    }

    /// IP_MULTICAST_ALL and IPV6_MULTICAST_ALL of Linux.
    private static let multicastAll = 49
    private static let multicastAll6 = 29

    private static func set<Value: Sendable>(_ socket: any SocketOptionProvider, _ level: Int, _ name: Int, _ value: Value) throws {
        // The future is complete when the call returns, because the call is made on the event loop.
        var fault: (any Error)?
        socket.unsafeSetSocketOption(level: .init(rawValue: CInt(level)), name: .init(rawValue: CInt(name)), value: value)
            .assumeIsolated().whenFailure { fault = $0 }
        if let fault { throw fault }
    }

    private static func copy(_ address: IPAddress, to field: inout some Any) {
        withUnsafeMutableBytes(of: &field) { $0.copyBytes(from: address.bytes.prefix($0.count)) }
    }

    private static func address(of group: IPAddress, index: Int32, port: UInt16) -> SocketAddress? {
        guard let address = group.socketAddress(port: port), case .v6(let six) = address else { return group.socketAddress(port: port) }
        var raw = six.address
        raw.sin6_scope_id = UInt32(index)
        return SocketAddress(raw, host: group.description)
    }
}

private final class DatagramHandler: ChannelInboundHandler {
    typealias InboundIn = AddressedEnvelope<ByteBuffer>

    private let maximumBytes: Int
    private let received: (ByteBuffer, IPAddress) -> Void

    init(maximumBytes: Int, _ received: @escaping (ByteBuffer, IPAddress) -> Void) {
        self.maximumBytes = maximumBytes
        self.received = received
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let envelope = unwrapInboundIn(data)
        guard envelope.data.readableBytes <= maximumBytes, let source = IPAddress(envelope.remoteAddress) else { return }
        received(envelope.data, source)
    }

    /// A datagram that could not be sent, for example because the network is down, does not close the socket.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {}
}
