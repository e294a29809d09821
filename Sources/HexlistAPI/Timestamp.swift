import HexlistModel

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A point in time. The local API uses RFC 3339 in UTC with milliseconds, `2031-04-05T06:07:08.009Z`.
public struct Timestamp: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// Milliseconds since 1970, UTC, without leap seconds.
    public var milliseconds: Int64

    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// The current time of the wall clock. It is used for display and retention only: clocks of peers may differ, so decisions about peers
    /// do not use it.
    public static var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000)
    }

    /// Parses a text in exactly the format of `description`; `nil` for other text.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count == 24 else { return nil }
        for (index, separator) in [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":"), (19, "."), (23, "Z")] as [(Int, Unicode.Scalar)] {
            guard UInt32(bytes[index]) == separator.value else { return nil }
        }
        func field(_ range: Range<Int>, _ allowed: ClosedRange<Int64>) -> Int64? {
            var value: Int64 = 0
            for byte in bytes[range] {
                guard ASCII.isDigit(byte) else { return nil }
                value = value * 10 + Int64(byte - 0x30)
            }
            return allowed.contains(value) ? value : nil
        }
        guard let year = field(0..<4, 0...9999), let month = field(5..<7, 1...12), let day = field(8..<10, 1...31),
            let hour = field(11..<13, 0...23), let minute = field(14..<16, 0...59), let second = field(17..<19, 0...59),
            let fraction = field(20..<23, 0...999)
        else { return nil }
        let seconds = CivilDate(year: year, month: month, day: day).daysSince1970 * 86_400 + hour * 3_600 + minute * 60 + second
        milliseconds = seconds * 1_000 + fraction
    }

    /// The time as RFC 3339 text in UTC with milliseconds, clamped to the years 0 … 9999.
    public var description: String {
        let inside = min(max(milliseconds, -62_167_219_200_000), 253_402_300_799_999)
        let days = Timestamp.floor(inside, by: 86_400_000)
        let rest = inside - days * 86_400_000
        let date = CivilDate(daysSince1970: days)
        func pad(_ value: Int64, _ width: Int) -> String {
            let digits = String(value)
            return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
        }
        return "\(pad(date.year, 4))-\(pad(date.month, 2))-\(pad(date.day, 2))T\(pad(rest / 3_600_000, 2))"
            + ":\(pad(rest / 60_000 % 60, 2)):\(pad(rest / 1_000 % 60, 2)).\(pad(rest % 1_000, 3))Z"
    }

    public static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }

    fileprivate static func floor(_ value: Int64, by divisor: Int64) -> Int64 {
        value >= 0 ? value / divisor : (value - divisor + 1) / divisor
    }
}

/// A day of the proleptic Gregorian calendar. Its conversions use years that begin in March, so that a leap day is the last day of a year.
private struct CivilDate {
    var year: Int64
    var month: Int64
    var day: Int64

    init(year: Int64, month: Int64, day: Int64) {
        self.year = year
        self.month = month
        self.day = day
    }

    /// Converts a number of days. 400 years have 146 097 days, and 719 468 days lie between 0000-03-01 and 1970-01-01.
    init(daysSince1970: Int64) {
        let days = daysSince1970 + 719_468
        let era = Timestamp.floor(days, by: 146_097)
        let dayOfEra = days - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
        month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    var daysSince1970: Int64 {
        let marchYear = month <= 2 ? year - 1 : year
        let era = Timestamp.floor(marchYear, by: 400)
        let yearOfEra = marchYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
