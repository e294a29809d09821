import HexlistModel
import HexlistStore
import Logging
import UnixSignals

/// Opens the store at a start. While the disk is too full to create or migrate it, the daemon waits instead of failing: systemd gives up on
/// a daemon that fails five times.
enum StoreOpening {
    /// Polling interval: free space raises no event.
    private static let pause = Duration.seconds(2)

    /// Opens the store, or waits until that is possible.
    /// - Returns: `nil` after SIGTERM or SIGINT.
    /// - Throws: the errors of `HexStore`, except `.storageFull`.
    static func open(_ path: String, metrics: StoreMetrics, logger: Logger) async throws -> HexStore? {
        // Signals are trapped before the first attempt, so that none is missed while waiting.
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        do {
            return try HexStore(path: path, metrics: metrics)
        } catch let error as HexlistError where error.code == .storageFull {
            logger.warning("hexlistd waits for disk space", metadata: ["reason": "\(error.message)"])
        }
        return try await withThrowingTaskGroup(of: HexStore?.self) { group in
            defer { group.cancelAll() }
            group.addTask {
                for await _ in signals { break }
                return nil
            }
            group.addTask { try await openOnceThereIsRoom(path, metrics) }
            return try await group.next() ?? nil
        }
    }

    private static func openOnceThereIsRoom(_ path: String, _ metrics: StoreMetrics) async throws -> HexStore {
        while true {
            try await Task.sleep(for: pause)
            do {
                return try HexStore(path: path, metrics: metrics)
            } catch let error as HexlistError where error.code == .storageFull {
                continue
            }
        }
    }
}
