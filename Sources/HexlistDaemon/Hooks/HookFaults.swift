import HexlistAPI
import Synchronization

/// The present faults of hooks, for `hexlist status` and `hexlist doctor`. A hook's fault stays until it ran well, or is gone.
final class HookFaults: Sendable {
    private struct State {
        /// The reason why no hook is run.
        var folder: String?
        /// The reasons why files of the folder are not run.
        var barred: [String: String] = [:]
        /// The failures of hooks in their last run.
        var failed: [String: (message: String, at: Timestamp)] = [:]
        /// The hooks that are run.
        var running: [String] = []
    }

    private let state = Mutex(State())

    /// The most faults reported, however much there is in the folder.
    private static let most = 20

    /// Takes the result of reading the folder. Hooks that are gone are forgotten.
    func folderRead(fault folder: String?, barred: [String: String], running: [String]) {
        state.withLock {
            $0.failed = $0.failed.filter { running.contains($0.key) || barred[$0.key] != nil }
            ($0.folder, $0.barred, $0.running) = (folder, barred, running)
        }
    }

    /// Takes the result of looking at a hook before a run.
    func examined(_ hook: String, _ fault: String?) { state.withLock { $0.barred[hook] = fault } }

    /// - Parameter failure: the failure of a run; `nil` if it went well.
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
