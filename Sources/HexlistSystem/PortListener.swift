#if canImport(Glibc)
    import Glibc
#endif

/// The process that listens on a TCP port of this machine, as far as /proc shows it.
public struct PortListener: Sendable {
    /// The numeric id of the user of the process.
    public var user: UInt32
    /// The process; `nil` if this user may not list its open files, for example because another user runs it.
    public var process: (id: Int32, name: String)?
    /// If `process` is `nil`: the process ID of a hexlistd of the same user, which is probably the listener. hexlistd forbids core dumps,
    /// and the kernel therefore hides its open files.
    public var hiddenDaemon: Int32?

    /// A description for a message: `hexlistd (pid 123)`, `a program of user bob`, or with `, probably hexlistd (pid 123)`.
    public var description: String {
        if let process { return "\(process.name) (pid \(process.id))" }
        let name = getpwuid(user).flatMap { $0.pointee.pw_name }.map { String(cString: $0) }
        return "a program of user \(name ?? "\(user)")" + (hiddenDaemon.map { ", probably hexlistd (pid \($0))" } ?? "")
    }

    /// Finds the process that listens on a port; `nil` if there is none.
    public static func find(port: Int) -> PortListener? {
        for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
            guard let text = try? SmallFile.read(table, limit: 16 << 20), let found = socket(listeningOn: port, in: text) else { continue }
            if let process = process(withSocket: found.inode) { return PortListener(user: found.user, process: process) }
            return PortListener(user: found.user, hiddenDaemon: hiddenDaemon(of: found.user))
        }
        return nil
    }

    /// Finds the socket that listens on a port in the text of `/proc/net/tcp`: its user and inode.
    static func socket(listeningOn port: Int, in table: String) -> (user: UInt32, inode: UInt64)? {
        for line in table.split(separator: "\n").dropFirst() {
            // The columns: number, local and remote address, state, queues, timer, retransmissions, user, timeout, inode.
            let columns = line.split(separator: " ")
            guard columns.count > 9, columns[3] == "0A", columns[1].split(separator: ":").last.flatMap({ Int($0, radix: 16) }) == port,
                let user = UInt32(columns[7]), let inode = UInt64(columns[9])
            else { continue }
            return (user, inode)
        }
        return nil
    }

    private static func processes() -> [Int32] { (FolderNames.read("/proc") ?? []).compactMap(Int32.init) }

    private static func process(withSocket inode: UInt64) -> (id: Int32, name: String)? {
        for id in processes() {
            for descriptor in FolderNames.read("/proc/\(id)/fd") ?? [] {
                var target = [CChar](repeating: 0, count: 64)
                guard readlink("/proc/\(id)/fd/\(descriptor)", &target, target.count - 1) > 0,
                    String(decoding: target.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self) == "socket:[\(inode)]"
                else { continue }
                let name = try? SmallFile.read("/proc/\(id)/comm", limit: 64)
                return (id, name.map { String($0.prefix { $0 != "\n" }) } ?? "a program")
            }
        }
        return nil
    }

    private static func hiddenDaemon(of user: UInt32) -> Int32? {
        processes().first { id in
            guard (try? SmallFile.read("/proc/\(id)/comm", limit: 64)) == "hexlistd\n",
                let status = try? SmallFile.read("/proc/\(id)/status", limit: 64 << 10),
                let line = status.split(separator: "\n").first(where: { $0.hasPrefix("Uid:") })
            else { return false }
            return line.split(whereSeparator: \.isWhitespace).dropFirst().first == "\(user)" && access("/proc/\(id)/fd", R_OK) != 0
        }
    }
}
