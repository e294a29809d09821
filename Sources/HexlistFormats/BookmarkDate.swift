import HexlistModel

/// Converts dates of bookmark files to seconds since 1970, the format of `ADD_DATE` in browsers.
enum BookmarkDate {
    /// - Parameter text: an ISO 8601 date (`2023-01-05T10:11:12.345Z`, `+01:00`; UTC if there is no zone), or a number: seconds,
    ///   milliseconds or microseconds since 1970, or microseconds since 1601 (Chromium). The unit is detected by the magnitude, for dates
    ///   before the year 5138.
    /// - Returns: `nil` for any other text.
    static func seconds(_ text: String) -> String? {
        let bytes = Array(MarkupText.trimmed(text).utf8)
        return (number(bytes[...]) ?? moment(bytes)).map(String.init)
    }

    /// Returns the date as a member of a hex or link: `member` with the seconds or, if the format is unknown, `other` with the unchanged
    /// text.
    static func member(_ text: String, as member: String, otherwise other: String) -> HexTree.Member {
        seconds(text).map { HexTree.Member(member, $0) } ?? HexTree.Member(other, text)
    }

    private static let from1601To1970: Int64 = 11_644_473_600

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int64? {
        let parts = bytes.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts.first, (1...18).contains(whole.count), whole.allSatisfy(ASCII.isDigit),
            parts.count == 1 || parts[1].allSatisfy(ASCII.isDigit), let number = Int64(String(decoding: whole, as: UTF8.self))
        else { return nil }
        switch number {
        case ..<100_000_000_000: return number
        case ..<100_000_000_000_000: return number / 1_000
        case ..<10_000_000_000_000_000: return number / 1_000_000
        default: return number / 1_000_000 - from1601To1970
        }
    }

    private static func moment(_ bytes: [UInt8]) -> Int64? {
        var rest = bytes[...]
        /// Consumes exactly `count` digits and returns their value; `nil` if it is outside the range.
        func digits(_ count: Int, _ range: ClosedRange<Int64>) -> Int64? {
            let field = rest.prefix(count)
            guard field.count == count, field.allSatisfy(ASCII.isDigit) else { return nil }
            rest = rest.dropFirst(count)
            let number = field.reduce(0) { $0 * 10 + Int64($1 & 0x0F) }
            return range.contains(number) ? number : nil
        }
        func take(_ byte: Unicode.Scalar) -> Bool {
            guard rest.first.map({ UInt32($0) == byte.value }) ?? false else { return false }
            rest = rest.dropFirst()
            return true
        }
        guard let year = digits(4, 1...9_999), take("-"), let month = digits(2, 1...12), take("-"), let day = digits(2, 1...31) else {
            return nil
        }
        var seconds = days(year, month, day) * 86_400
        if rest.isEmpty { return seconds }
        guard take("T") || take("t") || take(" "), let hour = digits(2, 0...23), take(":"), let minute = digits(2, 0...59) else {
            return nil
        }
        seconds += hour * 3_600 + minute * 60
        if take(":") {
            guard let second = digits(2, 0...60) else { return nil }
            seconds += second
            if take(".") || take(",") {
                let fraction = rest.prefix(while: ASCII.isDigit)
                guard !fraction.isEmpty else { return nil }
                rest = rest.dropFirst(fraction.count)
            }
        }
        _ = take(" ")
        if rest.isEmpty || rest.elementsEqual("UTC".utf8) || rest.elementsEqual("GMT".utf8) || take("Z") && rest.isEmpty { return seconds }
        let isAhead = take("+")
        guard isAhead || take("-"), let hours = digits(2, 0...23) else { return nil }
        _ = take(":")
        let minutes = rest.isEmpty ? 0 : digits(2, 0...59)
        guard let minutes, rest.isEmpty else { return nil }
        return seconds + (hours * 3_600 + minutes * 60) * (isAhead ? -1 : 1)
    }

    /// Returns the number of days from 1970-01-01 to a Gregorian date. Calculates with years that begin in March, so that the leap day is
    /// the last day of a year.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let marchYear = month > 2 ? year : year - 1
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return marchYear * 365 + marchYear / 4 - marchYear / 100 + marchYear / 400 + dayOfYear - 719_468
    }
}
