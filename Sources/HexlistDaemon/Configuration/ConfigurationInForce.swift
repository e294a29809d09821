import HexlistAPI
import HexlistModel
import Synchronization

/// The configuration that counts now, for who asks: what was read last, what of it waits for a restart, and why the last reading changed
/// nothing.
final class ConfigurationInForce: Sendable {
    private struct State {
        /// As read last without a mistake.
        var settings: Settings
        var fault: HexlistError?
    }

    let path: String
    /// What the daemon started with: keys that are read at the start only are as they are here.
    private let started: Settings
    private let state: Mutex<State>

    init(path: String, _ started: Settings) {
        self.path = path
        self.started = started
        state = Mutex(State(settings: started))
    }

    /// Takes a configuration that was read without a mistake; an earlier fault is over.
    /// - Returns: the keys that wait for a restart.
    func took(_ settings: Settings) -> [String] {
        state.withLock { $0 = State(settings: settings) }
        return started.needingRestart(comparedWith: settings)
    }

    /// Takes why a reading changed nothing.
    func refused(_ fault: HexlistError) { state.withLock { $0.fault = fault } }

    var fault: HexlistError? { state.withLock { $0.fault } }

    /// Every key, in the order of the table.
    /// - Parameter port: the one that is listened on.
    func shape(port: Int) -> ConfigurationShape {
        let (settings, fault) = state.withLock { ($0.settings, $0.fault) }
        let waiting = Set(started.needingRestart(comparedWith: settings))
        return ConfigurationShape(
            file: path, fault: fault?.message, hint: fault?.hint,
            items: SettingKey.all.map { key in
                let counts = key.isLive ? settings : started
                var texts = key.texts(counts)
                if key.name == "port", texts.isEmpty || texts == ["0"] { texts = ["\(port)"] }
                var item = SettingShape(
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
