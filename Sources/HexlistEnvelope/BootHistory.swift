public import HexlistModel

/// The boot nonces of the last two daemon processes that signed letters of one peer. They show whether two machines have the peer's
/// identity.
public struct BootHistory: Sendable, Equatable {
    /// The boot nonce of the process that signed the latest letters.
    public private(set) var present: BootNonce
    /// The earliest signing time of the present process, in milliseconds since 1970.
    public private(set) var since: UInt64
    /// The signing time of the latest letter that showed two machines, in milliseconds since 1970; 0 if there was none. `since` is not
    /// before it, so earlier letters show nothing if they are read later or again.
    public private(set) var conflictAt: UInt64
    public private(set) var previous: BootNonce?

    public init(present: BootNonce, since: UInt64, conflictAt: UInt64 = 0, previous: BootNonce? = nil) {
        self.present = present
        self.since = since
        self.conflictAt = conflictAt
        self.previous = previous
    }

    /// Records a letter. Letters may be recorded in any order. A letter that shows two machines makes its process the present one: if the
    /// other machine gets a new identity, the letters of the remaining one show nothing more.
    /// - Returns: whether the previous process signed the letter after the present one had begun to sign. A process that was replaced by a
    ///   restart cannot do that, so two machines have the identity.
    public mutating func record(_ boot: BootNonce, signedAt: UInt64) -> Bool {
        if boot == present {
            since = max(conflictAt, min(since, signedAt))
        } else if signedAt > since {
            let isConflict = boot == previous
            (previous, present, since) = (present, boot, signedAt)
            if isConflict { conflictAt = signedAt }
            return isConflict
        }
        return false
    }
}
