import ArgumentParser
import HexlistModel

/// A number of bytes as a command-line argument: `100M`, `1.5G`, `200KiB` or a plain number. Units are powers of 1024, as in the output of
/// hexlist.
struct ByteCount: ExpressibleByArgument {
    var value: Int64

    init?(argument: String) {
        let units: [(letter: String, power: Int)] = [("k", 1), ("m", 2), ("g", 3), ("t", 4)]
        var text = argument.lowercased()
        var factor = 1.0
        if text.hasSuffix("ib") { text.removeLast(2) } else if text.hasSuffix("b") { text.removeLast() }
        if let unit = units.first(where: { text.hasSuffix($0.letter) }) {
            text.removeLast()
            for _ in 0..<unit.power { factor *= 1_024 }
        }
        guard !text.isEmpty, text.utf8.allSatisfy({ ASCII.isDigit($0) || $0 == UInt8(ascii: ".") }), let number = Double(text) else {
            return nil
        }
        let bytes = number * factor
        guard bytes >= 1, bytes <= Double(1 << 50) else { return nil }
        value = Int64(bytes)
    }
}
