public import HexlistJSON

/// The reply to `GET /v1/config`: the configuration in force.
public struct ConfigurationJSON: JSONShape, Sendable, Equatable {
    /// The path of the configuration file; the file need not exist.
    public var file: String
    /// The reason why the file as it is now does not count; the daemon goes on with what it read before.
    public var fault: String?
    /// The advice about `fault`.
    public var hint: String?
    /// Every key there is.
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

    /// `limits.frameBytes`
    public var key: String
    /// The value as its variable takes it: a list is separated by commas.
    public var value: String
    public var source: Source
    /// The line of the file, from 1; `nil` where the value is not from there.
    public var line: Int?
    /// The environment variable that sets it.
    public var variable: String
    /// The value after a restart; `nil` where a restart changes nothing.
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
