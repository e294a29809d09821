import HexlistEventLoop
import HexlistFiles
import HexlistStore
import HexlistTransport
import NIOCore

/// Writes small files and renames them to their final names, in batches: files on the same file system share a sync of the disk (decision
/// 19).
final class SmallFiles {
    private typealias Arrived = (run: PeerFetch, content: VerifiedPartFile.Content)
    private typealias Written = (run: any FetchAttempt, file: VerifiedPartFile)

    /// The files to write. Each folder has its own lane (the bytes of its path), so that a slow folder delays no other one.
    private var writes = LaneBatches<[UInt8], Arrived>()
    /// The files to rename. Each file system has its own lane (its device number).
    private var placements = LaneBatches<UInt64, Written>()

    /// Writes a complete small file.
    func write(_ run: PeerFetch, _ content: VerifiedPartFile.Content, _ host: isolated FileTransfers) {
        let (item, lane) = ((run: run, content: content), Array(content.folder.utf8))
        if writes.begin(item, in: lane) { write([item], lane, host) }
    }

    private func write(_ items: [Arrived], _ lane: [UInt8], _ host: isolated FileTransfers) {
        host.transport.fileThreads.run(on: host.eventLoop) { VerifiedPartFile.write(items.map(\.content)) }.whenComplete {
            [weak host] result in
            host?.assumeIsolated { host in
                for (index, item) in items.enumerated() { item.run.written(result.flatMap { $0[index].mapError { $0 as any Error } }) }
                let small = host.fetching.small
                let next = small.writes.next(in: lane)
                if !next.isEmpty { small.write(next, lane, host) }
            }
        }
    }

    /// Renames a written file to its final name.
    func place(_ run: any FetchAttempt, _ file: VerifiedPartFile, _ host: isolated FileTransfers) {
        let item = (run: run, file: file)
        if placements.begin(item, in: file.device) { place([item], file.device, host) }
    }

    private func place(_ items: [Written], _ lane: UInt64, _ host: isolated FileTransfers) {
        let (store, candidates) = (host.store, items.map { VerifiedPartFile.Candidate(folder: $0.run.row.folder, file: $0.file) })
        host.transport.fileThreads.run(on: host.eventLoop) {
            try VerifiedPartFile.place(candidates) { placements in
                try store.placeTransfers(placements.map { (items[$0.index].run.id.value, $0.placement.fileInode, $0.placement.name) })
            }
        }.whenComplete { [weak host] result in
            host?.assumeIsolated { host in
                let results = items.indices.map { index in result.flatMap { $0[index].mapError { $0 as any Error } } }
                host.fetching.placed(zip(items, results).map { ($0.run, $1) }, host)
                let small = host.fetching.small
                let next = small.placements.next(in: lane)
                if !next.isEmpty { small.place(next, lane, host) }
            }
        }
    }
}
