internal import CLinux
public import Foundation
internal import Synchronization

#if canImport(Glibc)
    public import Glibc
#endif

/// A program that a test started. Foundation's `Process` is not used in tests: `run` copies the entry after the last one of a directory
/// of open descriptors, and so reads past the buffer where there are about 1 300 of them, which tests that run at once reach.
public final class ChildProcess: Sendable {
    public struct Failure: Error, CustomStringConvertible {
        public var description: String
    }

    public let identifier: pid_t
    /// The exit status, or the number of the signal that ended it; `nil` while it runs.
    private let ended = Mutex<Int32?>(nil)
    private let end = DispatchGroup()

    /// Seconds after which a program is killed, with its session: longer than the time limit of any test.
    private static let longestLife = 1_500

    /// Starts it in a session of its own, with no descriptors but the standard ones, and with no signal blocked or ignored.
    /// Nothing that waits for its end or reads its output waits for ever: it is killed after 1 500 s.
    /// - Parameters:
    ///   - path: of the program; no shell, no `PATH`.
    ///   - arguments: without the program's own name.
    ///   - environment: the whole environment.
    ///   - input: standard input; /dev/null where it is `nil`, as for the two others. All three stay the caller's to close.
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

    /// Takes the end, on a thread of its own. The number stays this child's until nobody can send it a signal any more.
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

    /// Sends it a signal, unless it has ended.
    public func signal(_ number: CInt) { ended.withLock { if $0 == nil { kill(identifier, number) } } }

    /// Blocks until it has ended.
    /// - Returns: the exit status, or the number of the signal that ended it.
    @discardableResult
    public func waitForEnd() -> Int32 {
        end.wait()
        return ended.withLock { $0 ?? -1 }
    }

    /// Waits until it has ended: see `waitForEnd`.
    @discardableResult
    public func status() async -> Int32 {
        await withCheckedContinuation { continuation in
            end.notify(queue: .global()) { continuation.resume(returning: self.waitForEnd()) }
        }
    }

    /// Runs a program to its end, and blocks until then.
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
