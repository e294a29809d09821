import HexlistFiles
import HexlistStore
import HexlistTransport

/// Whole small files that wait for their names. They get them together: while some are being placed others gather, and are the next.
final class FilePlacements {
    private var waiting: [(run: any FileAttempt, file: WholeFile)] = []
    private var isPlacing = false

    /// - Parameter placed: called with each run and what became of it, all of one turn in one call.
    func add<Host: FilesHost>(
        _ run: any FileAttempt, _ file: WholeFile, _ host: isolated Host,
        placed: @escaping @Sendable ([(any FileAttempt, Result<PartFile.Placement, any Error>)], isolated Host) -> Void
    ) {
        waiting.append((run, file))
        next(host, placed)
    }

    private func next<Host: FilesHost>(
        _ host: isolated Host,
        _ placed: @escaping @Sendable ([(any FileAttempt, Result<PartFile.Placement, any Error>)], isolated Host) -> Void
    ) {
        guard !isPlacing, !waiting.isEmpty else { return }
        isPlacing = true
        let turn = waiting
        waiting = []
        let files = turn.map { WholeFile.Candidate(folder: $0.run.row.folder, file: $0.file) }
        let (ids, store, runs) = (turn.map(\.run.row.id), host.store, turn.map(\.run))
        host.transport.fileThreads.run(on: host.eventLoop) {
            try WholeFile.place(files) { placements in
                try store.placeTransfers(placements.map { (ids[$0.index], $0.placement.fileInode, $0.placement.name) })
            }
        }.whenComplete { [weak host] result in
            host?.assumeIsolated { host in
                host.fetching.placements.isPlacing = false
                let results = runs.enumerated().map { index, run in
                    (run, result.flatMap { results in results[index].mapError { $0 as any Error } })
                }
                placed(results, host)
                host.fetching.placements.next(host, placed)
            }
        }
    }
}
