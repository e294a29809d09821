import HexlistAPI
import HexlistJSON
import HexlistModel
public import Logging

#if canImport(Glibc)
    import Glibc
#endif

/// Logs to standard error, one line per record, as text for people or as JSON for machines.
///
/// Messages are constant strings; variable values are in the metadata. Control characters in values are replaced, because peers can choose
/// some of the values.
public struct StderrLogHandler: LogHandler {
    public var logLevel: Logger.Level
    public var metadata: Logger.Metadata = [:]
    private let label: String
    private let format: Settings.Log.Format
    private let write: @Sendable ([UInt8]) -> Void
    private let now: @Sendable () -> Timestamp

    public init(label: String, settings: Settings.Log) {
        self.init(label: label, settings: settings, write: Self.toStandardError, now: { Timestamp.now })
    }

    init(
        label: String, settings: Settings.Log, write: @escaping @Sendable ([UInt8]) -> Void, now: @escaping @Sendable () -> Timestamp
    ) {
        self.label = label
        logLevel = settings.level
        format = settings.format
        self.write = write
        self.now = now
    }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    public func log(event: LogEvent) {
        var values = metadata
        if let more = event.metadata { values.merge(more) { $1 } }
        let sorted = values.sorted { $0.key < $1.key }.map { (Self.shown($0.key), Self.shown($0.value.description)) }
        let message = Self.shown(event.message.description)
        switch format {
        case .text: write(text(event.level, message, sorted))
        case .json: write(json(event.level, message, sorted))
        }
    }

    private func text(_ level: Logger.Level, _ message: String, _ values: [(String, String)]) -> [UInt8] {
        var line = "\(now()) \(level.rawValue) \(message)"
        for (key, value) in values {
            let isPlain = !value.isEmpty && !value.utf8.contains { $0 == 0x20 || $0 == UInt8(ascii: "\"") }
            line += isPlain ? " \(key)=\(value)" : " \(key)=\(value.jsonText)"
        }
        return Array((line + "\n").utf8)
    }

    private func json(_ level: Logger.Level, _ message: String, _ values: [(String, String)]) -> [UInt8] {
        var json = JSONWriter()
        json.object {
            $0.member("at", now())
            $0.member("level", level.rawValue)
            $0.member("logger", label)
            $0.member("message", message)
            for (key, value) in values { $0.member(key, value) }
        }
        return json.bytes + [UInt8(ascii: "\n")]
    }

    private static func shown(_ text: String) -> String { TerminalText.clean(PeerName.cut(text, bytes: 2_048)) }

    private static let toStandardError: @Sendable ([UInt8]) -> Void = { line in
        // Each line is written with one call, so that lines of several threads do not mix. Errors are ignored.
        _ = line.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
