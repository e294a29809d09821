import HexlistAPI
import Synchronization

/// Current problems of hooks, for `hexlist status` and `hexlist doctor`. A problem stays until the hook succeeds or is removed.
final class HookFaults: Sendable {
    private struct State {
        /// The problem of the folder because of which no hook can run; `nil` if hooks can run.
        var folder: String?
        /// The reasons why single hooks cannot run, by the name of the hook.
        var notAllowed: [String: String] = [:]
        /// The failures of hooks whose last run failed, by the name of the hook.
        var failed: [String: (message: String, at: Timestamp)] = [:]
        /// Names of the hooks that run for events.
        var running: [String] = []
    }

    private let state = Mutex(State())

    /// Maximum number of problems of single hooks in `all`.
    private static let maximumListed = 20

    /// Records the result of reading the folder, and removes the failures of hooks that no longer exist.
    func folderRead(fault folder: String?, notAllowed: [String: String], running: [String]) {
        state.withLock {
            $0.failed = $0.failed.filter { running.contains($0.key) || notAllowed[$0.key] != nil }
            ($0.folder, $0.notAllowed, $0.running) = (folder, notAllowed, running)
        }
    }

    /// Records the result of the check of a hook before a run: the reason why it cannot run, or `nil`.
    func examined(_ hook: String, _ fault: String?) { state.withLock { $0.notAllowed[hook] = fault } }

    /// Records the result of a run.
    /// - Parameter failure: the failure; `nil` if the run succeeded.
    func ran(_ hook: String, _ failure: String?) { state.withLock { $0.failed[hook] = failure.map { ($0, Timestamp.now) } } }

    var running: [String] { state.withLock { $0.running } }

    var all: [HookFault] {
        let state = state.withLock { $0 }
        let folder = state.folder.map { [HookFault(hook: nil, message: "hooks are not run: \($0)")] } ?? []
        let notAllowed = state.notAllowed.map { HookFault(hook: $0.key, message: "not run: \($0.value)") }
        let failed = state.failed.map { HookFault(hook: $0.key, message: "it failed: \($0.value.message)", at: $0.value.at) }
        return folder + (notAllowed + failed).sorted { ($0.hook ?? "") < ($1.hook ?? "") }.prefix(Self.maximumListed)
    }
}
