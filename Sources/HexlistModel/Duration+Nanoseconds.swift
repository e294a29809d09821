extension Duration {
    /// The duration in whole nanoseconds; of more than 292 years the most there is room for.
    public var nanoseconds: Int64 {
        let (whole, overflow) = components.seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, exceeds) = whole.addingReportingOverflow(components.attoseconds / 1_000_000_000)
        return overflow || exceeds ? .max : sum
    }
}

extension Duration {
    /// Whole milliseconds, rounded down.
    public var milliseconds: Int64 { components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000 }
}
