import Glibc
import HexlistAPI
import HexlistModel

/// Formats times, durations and counts for people.
enum HumanText {
    /// Returns the local date and time to the minute, or to the second.
    static func time(_ moment: Timestamp, seconds: Bool = false) -> String {
        text(moment).map { seconds ? "\($0.date) \($0.clock):\($0.seconds)" : "\($0.date) \($0.clock)" } ?? moment.description
    }

    /// Returns a time for a list: relative on a terminal, in a pipe the local time to the minute.
    static func moment(_ moment: Timestamp, _ terminal: Terminal = .output) -> String {
        terminal.isInteractive ? ago(moment, now: .now) : time(moment)
    }

    /// Returns a time for a detailed view: the local time to the second, on a terminal followed by the relative time.
    static func exact(_ moment: Timestamp, _ terminal: Terminal = .output) -> String {
        let (time, ago) = (time(moment, seconds: true), ago(moment, now: .now))
        // For times more than a week ago, the relative form repeats the date and time, so it is left out.
        return terminal.isInteractive && !time.hasPrefix(ago) ? "\(time) (\(ago))" : time
    }

    /// Returns a relative time: `just now` up to two minutes, then `5 min ago`, `3 h ago`, `2 d ago`. Times more than a week ago or in the
    /// future are shown as local date and time.
    static func ago(_ moment: Timestamp, now: Timestamp) -> String {
        switch (now.milliseconds - moment.milliseconds) / 1_000 {
        case -60..<120: "just now"
        case let seconds where (120..<3_600).contains(seconds): "\(seconds / 60) min ago"
        case let seconds where (3_600..<86_400).contains(seconds): "\(seconds / 3_600) h ago"
        case let seconds where (86_400..<7 * 86_400).contains(seconds): "\(seconds / 86_400) d ago"
        default: time(moment)
        }
    }

    /// Returns the local time of day to the second.
    static func clock(_ moment: Timestamp) -> String { text(moment).map { "\($0.clock):\($0.seconds)" } ?? moment.description }

    private static func text(_ moment: Timestamp) -> (date: String, clock: String, seconds: String)? {
        var whole = time_t(moment.milliseconds / 1_000)
        var parts = tm()
        guard localtime_r(&whole, &parts) != nil else { return nil }
        func pad(_ value: CInt) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let date = "\(Int(parts.tm_year) + 1900)-\(pad(parts.tm_mon + 1))-\(pad(parts.tm_mday))"
        let clock = "\(pad(parts.tm_hour)):\(pad(parts.tm_min))"
        return (date, clock, pad(parts.tm_sec))
    }

    /// Returns a duration in its two largest units: `3 h 5 min`.
    static func span(seconds: Int) -> String {
        switch seconds {
        case ..<60: "\(max(0, seconds)) s"
        case ..<3_600: "\(seconds / 60) min \(seconds % 60) s"
        case ..<86_400: "\(seconds / 3_600) h \(seconds / 60 % 60) min"
        default: "\(seconds / 86_400) d \(seconds / 3_600 % 24) h"
        }
    }

    /// Returns a number with a space between groups of three digits: `2 000`.
    static func grouped(_ number: Int) -> String {
        let digits = Array(String(abs(number)))
        var text = number < 0 ? "-" : ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { text += " " }
            text.append(digit)
        }
        return text
    }

    static func count(_ number: Int, _ singular: String, _ plural: String) -> String {
        "\(number) \(number == 1 ? singular : plural)"
    }

    /// Formats a fingerprint for reading aloud: eight groups of four digits per line, as on the web page. This layout differs from that of
    /// a UUID on purpose. A UUID consists of the first digits of a fingerprint, and an attacker can create a key whose first 8 digits equal
    /// those of another peer.
    static func fingerprint(_ digits: String) -> [String] {
        let digits = Array(TerminalText.clean(digits.uppercased(), columns: 64))
        return stride(from: 0, to: digits.count, by: 32).map { start in
            let line = digits[start..<min(start + 32, digits.count)]
            return stride(from: line.startIndex, to: line.endIndex, by: 4).map { String(line[$0..<min($0 + 4, line.endIndex)]) }
                .joined(separator: " ")
        }
    }
}
