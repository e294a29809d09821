public import HexlistNode
import HexlistRclone
public import Logging

/// The settings of a daemon, from the command line, the environment, the file and the defaults. `SettingKey.all` has the keys.
public struct Settings: Sendable {
    public var node: NodeConfiguration
    /// The DNS-SD domains to browse. `local` means multicast DNS on the local links, which also announces this machine; other domains are
    /// browsed by unicast DNS.
    public var domains = ["local"]
    public var log = Log()
    public var api = API()
    public var hooks = Hooks()
    public var open = Open()
    public var services = Services()
    /// Whether the titles of pages are read for links that are added to My Hexlist without a description.
    public var readsTitles = true
    /// The values given by the user, by key. A key that has its default value is missing.
    var given: [String: ProvidedValue] = [:]

    struct ProvidedValue: Sendable, Equatable {
        var texts: [String]
        var source: Source
    }

    /// The origin of a value, with the line number if it is the file.
    enum Source: Sendable, Equatable {
        case file(line: Int?), environment, commandLine
    }

    /// - Parameter name: the display name if none is configured.
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

    /// The local API.
    public struct API: Sendable, Equatable {
        public var headerBytes = 16 << 10
        public var headerFields = 64
        public var connections = 64
    }

    public struct Hooks: Sendable, Equatable {
        /// Maximum seconds of a run.
        public var timeoutSeconds = 30
    }

    /// The settings for opening links.
    public struct Open: Sendable, Equatable {
        /// Schemes of links that may be opened, in lower case.
        public var schemes = ["http", "https"]
    }

    /// Settings of rclone (`services.…`).
    public struct Services: Sendable, Equatable {
        /// The path of rclone's configuration; `nil` for rclone's own choice.
        public var rcloneConfiguration: String?
        /// The command that prints the password of an encrypted configuration.
        public var rclonePasswordCommand: String?

        func rclone(_ environment: [String: String]) -> RcloneSettings {
            RcloneSettings(configuration: rcloneConfiguration, passwordCommand: rclonePasswordCommand, environment: environment)
        }
    }

    /// Returns the keys that differ and need a restart, in the order of `SettingKey.all`.
    func needingRestart(comparedWith other: Settings) -> [String] {
        SettingKey.all.filter { !$0.isLive && given[$0.name]?.texts != other.given[$0.name]?.texts }.map(\.name)
    }
}
