public import HexlistJSON
public import HexlistModel

/// The public keys of this machine, for the configuration of other machines and of an MQTT broker.
public struct OwnPublicKeys: JSONShape, Sendable, Equatable {
    public var uuid: PeerID
    /// This machine's card as text, which begins with `hexlist-card-1:`.
    public var card: String
    /// The certificate as PEM.
    public var certificate: String

    public init(uuid: PeerID, card: String, certificate: String) {
        self.uuid = uuid
        self.card = card
        self.certificate = certificate
    }
}
