public import HexlistModel

/// The bounds of a `DeviceDirectory`.
public struct DeviceDirectoryLimits: Sendable {
    /// Maximum number of devices in memory. Strangers are evicted first.
    public var devices = 256
    public var ghosts = 64
    /// The time for which a ghost is listed after its last datagram.
    public var ghostTime = Duration.seconds(300)
    public var endpointsPerDevice = 4
    public var dialsAtOnce = 4
    public var dialsPerSecond = 20
    /// Number of dials that are reserved for trusted devices, in `dialsAtOnce` and in `dialsPerSecond`.
    public var dialsForTrusted = 1
    /// The time after a proof in which an announcement from the same endpoint causes no dial.
    public var redialInterval = Duration.seconds(2)
    /// The time after a proof in which a device is listed without a probe.
    public var freshFor = Duration.seconds(90)
    /// The interval of probes while rows wait for the device.
    public var probeInterval = Duration.seconds(15)
    /// The time after the last proof at which a device counts as away. Devices announce nothing when they leave.
    public var awayAfter = Duration.seconds(300)

    public init() {}
}

/// An address and port of a device.
public struct DeviceEndpoint: Sendable, Hashable {
    public var address: IPAddress
    public var port: Int

    public init(address: IPAddress, port: Int) {
        self.address = address
        self.port = port
    }
}

public struct DeviceDialID: Sendable, Hashable {
    private let number: UInt64

    init(_ number: UInt64) { self.number = number }
}

/// A `register` request to send. No byte of it may be sent before the server's certificate has the fingerprint.
public struct DeviceDial: Sendable, Equatable {
    public var fingerprint: Fingerprint
    public var endpoint: DeviceEndpoint
    /// The announced name, for the text of a ghost; empty without an announcement.
    var name: String

    public static func == (left: DeviceDial, right: DeviceDial) -> Bool {
        left.fingerprint == right.fingerprint && left.endpoint == right.endpoint
    }
}

/// A certificate that a TLS handshake has proven.
public struct DeviceProof: Sendable {
    public var fingerprint: Fingerprint
    /// The address at the other end of the connection.
    public var address: IPAddress
    /// The name of the Hexlist peer whose key the certificate has; `nil` if there is none.
    public var samePeer: String?

    public init(fingerprint: Fingerprint, address: IPAddress, samePeer: String? = nil) {
        self.fingerprint = fingerprint
        self.address = address
        self.samePeer = samePeer
    }
}

/// The end of a `DeviceDial`.
public enum DeviceDialResult: Sendable {
    /// The device proved the expected certificate and answered.
    case proved(DeviceProof, DeviceInfo)
    /// The server has another certificate. Nothing was sent to it.
    case otherCertificate(Fingerprint)
    /// The end of a sentence that begins with the device's name.
    case failed(String)
}

/// An announcement that does not belong to a usable device.
public struct DeviceGhost: Sendable, Equatable {
    public enum Reason: String, Sendable, CaseIterable {
        case impostor, duplicate, unencrypted, invalid, unverified
    }

    struct Key: Hashable {
        var reason: Reason
        var fingerprint: Fingerprint?
        var address: IPAddress

        init(_ reason: Reason, _ fingerprint: Fingerprint?, _ address: IPAddress) {
            // Any host can invent fingerprints, so announcements that prove nothing have one ghost for each address.
            let isPerAddress = reason == .invalid || reason == .unencrypted
            (self.reason, self.fingerprint, self.address) = (reason, isPerAddress ? nil : fingerprint, address)
        }
    }

    public var reason: Reason
    /// The claimed fingerprint.
    public var fingerprint: Fingerprint?
    public var address: IPAddress
    /// The claimed name. Untrusted text.
    public var name: String
    /// The end of a sentence that begins with the device's name or address.
    public var why: String
    public var seenAt: ContinuousClock.Instant

    public static func == (left: DeviceGhost, right: DeviceGhost) -> Bool {
        left.reason == right.reason && left.fingerprint == right.fingerprint && left.address == right.address
    }
}

/// A line of the list of devices.
public struct DeviceRow: Sendable {
    public enum State: Sendable, Equatable {
        case verified, away
        case ghost(DeviceGhost.Reason)
    }

    /// Proven, unless the row is a ghost.
    public var fingerprint: Fingerprint?
    public var state: State
    /// Untrusted text.
    public var name: String
    public var version: String?
    public var endpoints: [DeviceEndpoint]
    /// The instant at which the certificate was last proven.
    public var provenAt: ContinuousClock.Instant?
    /// For a ghost, the reason, as the end of a sentence that begins with its name.
    public var why: String?

    init(
        fingerprint: Fingerprint?, state: State, name: String, version: String?, endpoints: [DeviceEndpoint],
        provenAt: ContinuousClock.Instant?
    ) {
        self.fingerprint = fingerprint
        self.state = state
        self.name = name
        self.version = version
        self.endpoints = endpoints
        self.provenAt = provenAt
    }

    init(_ ghost: DeviceGhost) {
        self.init(fingerprint: ghost.fingerprint, state: .ghost(ghost.reason), name: ghost.name, version: nil, endpoints: [], provenAt: nil)
        why = ghost.why
    }
}
