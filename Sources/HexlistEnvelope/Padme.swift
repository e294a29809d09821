/// Padmé, the padding of "Reducing Metadata Leakage from Encrypted Files and Communication with PURBs" (Nikitin and others, 2019).
/// A padded length has a mantissa no longer than its exponent, so it reveals O(log log n) bits and adds at most 12 %.
enum Padme {
    /// Returns the padded length of a plaintext.
    /// - Parameter length: bytes, at least 0.
    static func paddedLength(of length: Int) -> Int {
        guard length > 1 else { return length }
        let exponent = Int.bitWidth - 1 - length.leadingZeroBitCount
        let exponentBits = Int.bitWidth - exponent.leadingZeroBitCount
        let mask = 1 << (exponent - exponentBits) - 1
        return (length + mask) & ~mask
    }
}
