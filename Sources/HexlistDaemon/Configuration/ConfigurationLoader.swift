public import HexlistModel
import HexlistSystem

/// Combines the sources of the configuration. In order of precedence these are the command line, the environment, the file and the
/// defaults.
public struct ConfigurationLoader: Sendable {
    /// The settings given on the command line, by the name of the key.
    public var commandLine: [String: String]
    public var environment: [String: String]
    public var path: String
    /// Whether the user named the file. A named file must exist.
    public var isNamed: Bool
    /// The name of this machine that peers see if `name` is not configured.
    public var machineName: String
    /// The download folder if `files.downloads` is not configured; `nil` for none.
    public var downloadFolder: String?

    public init(
        commandLine: [String: String], environment: [String: String], path: String, isNamed: Bool, machineName: String,
        downloadFolder: String? = nil
    ) {
        self.commandLine = commandLine
        self.environment = environment
        self.path = path
        self.isNamed = isNamed
        self.machineName = machineName
        self.downloadFolder = downloadFolder
    }

    /// The environment variables `HEXLIST_…` that do not belong to a configuration key.
    static let pathVariables = ["HEXLIST_STATE_DIR", "HEXLIST_CONFIG", "HEXLIST_SOCKET"]

    /// Reads the file, and combines it with the other sources. Called at the start and on SIGHUP.
    /// - Throws: `HexlistError` `configuration`; for a value that is not allowed, with the key, the value and the allowed values.
    public func load() throws(HexlistError) -> Settings {
        try settings(file: ConfigurationFile(path: path, text: text()))
    }

    /// Reads the text of the file; empty if the user did not name the file and it does not exist.
    private func text() throws(HexlistError) -> String {
        do {
            return try SmallFile.read(path, limit: ConfigurationFile.maximumBytes)
        } catch {
            let (message, hint): (String, String)
            switch error {
            case .missing(_) where !isNamed: return ""
            case .missing(let why), .closed(let why):
                (message, hint) = ("\(path) cannot be read (\(why)).", "Make it readable, or name another file with --config.")
            case .unreadable(let why): (message, hint) = ("\(path) cannot be read (\(why)).", "Name another file with --config.")
            case .noText:
                message = "\(path) is not a configuration: it is longer than \(ConfigurationFile.maximumBytes) bytes, or not UTF-8 text."
                hint = "Name another file with --config."
            }
            throw HexlistError(.configuration, message, hint: hint)
        }
    }

    /// Finds misspelt environment variables.
    /// - Returns: unknown `HEXLIST_…` variables, each with the nearest known one.
    public func unknownVariables() -> [(name: String, nearest: String?)] {
        let known = SettingKey.all.map(\.variable) + Self.pathVariables
        return environment.keys.filter { $0.hasPrefix("HEXLIST_") && !known.contains($0) }.sorted().map { name in
            (name, NearestName.likely(name, among: known))
        }
    }

    func settings(file: ConfigurationFile) throws(HexlistError) -> Settings {
        var settings = Settings(name: machineName)
        settings.node.files.downloads = downloadFolder
        for entry in file.entries {
            guard let key = SettingKey.named(entry.name) else { throw Self.unknown(entry.name, file.location(entry.line)) }
            guard entry.isList == key.isList else {
                throw Self.notAllowed(key, entry.isList ? "a list" : "`\(entry.texts.joined())`", file.location(entry.line))
            }
            try Self.apply(key, entry.texts, from: .file(line: entry.line), file.location(entry.line), to: &settings)
        }
        for key in SettingKey.all {
            if let text = environment[key.variable], !text.isEmpty {
                try Self.apply(key, Self.texts(text, of: key), from: .environment, key.variable, to: &settings)
            }
            if let text = commandLine[key.name] {
                try Self.apply(key, Self.texts(text, of: key), from: .commandLine, "the command line", to: &settings)
            }
        }
        try Self.check(settings)
        return settings
    }

    /// Sets a key to a value from one of the sources.
    /// - Parameter location: the text for the source in error messages, such as `config.yaml, line 3`.
    private static func apply(
        _ key: SettingKey, _ texts: [String], from source: Settings.Source, _ location: String, to settings: inout Settings
    ) throws(HexlistError) {
        guard key.apply(texts, &settings) else {
            throw notAllowed(key, "`\(texts.joined(separator: ", "))`", location)
        }
        settings.given[key.name] = Settings.ProvidedValue(texts: texts, source: source)
    }

    /// Checks that the values of related keys are consistent.
    private static func check(_ settings: Settings) throws(HexlistError) {
        let limits = settings.node.limits
        guard limits.strangerFrameBytes <= limits.frameBytes else {
            throw HexlistError(
                .configuration,
                "`limits.strangerFrameBytes` (\(limits.strangerFrameBytes)) is more than `limits.frameBytes` (\(limits.frameBytes)).",
                hint: "A stranger cannot be allowed more than a trusted peer.")
        }
        guard limits.connectionsReserved < limits.connections else {
            throw HexlistError(
                .configuration,
                "`limits.connectionsReserved` (\(limits.connectionsReserved)) uses up `limits.connections`"
                    + " (\(limits.connections)).", hint: "Reserve fewer.")
        }
    }

    /// Returns the elements of a value: the parts between commas if the key is a list, otherwise the whole text.
    private static func texts(_ text: String, of key: SettingKey) -> [String] {
        guard key.isList else { return [text] }
        return text.split(separator: ",").map { part in
            String(part.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
        }
    }

    private static func unknown(_ name: String, _ location: String) -> HexlistError {
        let nearest = NearestName.likely(name, among: SettingKey.all.map(\.name))
        return HexlistError(
            .configuration, "\(location): there is no key `\(TerminalText.clean(name, columns: 80))`.",
            hint: nearest.map { "Did you mean `\($0)`?" } ?? "`hexlist config` lists the keys of a running daemon, Docs/Reference.md all.")
    }

    private static func notAllowed(_ key: SettingKey, _ value: String, _ location: String) -> HexlistError {
        HexlistError(
            .configuration, "\(location): `\(key.name)` cannot be \(TerminalText.clean(value, columns: 80)).",
            hint: "It takes \(key.allowed).")
    }
}
