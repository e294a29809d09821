internal import CLinux
internal import Dispatch

#if canImport(Glibc)
    internal import Glibc
#endif

/// Another program, started without a shell: hooks, the programs that doctor queries, and those that open a link.
public struct Program: Sendable {
    /// The end of a program.
    public enum End: Equatable, Sendable {
        case exited(Int)
        case signalled(Int)
        case timedOut
        /// The task that ran the program was cancelled.
        case stopped
        /// The program was not started, for the reason the system gave.
        case notStarted(String)
    }

    public struct Outcome: Equatable, Sendable {
        public var end: End
        /// Standard output and, unless it is dropped, standard error, in the order they were written, up to the bound of the run.
        public var output: [UInt8] = []

        public init(end: End, output: [UInt8] = []) { (self.end, self.output) = (end, output) }
    }

    /// The path. `runHere` also looks for a name without a slash in `PATH`.
    public var path: String
    /// The arguments, without the program's own name.
    public var arguments: [String]

    /// Whether `run` drops what the program writes to standard error, instead of mixing it with its output.
    public var dropsErrors = false
    /// Whether the kernel kills the program that `run` started when this process ends, however it ends. Its errors are not dropped then.
    public var endsWithThisProcess = false

    public init(_ path: String, _ arguments: [String] = []) { (self.path, self.arguments) = (path, arguments) }

    // MARK: Programs of the system

    /// The folders of the system's programs. The user's `PATH` is not used, so that no other program runs under their names.
    public static let systemFolders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"]

    /// The path of a program of the system; `nil` if it is not installed.
    public static func path(ofSystem name: String) -> String? { systemFolders.map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 } }

    // MARK: Running

    /// The milliseconds from SIGTERM to SIGKILL.
    private static let grace: Int64 = 1_000
    /// The clock of the time limit, which stops while the machine sleeps, as the program does.
    private typealias Clock = SuspendingClock
    /// The threads, one for each running program.
    private static let threads = DispatchQueue(label: "hexlist.programs", attributes: .concurrent)

    /// Runs the program in a session of its own, with no descriptors but `input` and its output. The whole session is ended (SIGTERM, then
    /// SIGKILL) when `milliseconds` are over or, with `stopped`, when the task is cancelled; what is left of it when the program has ended.
    /// - Parameters:
    ///   - input: the bytes of its standard input.
    ///   - environment: its whole environment, as `NAME=value`.
    ///   - folder: the folder to start in; `nil` for this process's.
    ///   - milliseconds: the time limit.
    ///   - outputBytes: the most bytes of `Outcome.output`. A program that writes more finds its output closed (SIGPIPE).
    ///   - onOutput: is handed the output as it comes, on the program's thread, instead of `Outcome`; `outputBytes` bounds a piece.
    public func run(
        input: [UInt8] = [], environment: [String], folder: String? = nil, milliseconds: Int64, outputBytes: Int,
        onOutput: (@Sendable (ArraySlice<UInt8>) -> Void)? = nil
    ) async -> Outcome {
        let stop: Pipe
        do { stop = try Pipe() } catch { return Outcome(end: .notStarted(error.description)) }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                Self.threads.async {
                    continuation.resume(returning: attend(input, environment, folder, milliseconds, outputBytes, onOutput, stop))
                }
            }
        } onCancel: {
            stop.closeWriter()
        }
    }

    /// Runs the program in this process's session, on its terminal, with its environment, folder and standard descriptors, and blocks until
    /// the end.
    /// - Throws: the system's error if the program cannot be started.
    public func runHere() throws(SystemError) -> End {
        var words = Self.pointers([path] + arguments)
        defer { for word in words { free(word) } }
        var pid: pid_t = 0
        let error = hexlist_spawn_here(&pid, path, &words)
        guard error == 0 else { throw SystemError(code: error) }
        return Self.end(of: pid)
    }

    /// Attends to the program on a thread of its own, which starts it and stays until it is gone.
    private func attend(
        _ input: [UInt8], _ environment: [String], _ folder: String?, _ milliseconds: Int64, _ outputBytes: Int,
        _ onOutput: (@Sendable (ArraySlice<UInt8>) -> Void)?, _ stop: Pipe
    ) -> Outcome {
        let (programInput, programOutput): (Pipe, Pipe)
        let pid: pid_t
        do {
            (programInput, programOutput) = (try Pipe(), try Pipe())
            pid = try start(environment, folder, programInput, programOutput)
        } catch {
            return Outcome(end: .notStarted(error.description))
        }
        programInput.closeReader()
        programOutput.closeWriter()
        let ended = hexlist_pidfd_open(pid)
        defer { if ended >= 0 { close(ended) } }
        var rest = input[...]
        var output: [UInt8] = []
        var why: End?
        func take() {
            Self.read(from: programOutput, into: &output, atMost: outputBytes)
            guard let onOutput, !output.isEmpty else { return }
            onOutput(output[...])
            output.removeAll(keepingCapacity: true)
        }
        // Without a descriptor for its end the program cannot be awaited, and is ended at once.
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
                // The program is first asked to end, then killed.
                isKilled = why != nil
                why = why ?? (waited[1].revents != 0 ? .stopped : .timedOut)
                kill(-pid, isKilled ? SIGKILL : SIGTERM)
                deadline = .now + .milliseconds(Self.grace)
            }
        }
        take()
        // Ends what the program left behind. Its number stays taken until it is waited for.
        kill(-pid, SIGKILL)
        let own = Self.end(of: pid)
        return Outcome(end: why ?? own, output: output)
    }

    private func start(
        _ environment: [String], _ folder: String?, _ input: borrowing Pipe, _ output: borrowing Pipe
    ) throws(SystemError) -> pid_t {
        var words = Self.pointers([path] + arguments)
        var variables = Self.pointers(environment)
        defer { for text in words + variables { free(text) } }
        // Standard input and output block in the program, as programs expect; the ends in this process do not.
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

    /// Copies for a C function that takes a list terminated by `nil`; to be freed by the caller.
    static func pointers(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] { texts.map { strdup($0) } + [nil] }

    /// Waits for a child, whose number is free afterwards.
    private static func end(of pid: pid_t) -> End {
        var status: CInt = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        return status & 0x7F == 0 ? .exited(Int(status >> 8 & 0xFF)) : .signalled(Int(status & 0x7F))
    }

    private static func write(_ rest: inout ArraySlice<UInt8>, to pipe: Pipe) {
        let count = rest.withUnsafeBytes { Glibc.write(pipe.writer, $0.baseAddress, $0.count) }
        if count > 0 { rest = rest.dropFirst(count) }
        // A program that does not read all of its input has not failed.
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
