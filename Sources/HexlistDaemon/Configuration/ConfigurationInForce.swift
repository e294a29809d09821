import HexlistAPI
import HexlistModel
import Synchronization

/// The configuration in force, for queries: the settings read last, which of them wait for a restart, and why the last reading changed
/// nothing.
final class ConfigurationInForce: Sendable {
    private struct State {
        /// The settings that were read last without a mistake.
        var settings: Settings
        var fault: HexlistError?
    }

    let path: String
    /// The settings with which the daemon started, which hold for keys that are read only at the start.
    private let started: Settings
    private let state: Mutex<State>

    init(path: String, _ started: Settings) {
        self.path = path
        self.started = started
        state = Mutex(State(settings: started))
    }

    /// Takes settings that were read without a mistake, which ends an earlier fault.
    /// - Returns: the keys that wait for a restart.
    func took(_ settings: Settings) -> [String] {
        state.withLock { $0 = State(settings: settings) }
        return started.needingRestart(comparedWith: settings)
    }

    /// Takes the reason why a reading changed nothing.
    func refused(_ fault: HexlistError) { state.withLock { $0.fault = fault } }

    var fault: HexlistError? { state.withLock { $0.fault } }

    /// The values of all keys, in the order of the table.
    /// - Parameter port: the port that is listened on.
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
