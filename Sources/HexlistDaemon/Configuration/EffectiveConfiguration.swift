import HexlistAPI
import HexlistModel
import Synchronization

/// The configuration in effect: the settings with which the daemon started, the settings of the last reload, and the error if a later
/// reload failed.
final class EffectiveConfiguration: Sendable {
    private struct State {
        /// The settings that were read last without an error.
        var settings: Settings
        var fault: HexlistError?
    }

    let path: String
    /// The settings with which the daemon started. Keys that need a restart keep these values.
    private let started: Settings
    private let state: Mutex<State>

    init(path: String, _ started: Settings) {
        self.path = path
        self.started = started
        state = Mutex(State(settings: started))
    }

    /// Records settings that were read successfully, and clears an earlier error.
    /// - Returns: the names of changed keys that take effect after a restart only.
    func took(_ settings: Settings) -> [String] {
        state.withLock { $0 = State(settings: settings) }
        return started.needingRestart(comparedWith: settings)
    }

    /// Records the error of a failed reload.
    func refused(_ fault: HexlistError) { state.withLock { $0.fault = fault } }

    /// Whether titles of pages are read (`titles`).
    var readsTitles: Bool { state.withLock { $0.settings.readsTitles } }

    var fault: HexlistError? { state.withLock { $0.fault } }

    /// The folder into which the page saves files; empty if there is none.
    var downloadFolder: String { state.withLock { $0.settings.node.files.downloads ?? "" } }

    /// Returns the values of all keys for the API, in the order of `SettingKey.all`.
    /// - Parameter port: the port on which the daemon listens. It is the value of `port` if the system chose it.
    func shape(port: Int) -> ConfigurationJSON {
        let (settings, fault) = state.withLock { ($0.settings, $0.fault) }
        let waiting = Set(started.needingRestart(comparedWith: settings))
        return ConfigurationJSON(
            file: path, fault: fault?.message, hint: fault?.hint,
            items: SettingKey.all.map { key in
                let counts = key.isLive ? settings : started
                var texts = key.texts(counts)
                if key.name == "port", texts.isEmpty || texts == ["0"] { texts = ["\(port)"] }
                var item = SettingJSON(
                    key: key.name, value: texts.joined(separator: ","), source: .default, variable: key.variable,
                    waiting: waiting.contains(key.name) ? key.texts(settings).joined(separator: ",") : nil)
                switch counts.given[key.name]?.source {
                case .file(let line)?: (item.source, item.line) = (.file, line)
                case .environment?: item.source = .environment
                case .commandLine?: item.source = .commandLine
                case nil: break
                }
                return item
            })
    }
}
