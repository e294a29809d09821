#if canImport(Glibc)
    import Glibc
#endif
import HexlistModel
import HexlistSystem

enum MachineName {
    /// Returns the name of this machine for people: `PRETTY_HOSTNAME` of /etc/machine-info, or the host name up to its first dot.
    static func pretty() -> String {
        let info = try? SmallFile.read("/etc/machine-info", limit: 16 << 10)
        if let name = info.flatMap(pretty(in:)), !name.isEmpty { return name }
        let short = TerminalText.clean(host())
        return short.isEmpty ? "hexlist" : short
    }

    /// Returns the host name up to its first dot, which is also the name in mDNS; empty if the host name cannot be read.
    static func host() -> String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard gethostname(&buffer, buffer.count - 1) == 0 else { return "" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }.prefix { $0 != UInt8(ascii: ".") }, as: UTF8.self)
    }

    /// Returns the value of `PRETTY_HOSTNAME` in the text of /etc/machine-info, without quotes (os-release(5)); `nil` if it is missing.
    static func pretty(in text: String) -> String? {
        for line in text.split(separator: "\n") where line.hasPrefix("PRETTY_HOSTNAME=") {
            var value = line.dropFirst("PRETTY_HOSTNAME=".count)
            if let quote = value.first, quote == "\"" || quote == "'", value.count >= 2, value.last == quote {
                value = value.dropFirst().dropLast()
            }
            return TerminalText.clean(PeerName.cut(String(value), bytes: 256))
        }
        return nil
    }
}
