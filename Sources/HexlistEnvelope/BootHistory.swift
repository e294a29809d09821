public import HexlistModel

/// The daemon starts that signed one peer's letters. They show whether two machines have the peer's identity.
public struct BootHistory: Sendable, Equatable {
    /// The start with the latest letters.
    public private(set) var present: BootNonce
    /// The earliest signing time of the present start, in milliseconds since 1970.
    public private(set) var since: UInt64
    public private(set) var previous: BootNonce?

    public init(present: BootNonce, since: UInt64, previous: BootNonce? = nil) {
        self.present = present
        self.since = since
        self.previous = previous
    }

    /// Records a letter, in any order.
    /// - Returns: whether the previous start signed it after the present one had begun to sign. A restarted daemon cannot do that, so two
    ///   machines have the identity.
    public mutating func record(_ boot: BootNonce, signedAt: UInt64) -> Bool {
        if boot == present {
            since = min(since, signedAt)
        } else if boot == previous {
            return signedAt > since
        } else if signedAt > since {
            (previous, present, since) = (present, boot, signedAt)
        }
        return false
    }
}
