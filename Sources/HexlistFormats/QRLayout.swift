/// The version and error correction level of a `QRCode`, and the codewords for a text in this version and level.
struct QRLayout {
    enum Level: CaseIterable {
        case medium, low

        /// The bits that stand for the level in the format information.
        var formatBits: Int { self == .medium ? 0 : 1 }
        /// Number of error correction codewords in each block, by version.
        var correctionCodewords: [Int] {
            self == .medium ? [10, 16, 26, 18, 24, 16, 18, 22, 22, 26] : [7, 10, 15, 20, 26, 18, 20, 24, 30, 18]
        }
        /// Number of blocks, by version.
        var blocks: [Int] { self == .medium ? [1, 1, 1, 2, 2, 4, 4, 4, 5, 5] : [1, 1, 1, 1, 1, 2, 2, 2, 2, 4] }
    }

    /// The version, 1 to 10.
    let version: Int
    let level: Level

    /// Returns the smallest layout for a text of this length; `nil` if the text is too long.
    static func smallest(for bytes: Int) -> QRLayout? {
        for level in Level.allCases {
            for version in 1...10 {
                let layout = QRLayout(version: version, level: level)
                if layout.headerBits + bytes * 8 <= layout.dataCodewords * 8 { return layout }
            }
        }
        return nil
    }

    var size: Int { 17 + 4 * version }
    /// Coordinates of the centres of the alignment patterns. They are the same on both axes.
    var alignmentCenters: [Int] {
        switch version {
        case 1: []
        case 2...6: [6, size - 7]
        default: [6, (size - 1) / 2, size - 7]
        }
    }
    /// Number of bits before the text: the mode and the text's length.
    private var headerBits: Int { version < 10 ? 12 : 20 }
    private var correctionCodewords: Int { level.correctionCodewords[version - 1] }
    private var blocks: Int { level.blocks[version - 1] }
    private var dataCodewords: Int { allCodewords - correctionCodewords * blocks }

    /// Number of data and error correction codewords: 8 modules each, without function patterns, format and version information.
    private var allCodewords: Int {
        let finders = 3 * 64
        let timing = 2 * (size - 16)
        let format = 31
        let centers = alignmentCenters.count
        // No alignment pattern overlaps a finder pattern. One on a timing pattern shares five modules with it.
        let alignment = centers == 0 ? 0 : (centers * centers - 3) * 25 - 2 * (centers - 2) * 5
        let version = version < 7 ? 0 : 36
        return (size * size - finders - timing - format - alignment - version) / 8
    }

    /// Returns the codewords in drawing order. The data codewords of all blocks are interleaved, followed by the interleaved error
    /// correction codewords.
    func codewords(of text: [UInt8]) -> [UInt8] {
        let data = padded(text)
        // If the data cannot be divided evenly, the last blocks have one more codeword.
        let (length, longer) = dataCodewords.quotientAndRemainder(dividingBy: blocks)
        var start = 0
        let parts = (0..<blocks).map { block in
            let end = start + length + (block >= blocks - longer ? 1 : 0)
            defer { start = end }
            return Array(data[start..<end])
        }
        let generator = ReedSolomon.generator(degree: correctionCodewords)
        let corrections = parts.map { ReedSolomon.remainder(of: $0, generator) }
        return Self.interleaved(parts) + Self.interleaved(corrections)
    }

    /// Returns the data codewords: mode, length, text, terminator, and padding up to the capacity.
    private func padded(_ text: [UInt8]) -> [UInt8] {
        var bits: [Bool] = []
        func append(_ value: Int, _ count: Int) { bits += (0..<count).reversed().map { value >> $0 & 1 == 1 } }
        append(0b0100, 4)
        append(text.count, headerBits - 4)
        for byte in text { append(Int(byte), 8) }
        append(0, min(4, dataCodewords * 8 - bits.count))
        append(0, (8 - bits.count % 8) % 8)
        var bytes = stride(from: 0, to: bits.count, by: 8).map { start in
            bits[start..<start + 8].reduce(UInt8(0)) { $0 << 1 | ($1 ? 1 : 0) }
        }
        var isEven = true
        while bytes.count < dataCodewords {
            bytes.append(isEven ? 0xEC : 0x11)
            isEven.toggle()
        }
        return bytes
    }

    private static func interleaved(_ parts: [[UInt8]]) -> [UInt8] {
        (0..<(parts.map(\.count).max() ?? 0)).flatMap { index in parts.compactMap { index < $0.count ? $0[index] : nil } }
    }

    /// Returns the remainder of polynomial division over GF(2), after shifting `value` left by `bits`. Used for the BCH codes of format and
    /// version.
    static func remainder(of value: Int, bits: Int, generator: Int) -> Int {
        var remainder = value
        for _ in 0..<bits { remainder = remainder << 1 ^ (remainder >> (bits - 1)) * generator }
        return remainder
    }
}

/// Reed–Solomon error correction over GF(256), reduced by the polynomial 0x11D.
enum ReedSolomon {
    static func multiply(_ left: UInt8, _ right: UInt8) -> UInt8 {
        var product = 0
        for bit in (0..<8).reversed() {
            product = product << 1 ^ (product >> 7) * 0x11D
            if right >> bit & 1 == 1 { product ^= Int(left) }
        }
        return UInt8(product)
    }

    /// Returns the coefficients of the generator polynomial (x − 2⁰)(x − 2¹)…, highest power first, without the leading 1.
    static func generator(degree: Int) -> [UInt8] {
        var result = Array(repeating: UInt8(0), count: degree - 1) + [1]
        var root: UInt8 = 1
        for _ in 0..<degree {
            for index in result.indices {
                result[index] = multiply(result[index], root) ^ (index + 1 < degree ? result[index + 1] : 0)
            }
            root = multiply(root, 2)
        }
        return result
    }

    static func remainder(of data: [UInt8], _ generator: [UInt8]) -> [UInt8] {
        var result = Array(repeating: UInt8(0), count: generator.count)
        for byte in data {
            let factor = byte ^ result.removeFirst()
            result.append(0)
            for index in result.indices { result[index] ^= multiply(generator[index], factor) }
        }
        return result
    }
}
