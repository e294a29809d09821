import HexlistSystem
import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

/// The user at the other end of a TCP connection within this machine, by the kernel's table of sockets.
enum LoopbackPeer {
    /// Bytes of the table that are read: a row is 150 bytes.
    private static let tableBytes = 64 << 20

    /// - Returns: `nil` where the kernel lists no such connection that is established, so that nobody can be named; and for one from
    ///   another address than 127.0.0.1: who binds 127.0.0.2 can take the port that somebody else's connection has on 127.0.0.1.
    static func user(of channel: any Channel) -> uid_t? {
        guard let own = channel.localAddress?.port, let remote = channel.remoteAddress, let theirs = port(of: remote),
            let table = try? SmallFile.read("/proc/self/net/tcp", limit: tableBytes)
        else { return nil }
        return user(of: theirs, to: own, in: table)
    }

    /// The port of an address, if that is 127.0.0.1.
    static func port(of remote: SocketAddress) -> Int? { remote.ipAddress == "127.0.0.1" ? remote.port : nil }

    /// The user who owns the end at port `theirs` of 127.0.0.1 of the connection to port `own` there.
    ///
    ///     sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
    ///      3: 0100007F:9C40 0100007F:A1B2 01 00000000:00000000 00:00000000 00000000  1000        0 48211 …
    ///
    /// Only an established one of a process counts: what is left of a closed one is listed as root's.
    static func user(of theirs: Int, to own: Int, in table: String) -> uid_t? {
        let (local, remote) = (address(theirs), address(own))
        for row in table.split(separator: "\n").dropFirst() {
            let columns = row.split(separator: " ", omittingEmptySubsequences: true)
            guard columns.count > 9, columns[1] == local, columns[2] == remote else { continue }
            guard columns[3] == "01", columns[9] != "0" else { return nil }
            return uid_t(columns[7])
        }
        return nil
    }

    /// 127.0.0.1 as the kernel writes it: the four bytes as a number of this machine, and the port.
    private static func address(_ port: Int) -> String {
        let host = UInt32(bigEndian: 0x7F00_0001)
        func hexadecimal(_ number: some BinaryInteger, _ digits: Int) -> String {
            let text = String(number, radix: 16, uppercase: true)
            return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
        }
        return "\(hexadecimal(host, 8)):\(hexadecimal(port, 4))"
    }
}
