public import HexlistJSON

/// What `GET /v1/config` gives: the configuration that counts now.
public struct ConfigurationShape: JSONShape, Sendable, Equatable {
    /// Its path; the file need not be there.
    public var file: String
    /// Why what the file says now does not count: the daemon goes on with what it read before.
    public var fault: String?
    /// What to do about that.
    public var hint: String?
    /// Every key there is.
    public var items: [SettingShape]

    public init(file: String, fault: String? = nil, hint: String? = nil, items: [SettingShape]) {
        self.file = file
        self.fault = fault
        self.hint = hint
        self.items = items
    }
}

/// One key of the configuration.
public struct SettingShape: JSONShape, Sendable, Equatable {
    public enum Source: String, JSONWord, Sendable {
        case `default`, file, environment, commandLine
    }

    /// `limits.frameBytes`
    public var key: String
    /// As its variable takes it: a list is separated by commas.
    public var value: String
    public var source: Source
    /// Of the file, from 1 up; `nil` where the value is not from there.
    public var line: Int?
    /// The environment variable that sets it.
    public var variable: String
    /// What a restart will make of it.
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
