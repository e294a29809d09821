import Glibc

/// Another program's answer.
struct ProgramOutput: Sendable {
    var status: Int32
    var out: [UInt8]
    var err: [UInt8]

    /// Bytes kept of each stream, and how long a program may take.
    private static let limit = 16 << 20
    private static let milliseconds: Int64 = 5_000
    private static let folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"]

    /// Where a program of the system is; the path of the user is not asked, so that nothing else runs under its name.
    static func path(of name: String) -> String? { folders.map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 } }

    /// - Returns: `nil` where the program is not there, cannot be started, or takes too long.
    static func run(_ name: String, _ arguments: [String]) -> ProgramOutput? {
        guard let path = path(of: name) else { return nil }
        var (out, err): ([Int32], [Int32]) = ([-1, -1], [-1, -1])
        guard pipe(&out) == 0 else { return nil }
        guard pipe(&err) == 0 else {
            out.forEach { close($0) }
            return nil
        }
        for descriptor in out + err { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO)
        var words = pointers([path] + arguments)
        // A bus elsewhere is where firewalld is.
        let bus = Environment.value("DBUS_SYSTEM_BUS_ADDRESS").map { ["DBUS_SYSTEM_BUS_ADDRESS=\($0)"] } ?? []
        var variables = pointers(["LC_ALL=C", "PATH=\(folders.joined(separator: ":"))"] + bus)
        let texts = words + variables
        defer { texts.forEach { free($0) } }
        var pid = pid_t()
        let failure = posix_spawn(&pid, path, &actions, nil, &words, &variables)
        close(out[1])
        close(err[1])
        defer {
            close(out[0])
            close(err[0])
        }
        guard failure == 0 else { return nil }
        let read = collect(out[0], err[0])
        if read == nil { kill(pid, SIGKILL) }
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        guard let read else { return nil }
        return ProgramOutput(status: status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + (status & 0x7F), out: read.out, err: read.err)
    }

    /// For a C function that takes a list with `nil` at its end; to be freed.
    private static func pointers(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] { texts.map { strdup($0) } + [nil] }

    /// Both streams to their ends; `nil` where that takes too long or is too much.
    private static func collect(_ out: Int32, _ err: Int32) -> (out: [UInt8], err: [UInt8])? {
        var texts: [[UInt8]] = [[], []]
        var open = [pollfd(fd: out, events: Int16(POLLIN), revents: 0), pollfd(fd: err, events: Int16(POLLIN), revents: 0)]
        let deadline = ContinuousClock.now + .milliseconds(milliseconds)
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while open.contains(where: { $0.fd >= 0 }) {
            let left = Int32(max(0, (deadline - .now) / .milliseconds(1)))
            guard left > 0, poll(&open, 2, left) >= 0 || errno == EINTR else { return nil }
            for index in 0..<2 where open[index].fd >= 0 && open[index].revents != 0 {
                let count = read(open[index].fd, &piece, piece.count)
                if count > 0 { texts[index] += piece.prefix(count) } else if count == 0 || errno != EINTR { open[index].fd = -1 }
                guard texts[index].count <= limit else { return nil }
            }
        }
        return (texts[0], texts[1])
    }
}
