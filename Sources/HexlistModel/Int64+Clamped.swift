extension Int64 {
    /// The sum, or `max` where there is no room for it: sizes are what others say they are. Neither may be negative.
    public func addingClamped(_ other: Int64) -> Int64 {
        let (sum, isOver) = addingReportingOverflow(other)
        return isOver ? .max : sum
    }
}

extension Sequence<Int64> {
    /// The sum of numbers of which none is negative, or `max`.
    public var clampedSum: Int64 { reduce(0) { $0.addingClamped($1) } }
}
