extension Duration {
    /// The duration in nanoseconds, clamped to `Int64.max` (292 years).
    public var nanoseconds: Int64 {
        let (whole, overflow) = components.seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, exceeds) = whole.addingReportingOverflow(components.attoseconds / 1_000_000_000)
        return overflow || exceeds ? .max : sum
    }
}

extension Duration {
    /// The duration in milliseconds, without the fraction.
    public var milliseconds: Int64 { components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000 }
}
