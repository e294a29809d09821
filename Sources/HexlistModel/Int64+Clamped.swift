extension Int64 {
    /// The sum, clamped to `max`, because peers can announce any size. Operands must not be negative.
    public func addingClamped(_ other: Int64) -> Int64 {
        let (sum, isOver) = addingReportingOverflow(other)
        return isOver ? .max : sum
    }
}

extension Sequence<Int64> {
    /// The sum of non-negative numbers, clamped to `max`.
    public var clampedSum: Int64 { reduce(0) { $0.addingClamped($1) } }
}
