extension RangeReplaceableCollection<UInt8> {
    mutating func append(bigEndian number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
    }
}

extension Collection<UInt8> {
    /// Decodes an unsigned integer from all bytes, most significant byte first. Leading bytes that do not fit into `Number` are lost.
    func bigEndian<Number: FixedWidthInteger & UnsignedInteger>(as type: Number.Type = Number.self) -> Number {
        reduce(0) { $0 << 8 | Number($1) }
    }
}
