public import HexlistModel

/// The boot nonces of the last two daemon processes that signed letters of one peer. They show whether two machines have the peer's
/// identity.
public struct BootHistory: Sendable, Equatable {
    /// The boot nonce of the process that signed the latest letters.
    public private(set) var present: BootNonce
    /// The earliest signing time of the present process, in milliseconds since 1970.
    public private(set) var since: UInt64
    public private(set) var previous: BootNonce?

    public init(present: BootNonce, since: UInt64, previous: BootNonce? = nil) {
        self.present = present
        self.since = since
        self.previous = previous
    }

    /// Records a letter. Letters may be recorded in any order.
    /// - Returns: whether the previous process signed the letter after the present one had begun to sign. A process that was replaced by a
    ///   restart cannot do that, so two machines have the identity.
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
