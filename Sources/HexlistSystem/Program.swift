internal import CLinux
internal import Dispatch

#if canImport(Glibc)
    internal import Glibc
#endif

/// An external program that is started without a shell, such as a hook, a system program that `doctor` runs, or a program that opens a
/// link.
public struct Program: Sendable {
    /// The way in which the program ended.
    public enum Termination: Equatable, Sendable {
        case exited(Int)
        case signalled(Int)
        case timedOut
        /// The program was stopped, because the task that ran it was cancelled.
        case stopped
        /// The program was not started. The text describes the error.
        case notStarted(String)
    }

    public struct RunResult: Equatable, Sendable {
        public var end: Termination
        /// Standard output and, unless `dropsErrors` is set, standard error, in the order in which they were written. At most `outputBytes`
        /// bytes.
        public var output: [UInt8] = []

        public init(end: Termination, output: [UInt8] = []) { (self.end, self.output) = (end, output) }
    }

    /// The path of the program. `runHere` accepts a name without a slash and searches for it in `PATH`.
    public var path: String
    /// The arguments after the program's name.
    public var arguments: [String]

    /// Whether `run` discards standard error. Otherwise it is part of the output.
    public var dropsErrors = false
    /// Whether the kernel kills the program when this process ends for any reason. If set, `dropsErrors` has no effect.
    public var endsWithThisProcess = false

    public init(_ path: String, _ arguments: [String] = []) { (self.path, self.arguments) = (path, arguments) }

    // MARK: Programs of the system

    /// Folders of system programs. `PATH` is not used, because another program with the same name could be found there.
    public static let systemFolders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"]

    /// Returns the path of a system program; `nil` if it is not installed.
    public static func path(ofSystem name: String) -> String? { systemFolders.map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 } }

    // MARK: Running

    /// Milliseconds to wait after SIGTERM before SIGKILL is sent.
    private static let grace: Int64 = 1_000
    /// The clock for the time limit. It stops while the machine sleeps, because the program does not run then either.
    private typealias Clock = SuspendingClock
    /// The queue on which programs are supervised. Each running program takes one thread.
    static let threads = DispatchQueue(label: "hexlist.programs", attributes: .concurrent)

    /// Runs the program in a new session, with no open descriptors except standard input, output and error. When the time limit is reached
    /// or the task is cancelled, all processes of the session are terminated (SIGTERM, then SIGKILL). Processes that are left over after
    /// the program has ended are killed.
    /// - Parameters:
    ///   - input: the bytes for standard input.
    ///   - environment: the complete environment, as `NAME=value`.
    ///   - folder: the working directory; `nil` for that of this process.
    ///   - milliseconds: the time limit.
    ///   - outputBytes: maximum bytes of output in the result. If the program writes more, its output is closed (SIGPIPE).
    ///   - onOutput: called with each part of the output when it arrives, on the program's thread. If set, the result contains no output,
    ///     and `outputBytes` limits the bytes of one call.
    public func run(
        input: [UInt8] = [], environment: [String], folder: String? = nil, milliseconds: Int64, outputBytes: Int,
        onOutput: (@Sendable (ArraySlice<UInt8>) -> Void)? = nil
    ) async -> RunResult {
        let stop: Pipe
        do { stop = try Pipe() } catch { return RunResult(end: .notStarted(error.description)) }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                Self.threads.async {
                    continuation.resume(returning: supervise(input, environment, folder, milliseconds, outputBytes, onOutput, stop))
                }
            }
        } onCancel: {
            stop.closeWriter()
        }
    }

    /// Runs the program in the session of this process, with its terminal, environment, working directory and standard descriptors. Blocks
    /// until the program ends.
    /// - Throws: the error of the system if the program cannot be started.
    public func runHere() throws(SystemError) -> Termination {
        var words = Self.pointers([path] + arguments)
        defer { for word in words { free(word) } }
        var pid: pid_t = 0
        let error = hexlist_spawn_here(&pid, path, &words)
        guard error == 0 else { throw SystemError(code: error) }
        return Self.end(of: pid)
    }

    /// Starts the program and blocks until it has ended. Runs on a thread of its own.
    private func supervise(
        _ input: [UInt8], _ environment: [String], _ folder: String?, _ milliseconds: Int64, _ outputBytes: Int,
        _ onOutput: (@Sendable (ArraySlice<UInt8>) -> Void)?, _ stop: Pipe
    ) -> RunResult {
        let (programInput, programOutput): (Pipe, Pipe)
        let pid: pid_t
        do {
            (programInput, programOutput) = (try Pipe(), try Pipe())
            pid = try start(environment, folder, programInput, programOutput)
        } catch {
            return RunResult(end: .notStarted(error.description))
        }
        programInput.closeReader()
        programOutput.closeWriter()
        let ended = hexlist_pidfd_open(pid)
        defer { if ended >= 0 { close(ended) } }
        var rest = input[...]
        var output: [UInt8] = []
        var why: Termination?
        func take() {
            Self.read(from: programOutput, into: &output, atMost: outputBytes)
            guard let onOutput, !output.isEmpty else { return }
            onOutput(output[...])
            output.removeAll(keepingCapacity: true)
        }
        // Without a pidfd, the end of the program cannot be awaited, so the program is killed immediately.
        if ended < 0 { why = .notStarted("its end cannot be awaited") }
        var isKilled = ended < 0
        var deadline = Clock.now + .milliseconds(milliseconds)
        while !isKilled || ended >= 0 {
            var waited = [
                pollfd(fd: ended, events: Int16(POLLIN), revents: 0),
                pollfd(fd: why == nil ? stop.reader : -1, events: Int16(POLLIN), revents: 0),
                pollfd(fd: programOutput.reader, events: Int16(POLLIN), revents: 0),
                pollfd(fd: programInput.writer, events: Int16(POLLOUT), revents: 0),
            ]
            let left = isKilled ? -1 : CInt(clamping: Int64(max(0, ((deadline - .now) / .milliseconds(1)).rounded(.up))))
            guard poll(&waited, nfds_t(waited.count), left) >= 0 || errno == EINTR else { break }
            if waited[2].revents != 0 { take() }
            if waited[0].revents != 0 { break }
            if waited[3].revents != 0 { Self.write(&rest, to: programInput) }
            if waited[1].revents != 0 || Clock.now >= deadline {
                // Sends SIGTERM the first time and SIGKILL the second time.
                isKilled = why != nil
                why = why ?? (waited[1].revents != 0 ? .stopped : .timedOut)
                kill(-pid, isKilled ? SIGKILL : SIGTERM)
                deadline = .now + .milliseconds(Self.grace)
            }
        }
        take()
        // Kills processes of the session that are left over. The PID of the program cannot be reused before waitpid(2) is called.
        kill(-pid, SIGKILL)
        let own = Self.end(of: pid)
        return RunResult(end: why ?? own, output: output)
    }

    private func start(
        _ environment: [String], _ folder: String?, _ input: borrowing Pipe, _ output: borrowing Pipe
    ) throws(SystemError) -> pid_t {
        var words = Self.pointers([path] + arguments)
        var variables = Self.pointers(environment)
        defer { for text in words + variables { free(text) } }
        // Programs expect standard descriptors that block. The ends of the pipes in this process do not block.
        input.setBlocking(input.reader)
        output.setBlocking(output.writer)
        var pid: pid_t = 0
        let error =
            endsWithThisProcess
            ? hexlist_spawn_bound(&pid, path, &words, &variables, folder, input.reader, output.writer)
            : hexlist_spawn(&pid, path, &words, &variables, folder, input.reader, output.writer, dropsErrors ? -1 : output.writer)
        guard error == 0 else { throw SystemError(code: error) }
        return pid
    }

    /// Returns copies of the texts for a C function that expects a `nil`-terminated array. The caller must free them.
    static func pointers(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] { texts.map { strdup($0) } + [nil] }

    /// Waits for a child process and returns how it ended. Afterwards its PID can be reused.
    private static func end(of pid: pid_t) -> Termination {
        var status: CInt = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        return status & 0x7F == 0 ? .exited(Int(status >> 8 & 0xFF)) : .signalled(Int(status & 0x7F))
    }

    private static func write(_ rest: inout ArraySlice<UInt8>, to pipe: Pipe) {
        let count = rest.withUnsafeBytes { Glibc.write(pipe.writer, $0.baseAddress, $0.count) }
        if count > 0 { rest = rest.dropFirst(count) }
        // A program may end or close its standard input without reading all of it. This is not an error.
        if rest.isEmpty || count < 0 && errno != EAGAIN && errno != EINTR { pipe.closeWriter() }
    }

    private static func read(from pipe: Pipe, into output: inout [UInt8], atMost bound: Int) {
        guard pipe.reader >= 0 else { return }
        var buffer = [UInt8](repeating: 0, count: 8 << 10)
        while output.count < bound {
            let count = buffer.withUnsafeMutableBytes { Glibc.read(pipe.reader, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                if count == 0 || errno != EAGAIN { pipe.closeReader() }
                return
            }
            output += buffer[..<count]
        }
        output.removeLast(output.count - bound)
        pipe.closeReader()
    }
}
