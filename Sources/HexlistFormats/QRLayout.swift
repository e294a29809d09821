/// The version and the error correction level of a `QRCode`, and the codewords that follow from them.
struct QRLayout {
    enum Level: CaseIterable {
        case medium, low

        /// The number of the level in the format information.
        var formatBits: Int { self == .medium ? 0 : 1 }
        /// Error correction codewords of each block, by version.
        var correctionCodewords: [Int] {
            self == .medium ? [10, 16, 26, 18, 24, 16, 18, 22, 22, 26] : [7, 10, 15, 20, 26, 18, 20, 24, 30, 18]
        }
        /// Blocks, by version.
        var blocks: [Int] { self == .medium ? [1, 1, 1, 2, 2, 4, 4, 4, 5, 5] : [1, 1, 1, 1, 1, 2, 2, 2, 2, 4] }
    }

    /// 1 to 10.
    let version: Int
    let level: Level

    /// The smallest layout for a text of so many bytes; `nil` if there is none.
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
    /// Coordinates of the centres of alignment patterns, on both axes.
    var alignmentCenters: [Int] {
        switch version {
        case 1: []
        case 2...6: [6, size - 7]
        default: [6, (size - 1) / 2, size - 7]
        }
    }
    /// Mode and length of the text.
    private var headerBits: Int { version < 10 ? 12 : 20 }
    private var correctionCodewords: Int { level.correctionCodewords[version - 1] }
    private var blocks: Int { level.blocks[version - 1] }
    private var dataCodewords: Int { allCodewords - correctionCodewords * blocks }

    /// All codewords: the modules that no pattern takes, in bytes.
    private var allCodewords: Int {
        let finders = 3 * 64
        let timing = 2 * (size - 16)
        let format = 31
        let centers = alignmentCenters.count
        // Those beside a finder do not exist, and those on a timing pattern share five modules with it.
        let alignment = centers == 0 ? 0 : (centers * centers - 3) * 25 - 2 * (centers - 2) * 5
        let version = version < 7 ? 0 : 36
        return (size * size - finders - timing - format - alignment - version) / 8
    }

    /// The codewords in the order in which they are drawn: those of all blocks interleaved, data before error correction.
    func codewords(of text: [UInt8]) -> [UInt8] {
        let data = padded(text)
        // The last blocks have one codeword more if the data does not divide evenly.
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

    /// Mode, length, text, terminator, and padding up to the capacity.
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

    /// The remainder of a polynomial over GF(2), shifted by `bits`, for the BCH codes of format and version.
    static func remainder(of value: Int, bits: Int, generator: Int) -> Int {
        var remainder = value
        for _ in 0..<bits { remainder = remainder << 1 ^ (remainder >> (bits - 1)) * generator }
        return remainder
    }
}

/// Reed–Solomon error correction over GF(256) with the polynomial 0x11D.
enum ReedSolomon {
    static func multiply(_ left: UInt8, _ right: UInt8) -> UInt8 {
        var product = 0
        for bit in (0..<8).reversed() {
            product = product << 1 ^ (product >> 7) * 0x11D
            if right >> bit & 1 == 1 { product ^= Int(left) }
        }
        return UInt8(product)
    }

    /// The coefficients of (x − 2⁰)(x − 2¹)…, highest power first, without the leading 1.
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
