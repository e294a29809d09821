import HexlistModel

/// A conflict between several running processes that proved the same identity, because machines have copies of one state folder.
struct IdentityConflict: Sendable {
    /// The time of the last proof by each process, with its boot nonce as key.
    private(set) var starts: [BootNonce: ContinuousClock.Instant] = [:]
    /// The time when the processes are probed again.
    var checkAt: ContinuousClock.Instant

    init(checkAt: ContinuousClock.Instant) { self.checkAt = checkAt }

    mutating func recordProof(_ boot: BootNonce, at instant: ContinuousClock.Instant) {
        if starts[boot] == nil, starts.count >= DirectoryLimits.formerBoots, let oldest = starts.min(by: { $0.value < $1.value }) {
            starts[oldest.key] = nil
        }
        starts[boot] = instant
    }

    mutating func forget(before instant: ContinuousClock.Instant) { starts = starts.filter { $0.value >= instant } }
}
