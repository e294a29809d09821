/// A QR code (ISO/IEC 18004) for a text in byte mode, in version 1 to 10. Each side has 21 to 57 modules.
public struct QRCode: Sendable {
    /// Maximum bytes of the text, the capacity of version 10 with error correction level L.
    public static let longestText = 271

    /// Number of modules on each side, without the quiet zone.
    public private(set) var size: Int
    private var isDarkModule: [Bool]
    /// Whether each module belongs to a function pattern or to the format or version information. The mask does not change these modules.
    private var isReserved: [Bool]

    /// Chooses error correction level M, which tolerates 15 % of damage, or L (7 %) if the text is too long for M; the smallest version
    /// that fits; and the mask with the lowest penalty.
    /// - Returns: `nil` if the text is longer than `longestText` bytes of UTF-8.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard let layout = QRLayout.smallest(for: bytes.count) else { return nil }
        size = layout.size
        isDarkModule = Array(repeating: false, count: size * size)
        isReserved = isDarkModule
        drawFunctionPatterns(layout)
        drawCodewords(layout.codewords(of: bytes))
        let masks = (0..<8).map { mask in
            var code = self
            code.apply(mask: mask)
            code.drawFormat(layout.level, mask: mask)
            return code
        }
        self = masks.min { $0.penalty < $1.penalty } ?? self
    }

    /// Whether a module is dark. False outside the code, in the quiet zone.
    public func isDark(x: Int, y: Int) -> Bool {
        x >= 0 && y >= 0 && x < size && y < size && isDarkModule[y * size + x]
    }

    // MARK: Drawing

    private mutating func set(_ x: Int, _ y: Int, _ isDark: Bool) {
        isDarkModule[y * size + x] = isDark
        isReserved[y * size + x] = true
    }

    private mutating func drawFunctionPatterns(_ layout: QRLayout) {
        for position in 0..<size {
            set(6, position, position % 2 == 0)
            set(position, 6, position % 2 == 0)
        }
        for (centerX, centerY) in [(3, 3), (size - 4, 3), (3, size - 4)] { drawFinder(centerX, centerY) }
        let centers = layout.alignmentCenters
        for centerY in centers {
            for centerX in centers {
                let isFinder = (centerX == 6 && (centerY == 6 || centerY == size - 7)) || (centerX == size - 7 && centerY == 6)
                if !isFinder { drawAlignment(centerX, centerY) }
            }
        }
        drawFormat(layout.level, mask: 0)  // reserves the modules of the format information
        drawVersion(layout.version)
    }

    /// Draws a finder pattern and its separator.
    private mutating func drawFinder(_ centerX: Int, _ centerY: Int) {
        for y in max(0, centerY - 4)...min(size - 1, centerY + 4) {
            for x in max(0, centerX - 4)...min(size - 1, centerX + 4) {
                let ring = max(abs(x - centerX), abs(y - centerY))
                set(x, y, ring != 2 && ring != 4)
            }
        }
    }

    private mutating func drawAlignment(_ centerX: Int, _ centerY: Int) {
        for y in centerY - 2...centerY + 2 {
            for x in centerX - 2...centerX + 2 { set(x, y, max(abs(x - centerX), abs(y - centerY)) != 1) }
        }
    }

    /// Draws both copies of the format information, which states level and mask: 5 data bits and 10 bits of a BCH code, XORed with a
    /// constant.
    private mutating func drawFormat(_ level: QRLayout.Level, mask: Int) {
        let data = level.formatBits << 3 | mask
        let bits = (data << 10 | QRLayout.remainder(of: data, bits: 10, generator: 0x537)) ^ 0x5412
        for bit in 0..<15 {
            let isDark = bits >> bit & 1 == 1
            switch bit {
            case 0..<6: set(8, bit, isDark)
            case 6, 7: set(8, bit + 1, isDark)
            case 8: set(7, 8, isDark)
            default: set(14 - bit, 8, isDark)
            }
            if bit < 8 { set(size - 1 - bit, 8, isDark) } else { set(8, size - 15 + bit, isDark) }
        }
        set(8, size - 8, true)
    }

    /// Draws both copies of the 18-bit version information, which exists from version 7 on.
    private mutating func drawVersion(_ version: Int) {
        guard version >= 7 else { return }
        let bits = version << 12 | QRLayout.remainder(of: version, bits: 12, generator: 0x1F25)
        for bit in 0..<18 {
            let (long, short) = (size - 11 + bit % 3, bit / 3)
            set(long, short, bits >> bit & 1 == 1)
            set(short, long, bits >> bit & 1 == 1)
        }
    }

    /// Writes the codewords to the remaining modules, in columns of two, from right to left, alternately upwards and downwards. Skips the
    /// vertical timing pattern.
    private mutating func drawCodewords(_ codewords: [UInt8]) {
        var bit = 0
        var isUpwards = true
        for right in stride(from: size - 1, to: 0, by: -2) {
            let column = right <= 6 ? right - 1 : right
            for step in 0..<size {
                let y = isUpwards ? size - 1 - step : step
                for x in [column, column - 1] where !isReserved[y * size + x] && bit < codewords.count * 8 {
                    isDarkModule[y * size + x] = codewords[bit / 8] >> (7 - bit % 8) & 1 == 1
                    bit += 1
                }
            }
            isUpwards.toggle()
        }
    }

    private mutating func apply(mask: Int) {
        for y in 0..<size {
            for x in 0..<size where !isReserved[y * size + x] && Self.inverts(mask, x, y) { isDarkModule[y * size + x].toggle() }
        }
    }

    private static func inverts(_ mask: Int, _ x: Int, _ y: Int) -> Bool {
        switch mask {
        case 0: (x + y) % 2 == 0
        case 1: y % 2 == 0
        case 2: x % 3 == 0
        case 3: (x + y) % 3 == 0
        case 4: (y / 2 + x / 3) % 2 == 0
        case 5: x * y % 2 + x * y % 3 == 0
        case 6: (x * y % 2 + x * y % 3) % 2 == 0
        default: ((x + y) % 2 + x * y % 3) % 2 == 0
        }
    }

    // MARK: Penalty

    /// The sum of the standard's four penalty rules: runs of one colour, 2×2 blocks, patterns that resemble a finder, and an imbalance of
    /// dark and light.
    private var penalty: Int {
        var penalty = 0
        for line in 0..<size {
            for row in [(0..<size).map { isDark(x: $0, y: line) }, (0..<size).map { isDark(x: line, y: $0) }] {
                penalty += Self.runPenalty(row) + Self.finderPenalty(row)
            }
        }
        for y in 0..<size - 1 {
            for x in 0..<size - 1 {
                let color = isDark(x: x, y: y)
                if color == isDark(x: x + 1, y: y), color == isDark(x: x, y: y + 1), color == isDark(x: x + 1, y: y + 1) { penalty += 3 }
            }
        }
        let percent = isDarkModule.count { $0 } * 100 / (size * size)
        return penalty + abs(percent - 50) / 5 * 10
    }

    private static func runPenalty(_ row: [Bool]) -> Int {
        var penalty = 0
        var length = 0
        for index in row.indices {
            length = index > 0 && row[index] == row[index - 1] ? length + 1 : 1
            if length == 5 { penalty += 3 } else if length > 5 { penalty += 1 }
        }
        return penalty
    }

    private static let finderLike: [[Bool]] = ["10111010000", "00001011101"].map { $0.map { $0 == "1" } }

    private static func finderPenalty(_ row: [Bool]) -> Int {
        (0...row.count - 11).count { start in finderLike.contains { $0.elementsEqual(row[start..<start + 11]) } } * 40
    }
}

// MARK: Output

extension QRCode {
    /// An SVG image with a single path, black on white, with a quiet zone of four modules. It can be scaled to any size.
    public var svg: String {
        let side = size + 8
        var path = ""
        for y in 0..<size {
            for x in 0..<size where isDark(x: x, y: y) { path += "M\(x + 4) \(y + 4)h1v1h-1z" }
        }
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(side) \(side)" shape-rendering="crispEdges">\
            <path fill="#fff" d="M0 0h\(side)v\(side)H0z"/><path d="\(path)"/></svg>
            """
    }

    /// Draws the code as lines of text, two rows of modules per line, with a quiet zone of two modules. Block characters are dark modules
    /// and spaces are light ones, which suits a light background.
    /// - Parameter inverted: swaps dark and light, for a dark background.
    public func textLines(inverted: Bool = false) -> [String] {
        stride(from: -2, to: size + 2, by: 2).map { y in
            String(
                (-2..<size + 2).map { x -> Character in
                    switch (isDark(x: x, y: y) != inverted, isDark(x: x, y: y + 1) != inverted) {
                    case (true, true): "█"
                    case (true, false): "▀"
                    case (false, true): "▄"
                    case (false, false): " "
                    }
                })
        }
    }
}
