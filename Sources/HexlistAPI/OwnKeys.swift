public import HexlistJSON
public import HexlistModel

/// The public keys of this machine, to hand to other machines and to a broker.
public struct OwnKeys: JSONShape, Sendable, Equatable {
    public var uuid: PeerID
    /// The card in the form for people, which begins with `hexlist-card-1:`.
    public var card: String
    /// The certificate as PEM.
    public var certificate: String

    public init(uuid: PeerID, card: String, certificate: String) {
        self.uuid = uuid
        self.card = card
        self.certificate = certificate
    }
}
