public import HexlistModel

/// A peer the user named: dialled wherever it is, on whatever port.
public struct StaticPeer: Sendable, Hashable {
    /// A host name or a numeric address (IPv6 without brackets).
    public var host: String
    public var port: Int

    public init(host: String, port: Int = ProtocolLimits.defaultPort) {
        self.host = host
        self.port = port
    }
}

/// What a node is told by its configuration (Docs/Operations.md names the keys and their defaults).
public struct NodeConfiguration: Sendable {
    /// The display name others see.
    public var name: String
    /// Numeric addresses to listen on; empty means every interface.
    public var listen: [String] = []
    /// A fixed port; `nil` means 24391 or one chosen once and kept; 0 lets the system choose each time.
    public var port: Int?
    /// Whether bare TCP is taken on the same port (`transport: tls+plain`).
    public var acceptsPlain = false
    /// Whether others are told of this machine. One that hides is seen by nobody, asks no stranger by itself and talks to none unless a
    /// person asks for it.
    public var announce = true
    public var receiveFrom: ReceivePolicy = .held
    public var peers: [StaticPeer] = []
    public var limits = Limits()
    public var send = Send()
    public var outbox = Outbox()
    public var discovery = Discovery()

    public init(name: String) { self.name = name }

    /// The keys `limits.…` of the configuration. It has more than 15 properties, one for each key.
    public struct Limits: Sendable, Equatable {
        /// Bytes of one frame from a trusted peer; never under 1 MiB.
        public var frameBytes = ProtocolLimits.trustedFrameBytes
        /// Bytes of one frame from a stranger.
        public var strangerFrameBytes = ProtocolLimits.strangerFrameBytes
        public var connections = 512
        public var connectionsPerAddress = 16
        public var connectionsUnidentified = 32
        public var connectionsReserved = 16
        /// From the TCP connection to the end of the handshake, and to Hello.
        public var handshakeSeconds = 5
        /// TLS handshakes begun for others; as many again for the last addresses of trusted peers.
        public var handshakesPerSecond = 100
        public var strangerFramesPerSecond = ProtocolLimits.strangerFramesPerSecond
        /// Of all strangers together.
        public var allStrangersFramesPerSecond = 10 * ProtocolLimits.strangerFramesPerSecond
        /// Sessions of strangers that came in, at once. Each may hold a frame that is not whole yet.
        public var strangerSessions = 64
        public var heldHexesPerPeer = 20
        public var heldBytesPerPeer = 1 << 20
        public var heldHexes = 200
        public var heldBytes = 10 << 20
        public var heldDays = 7
        /// Hexes in the inbox; `nil` means no bound.
        public var inboxHexes: Int?
        /// Bytes that stay free on the store's disk.
        public var diskReserveBytes = 64 << 20

        public init() {}
    }

    public struct Send: Sendable, Equatable {
        public var concurrentTransfers = 4
        public var windowFrames = ProtocolLimits.windowFrames
        public var windowBytes = ProtocolLimits.windowBytes

        public init() {}
    }

    public struct Discovery: Sendable, Equatable {
        /// Announcements tracked.
        public var instances = 8_192
        /// Resolvers open at once; avahi-daemon refuses one client beyond 1 024 objects.
        public var resolvers = 256

        public init() {}
    }

    public struct Outbox: Sendable, Equatable {
        public var expireDays = 30
        public var rows = 1_000_000
        public var bytes = 2 << 30

        public init() {}
    }
}
