import Foundation

/// One announced service as avahi-browse, a program that is not ours, sees it.
struct Announcement: Sendable {
    /// `nil` where the line named no family.
    var isIPv6: Bool?
    var name: String
    var host: String
    var address: String
    var port: Int
    var txt: [String: String]

    /// A line of `avahi-browse --resolve --parsable`; `nil` for other lines than those with a resolved service.
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

    /// `\032` is the byte 32, `\.` a dot.
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

    /// Browses from a host until so many different announcements (name, family) satisfied `isWanted`: those.
    static func `await`(
        _ count: Int, on host: String, of lab: Lab, where isWanted: (Announcement) -> Bool
    ) async throws -> [Announcement] {
        let browser = try lab.running(["exec", host, "avahi-browse", "--resolve", "--parsable", "_hexlist._tcp"])
        var found: [String: Announcement] = [:]
        let all = try await browser.first { line -> [Announcement]? in
            guard let announcement = Announcement(line: line), isWanted(announcement) else { return nil }
            found["\(announcement.name) \(announcement.isIPv6.map(String.init) ?? "-")"] = announcement
            return found.count >= count ? Array(found.values) : nil
        }
        await browser.stop()
        return all
    }
}
