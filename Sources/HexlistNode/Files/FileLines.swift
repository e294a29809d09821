import HexlistFiles
import HexlistModel
import HexlistTransport

/// The connections that small transfers share: those of one place of the queue ask on one connection, each without waiting for the answers to
/// those before.
final class FileLines {
    typealias Connected = FileFetching.Connected

    /// The connection of one place. Confined to the event loop; that makes it `Sendable`.
    private final class Line: @unchecked Sendable {
        /// `nil` while it is being made.
        var connection: FileClientConnection?
        var waiting: [Connected] = []
        var users = 0
    }

    private var lines: [Int: Line] = [:]
    private var used: [TransferRun: (place: Int, line: Line)] = [:]

    /// Hands a run the connection of its place, which is made where there is none.
    func join(_ run: TransferRun, _ place: Int, of peer: PeerID, _ host: isolated some FilesHost, _ done: @escaping Connected) {
        let line = lines[place] ?? Line()
        lines[place] = line
        line.users += 1
        used[run] = (place, line)
        if let connection = line.connection, connection.isOpen { return done(.success(connection)) }
        line.waiting.append(done)
        guard line.waiting.count == 1 else { return }
        line.connection = nil
        host.fetching.connect(to: peer, host) { [weak host] result in
            host?.assumeIsolated { host in
                let waiting = line.waiting
                line.waiting = []
                line.connection = try? result.get()
                for done in waiting { done(result) }
                if line.users == 0, let connection = line.connection { host.fetching.keep(connection, to: peer) }
            }
        }
    }

    /// A run needs its connection no more.
    /// - Returns: the connection, where no other run of its place does.
    func leave(_ run: TransferRun) -> FileClientConnection? {
        guard let (place, line) = used.removeValue(forKey: run) else { return nil }
        line.users -= 1
        guard line.users == 0 else { return nil }
        if lines[place] === line { lines[place] = nil }
        return line.connection
    }

    func stop() {
        for line in lines.values { line.connection?.abort() }
        lines = [:]
        used = [:]
    }
}
