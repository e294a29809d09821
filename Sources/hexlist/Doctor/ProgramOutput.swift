import Glibc

/// Another program's answer.
struct ProgramOutput: Sendable {
    var status: Int32
    /// What it wrote to standard output, and to standard error where that was asked for.
    var out: [UInt8]

    /// Bytes of `out`, and how long a program may take.
    private static let limit = 16 << 20
    private static let milliseconds: Int64 = 5_000
    private static let folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"]

    /// Where a program of the system is; the path of the user is not asked, so that nothing else runs under its name.
    static func path(of name: String) -> String? { folders.map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 } }

    /// - Returns: `nil` where the program is not there, cannot be started, or takes too long.
    static func run(_ name: String, _ arguments: [String]) -> ProgramOutput? {
        path(of: name).flatMap { run(at: $0, arguments) }
    }

    /// - Parameter errorsToo: whether `out` has what the program wrote to standard error as well, in the order it wrote.
    /// - Returns: `nil` where the program cannot be started, takes too long, or writes too much.
    static func run(at path: String, _ arguments: [String], errorsToo: Bool = false) -> ProgramOutput? {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        defer { close(ends[0]) }
        for descriptor in ends { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
        if errorsToo {
            posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO)
        } else {
            posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
        }
        var words = pointers([path] + arguments)
        // A bus elsewhere is where firewalld is.
        let bus = Environment.value("DBUS_SYSTEM_BUS_ADDRESS").map { ["DBUS_SYSTEM_BUS_ADDRESS=\($0)"] } ?? []
        var variables = pointers(["LC_ALL=C", "PATH=\(folders.joined(separator: ":"))"] + bus)
        let texts = words + variables
        defer { texts.forEach { free($0) } }
        var pid = pid_t()
        let failure = posix_spawn(&pid, path, &actions, nil, &words, &variables)
        close(ends[1])
        guard failure == 0 else { return nil }
        let out = collect(ends[0])
        if out == nil { kill(pid, SIGKILL) }
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        return out.map { ProgramOutput(status: status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + (status & 0x7F), out: $0) }
    }

    /// For a C function that takes a list with `nil` at its end; to be freed.
    private static func pointers(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] { texts.map { strdup($0) } + [nil] }

    /// To its end; `nil` where that takes too long or is too much.
    private static func collect(_ descriptor: Int32) -> [UInt8]? {
        var out: [UInt8] = []
        let deadline = ContinuousClock.now + .milliseconds(milliseconds)
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let left = Int32(max(0, (deadline - .now) / .milliseconds(1)))
            var open = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard left > 0, poll(&open, 1, left) >= 0 || errno == EINTR else { return nil }
            guard open.revents != 0 else { continue }
            let count = read(descriptor, &piece, piece.count)
            guard count > 0 || count < 0 && errno == EINTR else { return out }
            out += piece.prefix(max(0, count))
            guard out.count <= limit else { return nil }
        }
    }
}
