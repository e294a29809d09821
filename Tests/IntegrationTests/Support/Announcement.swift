import Foundation

/// An announced service as seen by avahi-browse, an independent program.
struct Announcement: Sendable {
    /// Whether the record is of IPv6; `nil` if the line has no IP version.
    var isIPv6: Bool?
    var name: String
    var host: String
    var address: String
    var port: Int
    var txt: [String: String]

    /// Parses a line of `avahi-browse --resolve --parsable`; `nil` for lines other than a resolved service.
    init?(line: String) {
        // =;eth0;IPv4;name;_hexlist._tcp;local;host.local;address;port;"key=value" "key=value"
        let fields = line.split(separator: ";", maxSplits: 9, omittingEmptySubsequences: false).map(String.init)
        guard fields.count == 10, fields[0] == "=", let port = Int(fields[8]) else { return nil }
        isIPv6 = ["IPv4": false, "IPv6": true][fields[2]]
        name = Self.unescape(fields[3])
        host = fields[6]
        address = fields[7]
        self.port = port
        txt = [:]
        for item in fields[9].split(separator: "\"") where item.contains("=") {
            let pair = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            txt[String(pair[0])] = pair.count == 2 ? String(pair[1]) : ""
        }
    }

    /// Decodes `\032` as byte 32 and `\.` as a dot.
    private static func unescape(_ text: String) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                continue
            }
            if let code = UInt8(String(decoding: rest.prefix(3), as: UTF8.self)), rest.count >= 3 {
                bytes.append(code)
                rest = rest.dropFirst(3)
            } else if let escaped = rest.popFirst() {
                bytes.append(escaped)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Browses from a host until the given number of different announcements (name, IP version) satisfy `isWanted`, and returns them.
    @discardableResult
    static func `await`(
        _ count: Int, on host: String, of lab: Lab, where isWanted: (Announcement) -> Bool
    ) async throws -> [Announcement] {
        try await look(on: host, of: lab) { $0.filter(isWanted).count >= count }.filter(isWanted)
    }

    /// Browses from a host repeatedly until one listing has the expected announcements (one for each name and IP version), and returns
    /// them.
    ///
    /// avahi-browse resolves each service once and exits when its avahi-daemon does. A resolution that failed, or changed later, is only
    /// seen by another run.
    @discardableResult
    static func look(
        on host: String, of lab: Lab, until areWanted: ([Announcement]) -> Bool
    ) async throws -> [Announcement] {
        var said: [String] = []
        var found: [String: Announcement] = [:]
        try await Patience.until(or: "avahi-browse on \(host) said at last:\n\(said.joined(separator: "\n"))") {
            let browser = try lab.running(["exec", host, "avahi-browse", "--resolve", "--parsable", "_hexlist._tcp"], seconds: lookSeconds)
            (said, found) = ([], [:])
            let isDone = try await browser.firstIfAny { line -> Bool? in
                said.append(line)
                guard let announcement = Announcement(line: line) else { return nil }
                found["\(announcement.name) \(announcement.isIPv6.map(String.init) ?? "-")"] = announcement
                return areWanted(Array(found.values)) ? true : nil
            }
            await browser.stop()
            return isDone == true
        }
        return Array(found.values)
    }

    /// avahi-daemon gives up resolving after 5 s.
    private static let lookSeconds = 20
}
