internal import CLinux
public import Foundation
internal import Synchronization

#if canImport(Glibc)
    public import Glibc
#endif

/// A program started by a test. Foundation's `Process` is not used in tests: `run` copies one entry past the end of a directory of open
/// descriptors, and so reads past the buffer at about 1 300 of them, a number that parallel tests reach.
public final class ChildProcess: Sendable {
    public struct Failure: Error, CustomStringConvertible {
        public var description: String
    }

    public let identifier: pid_t
    /// The exit status of the program, or the number of the signal that ended it; `nil` while it runs.
    private let ended = Mutex<Int32?>(nil)
    private let end = DispatchGroup()

    /// Seconds after which a program and its session are killed: more than the time limit of any test.
    private static let longestLife = 1_500

    /// Starts a program in its own session, with only the standard descriptors and without blocked or ignored signals. It is killed after 1
    /// 500 s, so a wait for its end or its output is bounded.
    /// - Parameters:
    ///   - path: the path of the program. Neither a shell nor `PATH` is used.
    ///   - arguments: the arguments without the program's own name.
    ///   - environment: the whole environment.
    ///   - input: the descriptor of standard input; `nil` for /dev/null, as for `output` and `errors`. The caller closes all three.
    public init(
        _ path: String, _ arguments: [String], environment: [String: String] = ProcessInfo.processInfo.environment,
        input: CInt? = nil, output: CInt? = nil, errors: CInt? = nil
    ) throws {
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(null) }
        var words = ([path] + arguments).map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in words + variables { free(text) } }
        var child: pid_t = 0
        let error = hexlist_spawn(&child, path, &words, &variables, nil, input ?? null, output ?? null, errors ?? null)
        guard error == 0 else { throw Failure(description: "\(path) was not started: \(String(cString: strerror(error)))") }
        identifier = child
        end.enter()
        Thread.detachNewThread { [self] in attend() }
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(Self.longestLife)) { [weak self] in
            guard let self else { return }
            ended.withLock { if $0 == nil { kill(-self.identifier, SIGKILL) } }
        }
    }

    /// Reaps the process on its own thread. The process id stays reserved until no signal can be sent to it any more.
    private func attend() {
        var end = siginfo_t()
        while waitid(P_PID, id_t(identifier), &end, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        ended.withLock {
            var status: CInt = 0
            while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
            $0 = status & 0x7F == 0 ? status >> 8 & 0xFF : status & 0x7F
        }
        self.end.leave()
    }

    public func signal(_ number: CInt) { ended.withLock { if $0 == nil { kill(identifier, number) } } }

    /// Blocks until the program has ended.
    /// - Returns: the exit status, or the number of the signal that ended it.
    @discardableResult
    public func waitForEnd() -> Int32 {
        end.wait()
        return ended.withLock { $0 ?? -1 }
    }

    /// Waits until the program has ended: see `waitForEnd`.
    @discardableResult
    public func status() async -> Int32 {
        await withCheckedContinuation { continuation in
            end.notify(queue: .global()) { continuation.resume(returning: self.waitForEnd()) }
        }
    }

    /// Runs a program and blocks until its end.
    /// - Returns: its standard output and standard error, in the order they were written, and its status.
    public static func answer(
        _ path: String, _ arguments: [String], environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws -> (said: String, status: Int32) {
        let pipe = Pipe()
        let writer = pipe.fileHandleForWriting
        let child = try ChildProcess(
            path, arguments, environment: environment, output: writer.fileDescriptor, errors: writer.fileDescriptor)
        try writer.close()
        let said = String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        return (said, child.waitForEnd())
    }
}
