public import HexlistModel

/// The boot nonces of the last two daemon processes that signed letters of one peer. They show whether two machines have the peer's
/// identity.
public struct BootHistory: Sendable, Equatable {
    /// The boot nonce of the process that signed the newest letter.
    public private(set) var present: BootNonce
    /// The earliest known time at which the process `present` signed a letter, in milliseconds since 1970.
    public private(set) var since: UInt64
    /// The signing time of the newest letter that showed two machines with this identity, in milliseconds since 1970; 0 if there was none.
    /// `since` is never earlier than this, so the letters before the conflict cannot report it again when they arrive late or repeatedly.
    public private(set) var conflictAt: UInt64
    /// The boot nonce of the process that signed before `present`; `nil` if only one process is known.
    public private(set) var previous: BootNonce?

    public init(present: BootNonce, since: UInt64, conflictAt: UInt64 = 0, previous: BootNonce? = nil) {
        self.present = present
        self.since = since
        self.conflictAt = conflictAt
        self.previous = previous
    }

    /// Records a letter. Letters may be recorded in any order. If another process signed a newer letter, this process becomes `present`.
    /// The conflict is therefore reported only while letters of both machines arrive.
    /// - Parameter signedAt: milliseconds since 1970.
    /// - Returns: whether two machines have the identity: the process `previous` signed this letter after the process `present` had begun
    ///   to sign. A process that was replaced by a restart could not do that.
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
