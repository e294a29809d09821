public import HexlistJSON

/// The reply to `GET /v1/config`: the configuration in effect.
public struct ConfigurationJSON: JSONShape, Sendable, Equatable {
    /// The path of the configuration file; the file need not exist.
    public var file: String
    /// The error in the configuration file, because of which the daemon keeps using the previous configuration; `nil` if the file is valid.
    public var fault: String?
    /// Advice on how to correct `fault`; `nil` if there is no error or no advice.
    public var hint: String?
    /// All keys of the configuration, with their values.
    public var items: [SettingJSON]

    public init(file: String, fault: String? = nil, hint: String? = nil, items: [SettingJSON]) {
        self.file = file
        self.fault = fault
        self.hint = hint
        self.items = items
    }
}

/// One key of the configuration.
public struct SettingJSON: JSONShape, Sendable, Equatable {
    public enum Source: String, JSONWord, Sendable {
        case `default`, file, environment, commandLine
    }

    /// The name of the key, such as `limits.frameBytes`.
    public var key: String
    /// The value in effect, in the format of the environment variable: lists are separated by commas.
    public var value: String
    public var source: Source
    /// The number of the line in the file that sets the key, from 1; `nil` if the value has another source.
    public var line: Int?
    /// The environment variable for the key.
    public var variable: String
    /// The value that takes effect at the next restart; `nil` if it equals `value`.
    public var waiting: String?

    public init(key: String, value: String, source: Source, line: Int? = nil, variable: String, waiting: String? = nil) {
        self.key = key
        self.value = value
        self.source = source
        self.line = line
        self.variable = variable
        self.waiting = waiting
    }
}
