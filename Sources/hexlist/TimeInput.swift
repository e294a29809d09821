import Glibc
import HexlistAPI
import HexlistModel

/// Parses a point in time given as a duration before now (`7d`), a local date (`2031-04-05`), or a local time (`2031-04-05T06:07`).
enum TimeInput {
    /// Parses a text.
    /// - Parameters:
    ///   - isEnd: whether a date stands for the end of that day instead of its beginning.
    ///   - now: the current time in milliseconds since 1970.
    /// - Throws: `HexlistError` if the text has none of these forms.
    static func parse(_ text: String, isEnd: Bool, now: Int64 = Timestamp.now.milliseconds) throws(HexlistError) -> Timestamp {
        if let time = Timestamp(text) { return time }
        // A number without a unit would mean seconds, which is probably a typo.
        if let last = text.utf8.last, !ASCII.isDigit(last), let seconds = DurationText.seconds(text) {
            return Timestamp(milliseconds: now - Int64(seconds * 1_000))
        }
        let parts = text.split(maxSplits: 1, omittingEmptySubsequences: false) { $0 == "T" || $0 == " " }
        guard let date = numbers(parts[0], "-", [4, 2, 2]), parts.count == 1 || parts[1].utf8.count <= 8,
            let clock = parts.count == 1 ? [0, 0, 0] : numbers(parts[1], ":", [2, 2]) ?? numbers(parts[1], ":", [2, 2, 2])
        else { throw refused(text) }
        var wanted = tm()
        (wanted.tm_year, wanted.tm_mon, wanted.tm_mday) = (date[0] - 1_900, date[1] - 1, date[2] + (isEnd && parts.count == 1 ? 1 : 0))
        (wanted.tm_hour, wanted.tm_min, wanted.tm_sec) = (clock[0], clock[1], clock.count > 2 ? clock[2] : 0)
        wanted.tm_isdst = -1
        guard (1...12).contains(date[1]), (1...days(in: date[1], of: date[0])).contains(date[2]), clock[0] < 24, clock[1] < 60,
            wanted.tm_sec < 60
        else { throw refused(text) }
        return Timestamp(milliseconds: Int64(mktime(&wanted)) * 1_000)
    }

    private static func numbers(_ text: Substring, _ separator: Character, _ digits: [Int]) -> [CInt]? {
        let parts = text.split(separator: separator, omittingEmptySubsequences: false)
        guard parts.count == digits.count, zip(parts, digits).allSatisfy({ $0.utf8.count == $1 && $0.utf8.allSatisfy(ASCII.isDigit) })
        else {
            return nil
        }
        return parts.compactMap { CInt($0) }
    }

    private static func days(in month: CInt, of year: CInt) -> CInt {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private static func refused(_ text: String) -> HexlistError {
        HexlistError(
            .badRequest, "`\(TerminalText.clean(text, columns: 40))` is not a time.",
            hint: "Examples: 7d, 12h, 2031-04-05, 2031-04-05T06:07.")
    }
}
