import HexlistModel
import HexlistStore
import Logging
import UnixSignals

/// Opens the store when the daemon starts. While the disk is too full to create or migrate the store, the daemon waits. It does not fail,
/// because systemd does not restart a daemon that has failed five times.
enum StoreOpening {
    /// Interval of attempts to open the store. The system reports no event when space becomes free.
    private static let pause = Duration.seconds(2)

    /// Opens the store, or waits until that is possible.
    /// - Returns: `nil` after SIGTERM or SIGINT.
    /// - Throws: the errors of `HexStore`, except `storageFull`.
    static func open(_ path: String, metrics: StoreMetrics, logger: Logger) async throws -> HexStore? {
        // Signals are trapped before the first attempt, so that none is lost before the wait begins.
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
