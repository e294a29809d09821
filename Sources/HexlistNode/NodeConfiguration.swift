public import HexlistMQTT
public import HexlistModel

/// A peer that is configured by its address.
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
    /// A fixed port. `nil`: at the first start 24391, or if it is in use one that the system chooses; later starts use the same port. 0:
    /// one that the system chooses at each start.
    public var port: Int?
    /// Whether plain TCP is accepted on the peer port, besides TLS (`transport: tls+plain`).
    public var acceptsPlain = false
    /// Whether this machine is announced. A machine that hides does not probe strangers, and opens sessions with strangers only at the
    /// user's request.
    public var announce = true
    public var receiveFrom: StrangerHexPolicy = .held
    public var peers: [StaticPeer] = []
    /// The LocalSend settings; `nil` for a node without LocalSend, as in tests.
    public var localSend: LocalSend?
    public var routes = Routes()
    public var limits = Limits()
    public var send = Send()
    public var outbox = Outbox()
    public var discovery = Discovery()
    public var files = Files()

    public init(name: String) { self.name = name }

    /// The keys `limits.…` of the configuration.
    public struct Limits: Sendable, Equatable {
        /// Maximum bytes of a frame from a trusted peer, at least 1 MiB.
        public var frameBytes = ProtocolLimits.trustedFrameBytes
        /// Maximum bytes of a frame from a stranger.
        public var strangerFrameBytes = ProtocolLimits.strangerFrameBytes
        public var connections = 512
        public var connectionsPerAddress = 16
        public var connectionsUnidentified = 32
        public var connectionsReserved = 16
        /// Maximum time from the TCP connection to the end of the TLS handshake, and from there to the Hello.
        public var handshakeSeconds = 5
        /// Maximum inbound TLS handshakes per second. The last addresses of trusted peers have a second allowance of the same size.
        public var handshakesPerSecond = 100
        public var strangerFramesPerSecond = ProtocolLimits.strangerFramesPerSecond
        /// Maximum frames per second of all strangers together.
        public var allStrangersFramesPerSecond = 10 * ProtocolLimits.strangerFramesPerSecond
        /// Maximum inbound sessions of strangers. Each may have an incomplete frame in memory.
        public var strangerSessions = 64
        public var heldHexesPerPeer = 20
        public var heldBytesPerPeer = 1 << 20
        public var heldHexes = 200
        public var heldBytes = 10 << 20
        public var heldDays = 7
        /// Maximum hexes in the inbox; `nil` for no limit.
        public var inboxHexes: Int?
        /// The bytes that are kept free on the store's disk.
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
        /// Maximum number of tracked announcements.
        public var instances = 8_192
        /// Maximum number of open resolvers; avahi-daemon allows a client 1 024 objects.
        public var resolvers = 256

        public init() {}
    }

    /// The settings of the pool of fetched files, and of the copies of sent files.
    public struct Files: Sendable, Equatable {
        /// Maximum bytes of the pool, including transfers in progress.
        public var cacheBytes = 1 << 30
        /// Days until an unused file is deleted from the pool.
        public var cacheDays = 30
        /// The folder of the pool; `nil` for one beside the store.
        public var cacheFolder: String?
        /// Maximum total size in bytes of the files of one send that are copied without `--copy`.
        public var copyBelow = 16 << 20
        /// The absolute path of the download folder; `nil` if there is none.
        public var downloads: String?

        public init() {}
    }

    /// The routes for hexes to peers that are away.
    public struct Routes: Sendable, Equatable {
        /// The configured routes, in the order in which they are used.
        public var list: [RouteConfiguration] = []
        /// The time after the last session with a peer before hexes for it are posted to its mailbox.
        public var awayTime = Duration.seconds(60)
        /// The time after the start of the node before hexes are posted to peers that had no session since the start. Sessions with peers
        /// that are online open within seconds.
        public var startTime = Duration.seconds(10)
        /// The delay after hexes were queued, so that several share an envelope, and the minimum time between two rounds of a mailbox, so
        /// that several envelopes share a receipt.
        public var batchTime = Duration.seconds(2)

        public init() {}
    }

    public struct LocalSend: Sendable, Equatable {
        /// Whether LocalSend is enabled; `nil` to use the value of `announce`. If it is `true` while this machine hides, devices are found,
        /// but nothing is announced and no port is open.
        public var isEnabled: Bool?
        /// A fixed port; `nil` for 53317 if it is free and no LocalSend app is installed, otherwise another one.
        public var port: Int?
        /// The LocalSend program that is installed for this user; `nil` if there is none. Port 53317 is left to it, because it fails to
        /// start if the port is in use.
        public var installedProgram: String?

        public init() {}
    }

    public struct Outbox: Sendable, Equatable {
        public var expireDays = 30
        public var rows = 1_000_000
        public var bytes = 2 << 30

        public init() {}
    }
}

/// A configured route: `NAME=/folder` or `NAME=mqtts://…`.
public struct RouteConfiguration: Sendable, Equatable {
    public enum Place: Sendable, Equatable {
        /// The absolute path of a shared folder.
        case folder(String)
        case broker(MQTTAddress)

        /// The folder or broker as shown to the user. The parameters of a broker's address, such as the path of its password file, are left
        /// out.
        var text: String {
            switch self {
            case .folder(let path): path
            case .broker(let address): address.place
            }
        }
    }

    /// The user's name for the route, 1 to 32 letters, digits, `-` and `_`.
    public var name: String
    public var place: Place

    public init(name: String, place: Place) {
        self.name = name
        self.place = place
    }

    /// Parses the configured text; `nil` if it is not valid. A route cannot have the name `any` or `none`, because `peer set --route` uses
    /// these words.
    public init?(_ text: String) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, RouteSelection.isName(parts[0]) else { return nil }
        name = parts[0]
        if let address = MQTTAddress(parts[1]) {
            place = .broker(address)
        } else if parts[1].utf8.first == UInt8(ascii: "/"), parts[1].utf8.count < 4_096, !parts[1].utf8.contains(0) {
            place = .folder(parts[1])
        } else {
            return nil
        }
    }

    /// The configured text.
    public var text: String {
        switch place {
        case .folder(let path): "\(name)=\(path)"
        case .broker(let address): "\(name)=\(address.text)"
        }
    }
}
