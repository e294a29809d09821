import HexlistFiles
import HexlistStore
import HexlistTransport

/// What is done with several small files at once, on a thread for files: while some are being done others gather, and are the next.
/// Confined to the event loop; that makes it `Sendable`.
final class FileTurns<File: Sendable, Value: Sendable>: @unchecked Sendable {
    struct Item: Sendable {
        var run: any FileAttempt
        var file: File
    }

    private var waiting: [Item] = []
    private var isBusy = false

    /// - Parameters:
    ///   - work: called on a thread for files, with all that gathered.
    ///   - done: called with each run and what became of it, all of one turn in one call.
    func add<Host: FilesHost>(
        _ item: Item, _ host: isolated Host, work: @escaping @Sendable ([Item]) throws -> [Result<Value, FileFault>],
        done: @escaping @Sendable ([(any FileAttempt, Result<Value, any Error>)], isolated Host) -> Void
    ) {
        waiting.append(item)
        next(host, work, done)
    }

    private func next<Host: FilesHost>(
        _ host: isolated Host, _ work: @escaping @Sendable ([Item]) throws -> [Result<Value, FileFault>],
        _ done: @escaping @Sendable ([(any FileAttempt, Result<Value, any Error>)], isolated Host) -> Void
    ) {
        guard !isBusy, !waiting.isEmpty else { return }
        isBusy = true
        let turn = waiting
        waiting = []
        host.transport.fileThreads.run(on: host.eventLoop) { try work(turn) }.whenComplete { [weak host] result in
            host?.assumeIsolated { host in
                self.isBusy = false
                done(
                    turn.enumerated().map { index, item in
                        (item.run, result.flatMap { results in results[index].mapError { $0 as any Error } })
                    }, host)
                self.next(host, work, done)
            }
        }
    }
}
