extension Int64 {
    /// Returns the sum, clamped to `Int64.max`, because peers can announce any size. Both operands must be non-negative.
    public func addingClamped(_ other: Int64) -> Int64 {
        let (sum, isOver) = addingReportingOverflow(other)
        return isOver ? .max : sum
    }
}

extension Sequence<Int64> {
    /// The sum of non-negative numbers, clamped to `Int64.max`.
    public var clampedSum: Int64 { reduce(0) { $0.addingClamped($1) } }
}
