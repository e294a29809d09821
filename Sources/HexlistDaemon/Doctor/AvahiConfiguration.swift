import HexlistSystem

/// The keys of avahi-daemon.conf(5) that prevent or restrict announcements.
struct AvahiConfiguration {
    static let path = "/etc/avahi/avahi-daemon.conf"

    /// The keys of the section `publish` that prevent announcements if their value is true.
    private static let switches = ["disable-user-service-publishing", "disable-publishing"]
    /// The keys of the section `server` that restrict the used interfaces if they have a value.
    private static let limits = ["allow-interfaces", "deny-interfaces"]

    /// The keys from `switches` and `limits` that are set so that they prevent or restrict announcements, as `key=value`.
    let found: [String]

    init(text: String) {
        var section = ""
        var found: [String] = []
        for line in text.split(whereSeparator: \.isNewline).map({ $0.drop(while: \.isWhitespace) }) {
            if line.first == "[", let end = line.firstIndex(of: "]") {
                section = String(line[line.index(after: line.startIndex)..<end])
                continue
            }
            guard line.first != "#", line.first != ";", let equals = line.firstIndex(of: "=") else { continue }
            let key = String(line[..<equals].filter { !$0.isWhitespace })
            let value = line[line.index(after: equals)...].drop(while: \.isWhitespace)
            // avahi-daemon checks only the first letter of a boolean value.
            let isOn = value.first.map { "yYtT1".contains($0) } ?? false
            let isSwitch = section == "publish" && Self.switches.contains(key)
            let isLimit = section == "server" && Self.limits.contains(key)
            if isSwitch && isOn || isLimit && !value.isEmpty { found.append("\(key)=\(value)") }
        }
        self.found = found
    }

    /// Returns advice for a service that is not announced: the keys to check, and those that are set in the default configuration file.
    /// avahi-daemon may use another file.
    /// - Parameter text: the text of the default configuration file; `nil` if it cannot be read.
    static func advice(_ text: String? = try? SmallFile.read(path, limit: 64 << 10)) -> String {
        let found = text.map { AvahiConfiguration(text: $0).found } ?? []
        let list = { (keys: [String]) in keys.map { "`\($0)`" }.joined(separator: ", ") }
        let set = found.isEmpty ? "" : " (\(list(found)) is set there)"
        return "Check \(list(switches + limits)) in \(path)\(set), then `sudo systemctl restart avahi-daemon`."
    }
}
