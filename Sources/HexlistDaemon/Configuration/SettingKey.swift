import HexlistDNS
import HexlistModel
import HexlistNode
import HexlistTransport
import Logging

/// One key of the configuration: its name, its allowed values, and the setting it changes.
struct SettingKey: Sendable {
    /// The name, such as `limits.frameBytes`.
    let name: String
    /// Whether a new value takes effect on SIGHUP; otherwise it takes effect after a restart.
    let isLive: Bool
    let isList: Bool
    /// The allowed values, for error messages.
    let allowed: String
    /// Returns the current value as `apply` accepts it: one text, or the elements of a list; empty if there is no value.
    let texts: @Sendable (_ settings: Settings) -> [String]
    /// Sets the key to a value: one text, or the elements of a list.
    /// - Returns: whether the value is allowed. If not, the settings must not be used.
    let apply: @Sendable (_ texts: [String], _ settings: inout Settings) -> Bool

    /// The name of the environment variable, such as `HEXLIST_LIMITS_FRAME_BYTES`.
    var variable: String {
        var text = "HEXLIST_"
        for character in name {
            if character == "." {
                text += "_"
            } else {
                if character.isUppercase { text += "_" }
                text += character.uppercased()
            }
        }
        return text
    }
}

extension SettingKey {
    typealias Path<Value> = any (WritableKeyPath<Settings, Value> & Sendable)

    /// Makes a key whose value is a whole number within bounds.
    static func number(_ name: String, _ range: ClosedRange<Int>, _ path: Path<Int>, isLive: Bool = false) -> SettingKey {
        SettingKey(
            name: name, isLive: isLive, isList: false, allowed: "a whole number from \(range.lowerBound) to \(range.upperBound)",
            texts: { ["\($0[keyPath: path])"] }
        ) {
            guard let number = integer($0), range.contains(number) else { return false }
            $1[keyPath: path] = number
            return true
        }
    }

    /// Makes a key whose value is one case of an enum.
    static func choice<Choice: RawRepresentable & CaseIterable & Sendable>(
        _ name: String, _ path: Path<Choice>, isLive: Bool = false
    ) -> SettingKey where Choice.RawValue == String {
        let words = Choice.allCases.map { "`\($0.rawValue)`" }.joined(separator: ", ")
        return SettingKey(
            name: name, isLive: isLive, isList: false, allowed: "one of \(words)", texts: { [$0[keyPath: path].rawValue] }
        ) {
            guard let text = $0.first, let choice = Choice(rawValue: text) else { return false }
            $1[keyPath: path] = choice
            return true
        }
    }

    /// Parses a number that consists of digits. `Int` would also accept a sign.
    static func integer(_ texts: [String]) -> Int? {
        guard let text = texts.first, !text.isEmpty, text.utf8.allSatisfy(ASCII.isDigit) else { return nil }
        return Int(text)
    }
}

extension SettingKey {
    /// All keys (Docs/Reference.md, "Configuration").
    static let all: [SettingKey] = general + limits + sending

    static func named(_ name: String) -> SettingKey? { all.first { $0.name == name } }

    private static let general: [SettingKey] = [
        SettingKey(name: "name", isLive: true, isList: false, allowed: "1 to 256 bytes of printable text", texts: { [$0.node.name] }) {
            guard let name = $0.first, !name.isEmpty, name.utf8.count <= 256, TerminalText.clean(name) == name else { return false }
            $1.node.name = name
            return true
        },
        SettingKey(name: "listen", isLive: false, isList: true, allowed: "a list of numeric addresses", texts: { $0.node.listen }) {
            guard $0.allSatisfy(isNumericAddress) else { return false }
            $1.node.listen = $0
            return true
        },
        SettingKey(
            name: "port", isLive: false, isList: false, allowed: "0 (the system chooses) or a port from 1024 to 65535",
            texts: { $0.node.port.map { ["\($0)"] } ?? [] }
        ) {
            guard let port = integer($0), port == 0 || (1_024...65_535).contains(port) else { return false }
            $1.node.port = port
            return true
        },
        SettingKey(
            name: "transport", isLive: false, isList: false, allowed: "`tls` or `tls+plain`",
            texts: { [$0.node.acceptsPlain ? "tls+plain" : "tls"] }
        ) {
            switch $0.first {
            case "tls": $1.node.acceptsPlain = false
            case "tls+plain": $1.node.acceptsPlain = true
            default: return false
            }
            return true
        },
        SettingKey(name: "announce", isLive: true, isList: false, allowed: "`true` or `false`", texts: { ["\($0.node.announce)"] }) {
            guard let text = $0.first, let announce = Bool(text) else { return false }
            $1.node.announce = announce
            return true
        },
        .choice("receiveFrom", \.node.receiveFrom, isLive: true),
        SettingKey(
            name: "peers", isLive: true, isList: true, allowed: "a list of `host` or `host:port`",
            texts: { $0.node.peers.map { HostPort.text($0.host, $0.port) } }
        ) {
            let peers = $0.map(staticPeer)
            $1.node.peers = peers.compactMap { $0 }
            return peers.allSatisfy { $0 != nil }
        },
        SettingKey(
            name: "routes", isLive: true, isList: true, allowed: "a list of `NAME=/folder` or `NAME=mqtts://[USER@]HOST[:PORT][?…]`",
            texts: { $0.node.routes.list.map(\.text) }
        ) {
            let routes = $0.compactMap { RouteConfiguration($0) }
            guard routes.count == $0.count, routes.count <= maximumRoutes, Set(routes.map(\.name)).count == routes.count else {
                return false
            }
            $1.node.routes.list = routes
            return true
        },
        SettingKey(
            name: "localsend.enabled", isLive: false, isList: false, allowed: "`true` or `false`",
            texts: { ["\($0.node.localSend?.isEnabled ?? $0.node.announce)"] }
        ) {
            guard let text = $0.first, let isEnabled = Bool(text) else { return false }
            $1.node.localSend?.isEnabled = isEnabled
            return true
        },
        SettingKey(
            name: "localsend.port", isLive: false, isList: false, allowed: "a port from 1024 to 65535",
            texts: { $0.node.localSend?.port.map { ["\($0)"] } ?? [] }
        ) {
            guard let port = integer($0), (1_024...65_535).contains(port) else { return false }
            $1.node.localSend?.port = port
            return true
        },
        SettingKey(name: "domains", isLive: false, isList: true, allowed: "a list of DNS-SD domains", texts: { $0.domains }) {
            guard !$0.isEmpty, $0.allSatisfy(isDomain) else { return false }
            $1.domains = $0
            return true
        },
        .choice("log.level", \.log.level),
        .choice("log.format", \.log.format),
        .number("discovery.instances", 64...1_000_000, \.node.discovery.instances),
        .number("discovery.resolvers", 1...1_000, \.node.discovery.resolvers),
        .number("api.headerBytes", 1_024...1 << 20, \.api.headerBytes),
        .number("api.headerFields", 8...1_000, \.api.headerFields),
        .number("api.connections", 2...10_000, \.api.connections),
        .number("hooks.timeoutSeconds", 1...3_600, \.hooks.timeoutSeconds, isLive: true),
        SettingKey(
            name: "open.schemes", isLive: false, isList: true,
            allowed: "a list of URL schemes, without \(LinkTarget.neverOpened.joined(separator: ", "))", texts: { $0.open.schemes }
        ) {
            $1.open.schemes = $0.map { $0.lowercased() }
            return $1.open.schemes.allSatisfy { LinkTarget.isScheme($0) && !LinkTarget.neverOpened.contains($0) }
        },
        SettingKey(name: "titles", isLive: true, isList: false, allowed: "`on` or `off`", texts: { [$0.readsTitles ? "on" : "off"] }) {
            guard let text = $0.first, ["on", "off"].contains(text) else { return false }
            $1.readsTitles = text == "on"
            return true
        },
        SettingKey(
            name: "services.rclone.config", isLive: false, isList: false, allowed: "the absolute path of a file",
            texts: { [$0.services.rcloneConfiguration].compactMap(\.self) }
        ) {
            guard let path = $0.first, path.utf8.first == UInt8(ascii: "/"), path.utf8.count < 4_096, !path.utf8.contains(0) else {
                return false
            }
            $1.services.rcloneConfiguration = path
            return true
        },
        SettingKey(
            name: "services.rclone.passwordCommand", isLive: false, isList: false, allowed: "a command of 1 to 1000 bytes",
            texts: { [$0.services.rclonePasswordCommand].compactMap(\.self) }
        ) {
            guard let command = $0.first, (1...1_000).contains(command.utf8.count), !command.utf8.contains(where: { $0 < 0x20 }) else {
                return false
            }
            $1.services.rclonePasswordCommand = command
            return true
        },
    ]

    private static let limits: [SettingKey] = [
        .number(
            "limits.frameBytes", ProtocolLimits.trustedFrameBytes...ProtocolLimits.largestFrameBytes, \.node.limits.frameBytes, isLive: true
        ),
        .number(
            "limits.strangerFrameBytes", ProtocolLimits.firstFrameBytes...ProtocolLimits.largestFrameBytes,
            \.node.limits.strangerFrameBytes,
            isLive: true),
        .number("limits.connections", 4...100_000, \.node.limits.connections, isLive: true),
        .number("limits.connectionsPerAddress", 1...100_000, \.node.limits.connectionsPerAddress, isLive: true),
        .number("limits.connectionsUnidentified", 1...100_000, \.node.limits.connectionsUnidentified, isLive: true),
        .number("limits.connectionsReserved", 0...100_000, \.node.limits.connectionsReserved, isLive: true),
        .number("limits.handshakeSeconds", 1...60, \.node.limits.handshakeSeconds, isLive: true),
        .number("limits.handshakesPerSecond", 1...100_000, \.node.limits.handshakesPerSecond, isLive: true),
        .number("limits.strangerFramesPerSecond", 1...100_000, \.node.limits.strangerFramesPerSecond, isLive: true),
        .number("limits.allStrangersFramesPerSecond", 1...1_000_000, \.node.limits.allStrangersFramesPerSecond, isLive: true),
        .number("limits.strangerSessions", 1...100_000, \.node.limits.strangerSessions, isLive: true),
        .number("limits.heldHexesPerPeer", 0...1_000_000, \.node.limits.heldHexesPerPeer, isLive: true),
        .number("limits.heldBytesPerPeer", 0...1 << 40, \.node.limits.heldBytesPerPeer, isLive: true),
        .number("limits.heldHexes", 0...10_000_000, \.node.limits.heldHexes, isLive: true),
        .number("limits.heldBytes", 0...1 << 40, \.node.limits.heldBytes, isLive: true),
        .number("limits.heldDays", 1...3_650, \.node.limits.heldDays, isLive: true),
        SettingKey(
            name: "limits.inboxHexes", isLive: true, isList: false, allowed: "a whole number from 1 up, or `none`",
            texts: { [$0.node.limits.inboxHexes.map { "\($0)" } ?? "none"] }
        ) {
            if $0.first == "none" {
                $1.node.limits.inboxHexes = nil
                return true
            }
            guard let number = integer($0), number > 0 else { return false }
            $1.node.limits.inboxHexes = number
            return true
        },
        .number("limits.diskReserveBytes", 0...1 << 50, \.node.limits.diskReserveBytes, isLive: true),
    ]

    private static let sending: [SettingKey] = [
        .number("send.concurrentTransfers", 1...1_000, \.node.send.concurrentTransfers),
        .number("send.windowFrames", 1...65_536, \.node.send.windowFrames),
        .number("send.windowBytes", 64 << 10...1 << 30, \.node.send.windowBytes),
        .number("outbox.expireDays", 1...3_650, \.node.outbox.expireDays),
        .number("outbox.rows", 1...1_000_000_000, \.node.outbox.rows),
        .number("outbox.bytes", 1 << 20...1 << 50, \.node.outbox.bytes),
        .number("files.cacheBytes", 1 << 20...1 << 50, \.node.files.cacheBytes, isLive: true),
        .number("files.cacheDays", 1...3_650, \.node.files.cacheDays, isLive: true),
        .number("files.copyBelow", 0...1 << 40, \.node.files.copyBelow, isLive: true),
        SettingKey(
            name: "files.downloads", isLive: true, isList: false, allowed: "the absolute path of a folder",
            texts: { [$0.node.files.downloads].compactMap(\.self) }
        ) {
            guard let path = $0.first, path.utf8.first == UInt8(ascii: "/"), path.utf8.count < 4_096, !path.utf8.contains(0) else {
                return false
            }
            $1.node.files.downloads = path
            return true
        },
    ]
}

extension SettingKey {
    private static let maximumRoutes = 16

    /// Parses an entry of `peers`: `host`, `host:port`, `[address]:port`, or an IPv6 address without a port. A port is from 1 to 65535.
    static func staticPeer(_ text: String) -> StaticPeer? {
        if isNumericAddress(text) { return StaticPeer(host: text) }
        var host = text[...]
        var port = ProtocolLimits.defaultPort
        if let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") {
            guard let number = integer([String(text[text.index(after: colon)...])]), (1...65_535).contains(number) else { return nil }
            host = text[..<colon]
            port = number
        }
        if host.hasPrefix("["), host.hasSuffix("]") {
            let address = String(host.dropFirst().dropLast())
            return isNumericAddress(address) ? StaticPeer(host: address, port: port) : nil
        }
        let isName = isHostName(host) && DialTarget(host: String(host), port: 0).isName
        return isName || isNumericAddress(String(host)) ? StaticPeer(host: String(host), port: port) : nil
    }

    /// Whether the text is an IPv4 address, or an IPv6 address with or without a scope (`fe80::1%eth0`).
    static func isNumericAddress(_ text: String) -> Bool { IPAddress.withZone(text) != nil }

    private static func isHostName(_ text: Substring) -> Bool {
        !text.isEmpty && text.utf8.count <= 253
            && text.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "-._".utf8.contains($0) || $0 >= 0x80 }
    }

    private static func isDomain(_ text: String) -> Bool { isHostName(text[...]) && DNSName(text) != nil }
}
