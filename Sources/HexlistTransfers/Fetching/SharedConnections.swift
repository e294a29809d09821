import HexlistFiles
import HexlistModel
import HexlistTransport

/// The connections that small files share. Files in the same slot of the queue pipeline their requests on one connection.
final class SharedConnections {
    typealias Connected = FileConnections.Connected

    /// The connection of one slot. Used on the event loop only; that makes the class `Sendable`.
    private final class Line: @unchecked Sendable {
        /// The connection; `nil` while it is being opened.
        var connection: FileClientConnection?
        var waiting: [Connected] = []
        var users = 0
    }

    private var lines: [Int: Line] = [:]
    private var used: [TransferAttemptID: (slot: Int, line: Line)] = [:]

    /// Passes the connection of a slot to `done`. It is opened if there is none.
    func join(_ run: TransferAttemptID, _ slot: Int, of peer: PeerID, _ host: isolated FileTransfers, _ done: @escaping Connected) {
        let line = lines[slot] ?? Line()
        lines[slot] = line
        line.users += 1
        used[run] = (slot, line)
        if let connection = line.connection, connection.isOpen { return done(.success(connection)) }
        line.waiting.append(done)
        guard line.waiting.count == 1 else { return }
        line.connection = nil
        host.connections.connect(to: peer, host) { [weak host] result in
            host?.assumeIsolated { host in
                let waiting = line.waiting
                line.waiting = []
                line.connection = try? result.get()
                for done in waiting { done(result) }
                if line.users == 0, let connection = line.connection { host.connections.keep(connection, to: peer) }
            }
        }
    }

    /// Reports that an attempt no longer uses its connection.
    /// - Returns: the connection, if no other attempt uses it; otherwise `nil`.
    func leave(_ run: TransferAttemptID) -> FileClientConnection? {
        guard let (slot, line) = used.removeValue(forKey: run) else { return nil }
        line.users -= 1
        guard line.users == 0 else { return nil }
        if lines[slot] === line { lines[slot] = nil }
        return line.connection
    }

    func stop() {
        for line in lines.values { line.connection?.abort() }
        lines = [:]
        used = [:]
    }
}
