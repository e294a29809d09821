public import HexlistModel

/// The DNS-SD announcement of a node.
public struct ServiceAnnouncement: Sendable, Equatable {
    /// The instance name, at most 63 bytes; Avahi refuses longer ones.
    public var instanceName: String
    public var port: UInt16
    public var txt: [(key: String, value: String)]

    public init(instanceName: String, port: UInt16, txt: [(key: String, value: String)]) {
        self.instanceName = instanceName
        self.port = port
        self.txt = txt
    }

    /// The announcement of a Hexlist peer (Docs/Protocol.md, "Discovery").
    public init(displayName: String, peer: PeerID, boot: BootNonce, port: UInt16) {
        self.init(
            instanceName: PeerName.instance(displayName: displayName, peer: peer), port: port,
            txt: TXTRecord.pairs(peer: peer, boot: boot))
    }

    /// The TXT strings: `key=value` for each pair.
    public var strings: [[UInt8]] { txt.map { Array("\($0.key)=\($0.value)".utf8) } }

    public static func == (left: ServiceAnnouncement, right: ServiceAnnouncement) -> Bool {
        left.instanceName.utf8.elementsEqual(right.instanceName.utf8) && left.port == right.port && left.strings == right.strings
    }
}
