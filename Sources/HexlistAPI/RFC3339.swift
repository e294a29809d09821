import HexlistModel

extension Timestamp {
    /// Parses an RFC 3339 time with an offset from UTC, such as `2026-11-23T00:00:37.5+01:00`. Fraction digits after milliseconds are
    /// ignored.
    public init?(rfc3339 text: String) {
        let bytes = Array(text.utf8)
        guard (20...40).contains(bytes.count) else { return nil }
        var rest = bytes[19...]
        var fraction: [UInt8] = []
        if rest.first == UInt8(ascii: ".") {
            fraction = Array(rest.dropFirst().prefix { ASCII.isDigit($0) })
            rest = rest.dropFirst(1 + fraction.count)
        }
        let milliseconds = (fraction + Array("000".utf8)).prefix(3)
        let whole = String(decoding: bytes[..<19] + [UInt8(ascii: ".")] + milliseconds + [UInt8(ascii: "Z")], as: UTF8.self)
        guard let local = Timestamp(whole) else { return nil }
        let zone = Array(rest)
        if zone == [UInt8(ascii: "Z")] {
            self = local
            return
        }
        guard zone.count == 6, zone[3] == UInt8(ascii: ":"), [UInt8(ascii: "+"), UInt8(ascii: "-")].contains(zone[0]),
            let hours = Int64(String(decoding: zone[1...2], as: UTF8.self)),
            let minutes = Int64(String(decoding: zone[4...5], as: UTF8.self)),
            (0...23).contains(hours), (0...59).contains(minutes)
        else { return nil }
        let offset = (hours * 60 + minutes) * 60_000
        self.init(milliseconds: local.milliseconds - (zone[0] == UInt8(ascii: "+") ? offset : -offset))
    }
}
