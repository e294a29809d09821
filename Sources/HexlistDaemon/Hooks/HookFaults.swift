import HexlistAPI
import Synchronization

/// What is wrong with the hooks now, for `hexlist status` and `hexlist doctor`. A hook is in it until it ran well, or is gone.
final class HookFaults: Sendable {
    private struct State {
        /// Why none is run.
        var folder: String?
        /// Why a file of the folder is not run.
        var barred: [String: String] = [:]
        /// How the last run of a hook failed.
        var failed: [String: (message: String, at: Timestamp)] = [:]
        /// Those that are run.
        var running: [String] = []
    }

    private let state = Mutex(State())

    /// Faults that are told, of a folder with anything in it.
    private static let most = 20

    /// Takes what a reading of the folder found: a hook that is gone is forgotten.
    func folderRead(fault folder: String?, barred: [String: String], running: [String]) {
        state.withLock {
            $0.failed = $0.failed.filter { running.contains($0.key) || barred[$0.key] != nil }
            ($0.folder, $0.barred, $0.running) = (folder, barred, running)
        }
    }

    /// A hook was looked at before a run.
    func examined(_ hook: String, _ fault: String?) { state.withLock { $0.barred[hook] = fault } }

    /// - Parameter failure: `nil` for a run that went well.
    func ran(_ hook: String, _ failure: String?) { state.withLock { $0.failed[hook] = failure.map { ($0, Timestamp.now) } } }

    var running: [String] { state.withLock { $0.running } }

    var all: [HookFault] {
        let state = state.withLock { $0 }
        let folder = state.folder.map { [HookFault(hook: nil, message: "no hook is run: \($0)")] } ?? []
        let barred = state.barred.map { HookFault(hook: $0.key, message: "it is not run: \($0.value)") }
        let failed = state.failed.map { HookFault(hook: $0.key, message: "it failed: \($0.value.message)", at: $0.value.at) }
        return folder + (barred + failed).sorted { ($0.hook ?? "") < ($1.hook ?? "") }.prefix(Self.most)
    }
}
