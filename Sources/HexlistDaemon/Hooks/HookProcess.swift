import CSpawn
import Dispatch
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// One run of a hook: a session of its own, ended as a whole at the time limit, when the daemon stops, and when the hook
/// itself has ended.
enum HookProcess {
    enum End: Equatable, Sendable {
        case exited(Int)
        case signalled(Int)
        case timedOut
        /// The daemon wanted it to end.
        case stopped
        /// With what the system said.
        case notStarted(String)
    }

    struct Outcome: Equatable, Sendable {
        var end: End
        /// What it wrote, standard output and error, up to `outputBytes`.
        var output: [UInt8] = []
    }

    /// Who writes more finds its output closed (SIGPIPE).
    static let outputBytes = 64 << 10
    /// Milliseconds from SIGTERM to SIGKILL.
    private static let grace: Int64 = 1_000
    /// Stands still while the machine sleeps, as the hook does.
    private typealias Clock = SuspendingClock
    /// A thread for each hook that runs, and none while none does.
    private static let threads = DispatchQueue(label: "hexlist.hooks", attributes: .concurrent)

    /// Ends early, with `stopped`, when the task is cancelled.
    static func run(_ program: String, input: [UInt8], environment: [String], milliseconds: Int64) async -> Outcome {
        let stop: Pipe
        do { stop = try Pipe() } catch { return Outcome(end: .notStarted(error.description)) }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                threads.async {
                    continuation.resume(returning: attend(program, input, environment, milliseconds, stop))
                }
            }
        } onCancel: {
            stop.closeWriter()
        }
    }

    /// On a thread of its own, until the process is gone.
    private static func attend(
        _ program: String, _ input: [UInt8], _ environment: [String], _ milliseconds: Int64, _ stop: Pipe
    ) -> Outcome {
        let (hookInput, hookOutput): (Pipe, Pipe)
        let pid: pid_t
        do {
            (hookInput, hookOutput) = (try Pipe(), try Pipe())
            pid = try start(program, environment, hookInput, hookOutput)
        } catch {
            return Outcome(end: .notStarted(error.description))
        }
        hookInput.closeReader()
        hookOutput.closeWriter()
        let ended = hexlist_pidfd_open(pid)
        defer { if ended >= 0 { close(ended) } }
        var rest = input[...]
        var output: [UInt8] = []
        var why: End?
        // Without a descriptor for its end there is no waiting for it: such a hook is ended at once.
        if ended < 0 { why = .notStarted("its end cannot be awaited") }
        var isKilled = ended < 0
        var deadline = Clock.now + .milliseconds(milliseconds)
        while !isKilled || ended >= 0 {
            var waited = [
                pollfd(fd: ended, events: Int16(POLLIN), revents: 0),
                pollfd(fd: why == nil ? stop.reader : -1, events: Int16(POLLIN), revents: 0),
                pollfd(fd: hookOutput.reader, events: Int16(POLLIN), revents: 0),
                pollfd(fd: hookInput.writer, events: Int16(POLLOUT), revents: 0),
            ]
            let left = isKilled ? -1 : CInt(clamping: Int64(max(0, ((deadline - .now) / .milliseconds(1)).rounded(.up))))
            guard poll(&waited, nfds_t(waited.count), left) >= 0 || errno == EINTR else { break }
            if waited[2].revents != 0 { read(from: hookOutput, into: &output) }
            if waited[0].revents != 0 { break }
            if waited[3].revents != 0 { write(&rest, to: hookInput) }
            if waited[1].revents != 0 || Clock.now >= deadline {
                // First it is asked to end, then it is ended.
                isKilled = why != nil
                why = why ?? (waited[1].revents != 0 ? .stopped : .timedOut)
                kill(-pid, isKilled ? SIGKILL : SIGTERM)
                deadline = .now + .milliseconds(grace)
            }
        }
        read(from: hookOutput, into: &output)
        // Whatever it left behind. Its own number stays taken until it is waited for.
        kill(-pid, SIGKILL)
        var status: CInt = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        let own = status & 0x7F == 0 ? End.exited(Int(status >> 8 & 0xFF)) : .signalled(Int(status & 0x7F))
        return Outcome(end: why ?? own, output: output)
    }

    private static func start(
        _ program: String, _ environment: [String], _ input: borrowing Pipe, _ output: borrowing Pipe
    ) throws(SystemError) -> pid_t {
        var arguments = [strdup(program), nil]
        var variables = environment.map { strdup($0) } + [nil]
        defer { for text in arguments + variables { free(text) } }
        // Standard input and output block in the hook, as programs expect; ours do not.
        input.setBlocking(input.reader)
        output.setBlocking(output.writer)
        var pid: pid_t = 0
        let error = hexlist_spawn(&pid, program, &arguments, &variables, "/", input.reader, output.writer)
        guard error == 0 else { throw SystemError(code: error) }
        return pid
    }

    private static func write(_ rest: inout ArraySlice<UInt8>, to pipe: Pipe) {
        let count = rest.withUnsafeBytes { Glibc.write(pipe.writer, $0.baseAddress, $0.count) }
        if count > 0 { rest = rest.dropFirst(count) }
        // A hook that does not want to know more is no failure.
        if rest.isEmpty || count < 0 && errno != EAGAIN && errno != EINTR { pipe.closeWriter() }
    }

    private static func read(from pipe: Pipe, into output: inout [UInt8]) {
        guard pipe.reader >= 0 else { return }
        var buffer = [UInt8](repeating: 0, count: 8 << 10)
        while output.count < outputBytes {
            let count = buffer.withUnsafeMutableBytes { Glibc.read(pipe.reader, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                if count == 0 || errno != EAGAIN { pipe.closeReader() }
                return
            }
            output += buffer[..<count]
        }
        output.removeLast(output.count - outputBytes)
        pipe.closeReader()
    }
}

/// What the system said.
struct SystemError: Error, CustomStringConvertible {
    var code: CInt
    var description: String { String(cString: strerror(code)) }
}

/// A pipe whose ends are closed one by one, and at last with it. A closed end is -1.
private final class Pipe: Sendable {
    private let ends: Mutex<(reader: CInt, writer: CInt)>

    init() throws(SystemError) {
        var both: [CInt] = [-1, -1]
        guard hexlist_pipe(&both) == 0 else { throw SystemError(code: errno) }
        ends = Mutex((both[0], both[1]))
    }

    deinit {
        closeReader()
        closeWriter()
    }

    var reader: CInt { ends.withLock { $0.reader } }
    var writer: CInt { ends.withLock { $0.writer } }

    func closeReader() { ends.withLock { Self.close(&$0.reader) } }
    func closeWriter() { ends.withLock { Self.close(&$0.writer) } }

    func setBlocking(_ end: CInt) { _ = fcntl(end, F_SETFL, 0) }

    private static func close(_ end: inout CInt) {
        if end >= 0 { Glibc.close(end) }
        end = -1
    }
}
