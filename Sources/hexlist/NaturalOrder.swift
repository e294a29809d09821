import HexlistModel

/// The order of file names in which numbers are compared by their values: `a1`, `a2`, `a10`.
enum NaturalOrder {
    static func precedes(_ one: String, _ other: String) -> Bool {
        var (left, right) = (Array(one.utf8)[...], Array(other.utf8)[...])
        while let a = left.first, let b = right.first {
            guard ASCII.isDigit(a), ASCII.isDigit(b) else {
                let (lower, otherLower) = (ASCII.lowercased(a), ASCII.lowercased(b))
                guard lower == otherLower else { return lower < otherLower }
                (left, right) = (left.dropFirst(), right.dropFirst())
                continue
            }
            let (number, otherNumber) = (digits(&left), digits(&right))
            // Without leading zeros, the longer number is the greater one.
            guard number.count == otherNumber.count else { return number.count < otherNumber.count }
            guard number == otherNumber else { return number.lexicographicallyPrecedes(otherNumber) }
        }
        guard left.isEmpty, right.isEmpty else { return left.isEmpty && !right.isEmpty }
        return one.utf8.lexicographicallyPrecedes(other.utf8)
    }

    /// Removes the digits at the beginning, and returns them without leading zeros.
    private static func digits(_ text: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let digits = text.prefix(while: ASCII.isDigit)
        text = text[digits.endIndex...]
        return digits.drop { $0 == UInt8(ascii: "0") }
    }
}
