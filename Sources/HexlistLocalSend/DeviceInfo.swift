public import HexlistJSON
public import HexlistModel

/// The description of a device: an announcement, the body of `register` and its response, and `info` of a `prepare-upload`.
///
/// Everything in it is a claim. Only a TLS handshake proves a fingerprint.
public struct DeviceInfo: Sendable {
    public enum Scheme: String, Sendable, CaseIterable {
        case http, https
    }

    /// The name of the device, truncated to `LocalSendLimits.aliasBytes`. Untrusted text.
    public var alias: String
    public var version: String
    public var deviceModel: String?
    /// `mobile`, `desktop`, `web`, `headless` or `server`; other values are kept.
    public var deviceType: String?
    /// The claimed SHA-256 of the device's certificate. `nil` if it does not have 64 hexadecimal digits, as without encryption.
    public var fingerprint: Fingerprint?
    /// The TCP port; `nil` if it is missing, as in responses, or out of range.
    public var port: Int?
    public var scheme: Scheme?
    /// Whether the message is an announcement; `false` also for a response by UDP.
    public var isAnnouncement: Bool
    /// The UUID of a Hexlist peer that announces itself as a device. Such peers are found through Avahi.
    public var hexlist: PeerID?

    public init(
        alias: String, version: String = LocalSendLimits.version, deviceModel: String? = nil, deviceType: String? = nil,
        fingerprint: Fingerprint?, port: Int? = nil, scheme: Scheme? = nil, isAnnouncement: Bool = false, hexlist: PeerID? = nil
    ) {
        self.alias = alias
        self.version = version
        self.deviceModel = deviceModel
        self.deviceType = deviceType
        self.fingerprint = fingerprint
        self.port = port
        self.scheme = scheme
        self.isAnnouncement = isAnnouncement
        self.hexlist = hexlist
    }

    /// Decodes a message of at most `LocalSendLimits.infoBytes`. Unknown members are ignored.
    public init(parsing bytes: [UInt8]) throws(LocalSendFault) {
        guard bytes.count <= LocalSendLimits.infoBytes else { throw .tooLarge("the description of the device") }
        try self.init(members: LocalSendObject(parsing: bytes))
    }

    init(members: LocalSendObject) throws(LocalSendFault) {
        guard let alias = members.text("alias", limit: LocalSendLimits.aliasBytes) else { throw .invalid("`alias` is missing") }
        self.alias = alias
        version = members.text("version") ?? "1.0"
        deviceModel = members.text("deviceModel")
        deviceType = members.text("deviceType")
        fingerprint = members.text("fingerprint").flatMap { Fingerprint(localSend: $0) }
        port = members.integer("port").flatMap { (1...65_535).contains($0) ? Int($0) : nil }
        scheme = members.text("protocol").flatMap { Scheme(utf8: $0.utf8) }
        isAnnouncement = members["announce"]?.bool ?? members["announcement"]?.bool ?? false
        hexlist = members.text("hexlist").flatMap { PeerID($0) }
    }

    /// Encodes an announcement. LocalSend 1.17 and 1.18 ignore the member `hexlist`.
    public var announcement: [UInt8] {
        bytes { json in
            json.member("announce", true)
            json.member("hexlist", hexlist?.description)
        }
    }

    /// Encodes the body of `register`, and of the responses to `register` and `info`.
    public var registration: [UInt8] { bytes { _ in } }

    /// Writes the object, as in `info` of a `prepare-upload`.
    public func write(to json: inout JSONWriter) { write(to: &json) { _ in } }

    private func bytes(_ more: (inout JSONWriter) -> Void) -> [UInt8] {
        var json = JSONWriter(wireCapacity: 512)
        write(to: &json, more)
        return json.bytes
    }

    private func write(to json: inout JSONWriter, _ more: (inout JSONWriter) -> Void) {
        json.object { json in
            json.member("alias", alias)
            json.member("version", version)
            json.member("deviceModel", deviceModel)
            json.member("deviceType", deviceType)
            json.member("fingerprint", fingerprint?.localSendText)
            json.member("port", port)
            json.member("protocol", scheme?.rawValue)
            json.member("download", false)
            more(&json)
        }
    }
}

extension Fingerprint {
    /// Parses the fingerprint of a certificate: exactly 64 hexadecimal digits in either case, because some programs write lower case.
    public init?(localSend text: String) {
        guard text.utf8.count == 64, let bytes = Hexadecimal.decode(text) else { return nil }
        self.init(bytes: bytes)
    }

    /// The fingerprint as LocalSend writes it: 64 digits in upper case.
    public var localSendText: String { Hexadecimal.encode(bytes).uppercased() }
}
