public import HexlistModel

/// A peer that the user named by its address, which is dialled wherever it is and on whatever port.
public struct StaticPeer: Sendable, Hashable {
    /// A host name or a numeric address (IPv6 without brackets).
    public var host: String
    public var port: Int

    public init(host: String, port: Int = ProtocolLimits.defaultPort) {
        self.host = host
        self.port = port
    }
}

/// The configuration of a node (Docs/Reference.md has the keys and their defaults).
public struct NodeConfiguration: Sendable {
    /// The display name that others see.
    public var name: String
    /// The numeric addresses to listen on; empty for all interfaces.
    public var listen: [String] = []
    /// A fixed port; `nil` for 24391 or one chosen once and kept; 0 for one the system chooses each time.
    public var port: Int?
    /// Whether plain TCP is accepted on the same port (`transport: tls+plain`).
    public var acceptsPlain = false
    /// Whether this machine is announced. A machine that hides is seen by nobody, asks no stranger by itself, and talks to a stranger only
    /// if the user asks for it.
    public var announce = true
    public var receiveFrom: ReceivePolicy = .held
    public var peers: [StaticPeer] = []
    public var limits = Limits()
    public var send = Send()
    public var outbox = Outbox()
    public var discovery = Discovery()
    public var files = Files()

    public init(name: String) { self.name = name }

    /// The keys `limits.…` of the configuration.
    public struct Limits: Sendable, Equatable {
        /// The most bytes of one frame from a trusted peer, at least 1 MiB.
        public var frameBytes = ProtocolLimits.trustedFrameBytes
        /// The most bytes of one frame from a stranger.
        public var strangerFrameBytes = ProtocolLimits.strangerFrameBytes
        public var connections = 512
        public var connectionsPerAddress = 16
        public var connectionsUnidentified = 32
        public var connectionsReserved = 16
        /// The time from the TCP connection to the end of the handshake, and to Hello.
        public var handshakeSeconds = 5
        /// TLS handshakes begun for others per second; as many again for the last addresses of trusted peers.
        public var handshakesPerSecond = 100
        public var strangerFramesPerSecond = ProtocolLimits.strangerFramesPerSecond
        /// The frames per second of all strangers together.
        public var allStrangersFramesPerSecond = 10 * ProtocolLimits.strangerFramesPerSecond
        /// The most inbound sessions of strangers at once. Each may hold an incomplete frame.
        public var strangerSessions = 64
        public var heldHexesPerPeer = 20
        public var heldBytesPerPeer = 1 << 20
        public var heldHexes = 200
        public var heldBytes = 10 << 20
        public var heldDays = 7
        /// The most hexes in the inbox; `nil` for no bound.
        public var inboxHexes: Int?
        /// The bytes that stay free on the store's disk.
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
        /// The most announcements tracked.
        public var instances = 8_192
        /// The most resolvers open at once; avahi-daemon refuses a client more than 1 024 objects.
        public var resolvers = 256

        public init() {}
    }

    /// Files that are here under their digest.
    public struct Files: Sendable, Equatable {
        /// The most bytes of the pool, with what is on its way there.
        public var cacheBytes = 1 << 30
        /// Days for which a file stays in the pool that nobody uses.
        public var cacheDays = 30
        /// The folder of the pool; `nil` for one beside the store.
        public var cacheFolder: String?

        public init() {}
    }

    public struct Outbox: Sendable, Equatable {
        public var expireDays = 30
        public var rows = 1_000_000
        public var bytes = 2 << 30

        public init() {}
    }
}
