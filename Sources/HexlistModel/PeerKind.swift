/// The protocol that a peer speaks. The record of a peer has exactly one kind. Trust in a peer of one kind, or a block of it, never applies
/// to another kind.
public enum PeerKind: String, CaseIterable, Sendable {
    /// A Hexlist peer. Its fingerprint is the hash of its public key.
    case hexlist
    /// A device with LocalSend. Its fingerprint is the SHA-256 of its certificate (DER).
    case localsend
    /// A browser that sent hexes with an invitation. It has no key and a random UUID. It is never trusted, and nothing is sent to it.
    case guest
    /// A drop token, with which a phone's shortcut sends hexes. It has no key and a random UUID. It is never trusted, and nothing is sent
    /// to it.
    case drop

    /// Whether peers of this kind prove a key, so that they can be trusted and hexes can be sent to them. Peers of the other kinds only
    /// send.
    public var hasKey: Bool {
        switch self {
        case .hexlist, .localsend: true
        case .guest, .drop: false
        }
    }

    /// The number in the store. Numbers never change.
    public var number: Int64 {
        switch self {
        case .hexlist: 0
        case .localsend: 1
        case .guest: 2
        case .drop: 3
        }
    }

    /// - Parameter number: the number in the store; `nil` for one that this version does not know.
    public init?(number: Int64) {
        guard let kind = Self.allCases.first(where: { $0.number == number }) else { return nil }
        self = kind
    }
}
