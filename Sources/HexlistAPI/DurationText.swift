import HexlistModel

/// Parses durations as people write them: `10s`, `1.5m`, `250ms`, `2h`, or seconds as a bare number.
public enum DurationText {
    /// Returns the number of seconds; `nil` if the text is not a duration, or if the duration is above 366 days.
    public static func seconds(_ text: String) -> Double? {
        let units: [(suffix: String, seconds: Double)] = [("ms", 0.001), ("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400), ("", 1)]
        for unit in units where text.hasSuffix(unit.suffix) {
            let digits = text.dropLast(unit.suffix.count)
            guard !digits.isEmpty, digits.utf8.allSatisfy({ ASCII.isDigit($0) || $0 == UInt8(ascii: ".") }),
                let number = Double(digits)
            else { return nil }
            let seconds = number * unit.seconds
            return seconds <= 366 * 86_400 ? seconds : nil
        }
        return nil
    }
}
