import HexlistModel

/// The starts that proved one identity while another start of it was alive: machines with copies of one state folder.
struct IdentityConflict: Sendable {
    /// The instant at which each start last proved itself.
    private(set) var starts: [BootNonce: ContinuousClock.Instant] = [:]
    /// The instant of the next check.
    var checkAt: ContinuousClock.Instant

    init(checkAt: ContinuousClock.Instant) { self.checkAt = checkAt }

    mutating func shown(_ boot: BootNonce, at instant: ContinuousClock.Instant) {
        if starts[boot] == nil, starts.count >= DirectoryLimits.formerBoots, let oldest = starts.min(by: { $0.value < $1.value }) {
            starts[oldest.key] = nil
        }
        starts[boot] = instant
    }

    mutating func forget(before instant: ContinuousClock.Instant) { starts = starts.filter { $0.value >= instant } }
}
