internal import CLinux
internal import Dispatch

#if canImport(Glibc)
    internal import Glibc
#endif

/// An external program, started without a shell: hooks, system programs that `doctor` runs, and programs that open a link.
public struct Program: Sendable {
    /// How a program ended.
    public enum Termination: Equatable, Sendable {
        case exited(Int)
        case signalled(Int)
        case timedOut
        /// Stopped, because the task that ran it was cancelled.
        case stopped
        /// Not started; the text of the system's error.
        case notStarted(String)
    }

    public struct RunResult: Equatable, Sendable {
        public var end: Termination
        /// Standard output and, unless dropped, standard error, in the order they were written, up to the limit of the run.
        public var output: [UInt8] = []

        public init(end: Termination, output: [UInt8] = []) { (self.end, self.output) = (end, output) }
    }

    /// The path. `runHere` also searches a name without a slash in `PATH`.
    public var path: String
    /// The arguments, without the program's name.
    public var arguments: [String]

    /// Whether `run` discards standard error instead of mixing it with the output.
    public var dropsErrors = false
    /// Whether the kernel kills the program when this process ends for any reason. Then `dropsErrors` has no effect.
    public var endsWithThisProcess = false

    public init(_ path: String, _ arguments: [String] = []) { (self.path, self.arguments) = (path, arguments) }

    // MARK: Programs of the system

    /// Folders of system programs. The user's `PATH` is not used, so that no other program can take their names.
    public static let systemFolders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"]

    /// The path of a system program; `nil` if it is not installed.
    public static func path(ofSystem name: String) -> String? { systemFolders.map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 } }

    // MARK: Running

    /// Milliseconds between SIGTERM and SIGKILL.
    private static let grace: Int64 = 1_000
    /// The clock of the time limit. It stops during sleep, as the program does.
    private typealias Clock = SuspendingClock
    /// One thread for each running program.
    private static let threads = DispatchQueue(label: "hexlist.programs", attributes: .concurrent)

    /// Runs the program in a new session, with no descriptors but its input and output. The whole session is terminated (SIGTERM, then
    /// SIGKILL) at the time limit or, with `stopped`, when the task is cancelled. Processes that the program left running are killed when
    /// it ends.
    /// - Parameters:
    ///   - input: the bytes of its standard input.
    ///   - environment: the complete environment, as `NAME=value`.
    ///   - folder: the working directory; `nil` for that of this process.
    ///   - milliseconds: the time limit.
    ///   - outputBytes: maximum bytes of output in the result. Afterwards its output is closed (SIGPIPE).
    ///   - onOutput: called with the output as it arrives, on the program's thread. Then the result has no output, and `outputBytes` limits
    ///     one call.
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

    /// Runs the program in this process's session, with its terminal, environment, folder and standard descriptors. Blocks until it ends.
    /// - Throws: the error of the system if the program cannot be started.
    public func runHere() throws(SystemError) -> Termination {
        var words = Self.pointers([path] + arguments)
        defer { for word in words { free(word) } }
        var pid: pid_t = 0
        let error = hexlist_spawn_here(&pid, path, &words)
        guard error == 0 else { throw SystemError(code: error) }
        return Self.end(of: pid)
    }

    /// Starts the program on its own thread and supervises it until it has ended.
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
        // Without a pidfd the end cannot be awaited, so the program is killed at once.
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
                // SIGTERM first, then SIGKILL.
                isKilled = why != nil
                why = why ?? (waited[1].revents != 0 ? .stopped : .timedOut)
                kill(-pid, isKilled ? SIGKILL : SIGTERM)
                deadline = .now + .milliseconds(Self.grace)
            }
        }
        take()
        // Kills processes that the program left behind. Its PID is not reused until waitpid(2).
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
        // Programs expect blocking standard descriptors; the ends in this process do not block.
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

    /// Copies for a C function that expects a `nil`-terminated array; freed by the caller.
    static func pointers(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] { texts.map { strdup($0) } + [nil] }

    /// Waits for a child. Its PID can be reused afterwards.
    private static func end(of pid: pid_t) -> Termination {
        var status: CInt = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        return status & 0x7F == 0 ? .exited(Int(status >> 8 & 0xFF)) : .signalled(Int(status & 0x7F))
    }

    private static func write(_ rest: inout ArraySlice<UInt8>, to pipe: Pipe) {
        let count = rest.withUnsafeBytes { Glibc.write(pipe.writer, $0.baseAddress, $0.count) }
        if count > 0 { rest = rest.dropFirst(count) }
        // It is not an error if a program does not read all of its input.
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
