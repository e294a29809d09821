public import HexlistNode
import HexlistRclone
public import Logging

/// The settings of a daemon, combined from the command line, the environment, the file and the defaults. `SettingKey.all` has the keys.
public struct Settings: Sendable {
    public var node: NodeConfiguration
    /// The DNS-SD domains to browse. `local` stands for multicast DNS on the local links, with which this machine is also announced. Other
    /// domains are browsed by unicast DNS.
    public var domains = ["local"]
    public var log = Log()
    public var api = API()
    public var hooks = Hooks()
    public var open = Open()
    public var services = Services()
    /// Whether the daemon reads the title of the page for each link that is added to My Hexlist without a description.
    public var readsTitles = true
    /// The values that the user gave, by the name of the key. A key that is missing in this dictionary has its default value.
    var given: [String: ProvidedValue] = [:]

    struct ProvidedValue: Sendable, Equatable {
        var texts: [String]
        var source: Source
    }

    /// The source of a value, with the line number if it is the file.
    enum Source: Sendable, Equatable {
        case file(line: Int?), environment, commandLine
    }

    /// - Parameter name: the name of this machine that peers see if `name` is not configured.
    public init(name: String) {
        node = NodeConfiguration(name: name)
        node.localSend = NodeConfiguration.LocalSend()
    }

    public struct Log: Sendable, Equatable {
        public var level = Logger.Level.info
        public var format = Format.text

        public enum Format: String, Sendable, CaseIterable {
            case text, json
        }
    }

    /// Whether a domain is `local`, the domain of multicast DNS (RFC 6762), with or without the final dot.
    static func isLocal(domain: String) -> Bool { ["local", "local."].contains(domain.lowercased()) }

    /// The limits of the local API.
    public struct API: Sendable, Equatable {
        public var headerBytes = 16 << 10
        public var headerFields = 64
        public var connections = 64
    }

    public struct Hooks: Sendable, Equatable {
        /// Maximum seconds of a run of a hook.
        public var timeoutSeconds = 30
    }

    /// The settings for opening links.
    public struct Open: Sendable, Equatable {
        /// Schemes of links that may be opened, in lower case.
        public var schemes = ["http", "https"]
    }

    /// Settings of rclone (`services.…`).
    public struct Services: Sendable, Equatable {
        /// The path of rclone's configuration file; `nil` for rclone's default.
        public var rcloneConfiguration: String?
        /// The command that prints the password of rclone's configuration; `nil` if that is not encrypted.
        public var rclonePasswordCommand: String?

        func rclone(_ environment: [String: String]) -> RcloneSettings {
            RcloneSettings(configuration: rcloneConfiguration, passwordCommand: rclonePasswordCommand, environment: environment)
        }
    }

    /// Returns the names of keys that differ and take effect after a restart only, in the order of `SettingKey.all`.
    func needingRestart(comparedWith other: Settings) -> [String] {
        SettingKey.all.filter { !$0.isLive && given[$0.name]?.texts != other.given[$0.name]?.texts }.map(\.name)
    }
}
