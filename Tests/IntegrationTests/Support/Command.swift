import Foundation
import TestSupport

/// Runs programs, each with a time limit (`timeout` of coreutils), so that no test can hang on one.
enum Command {
    struct Output: Sendable, CustomStringConvertible {
        var command: String
        var status: Int32
        var out: String
        var err: String

        var description: String { "\(command)\nstatus \(status)\n\(out)\(err)" }
    }

    struct Failure: Error, CustomStringConvertible {
        var description: String

        init(_ description: String) { self.description = description }
    }

    /// Runs the command until it exits.
    /// - Parameters:
    ///   - seconds: the time limit; the status is 124 after it.
    ///   - environment: additions to this process's environment.
    static func run(
        _ arguments: [String], input: [UInt8] = [], environment: [String: String] = [:], seconds: Int = Patience.command
    ) async throws -> Output {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        // Files instead of pipes, so that a long output never blocks the program.
        try Data(input).write(to: folder.url("in"))
        let files = [try FileHandle(forReadingFrom: folder.url("in")), try folder.newFile("out"), try folder.newFile("err")]
        defer { for file in files { try? file.close() } }
        let child = try start(
            arguments, environment, seconds, input: files[0].fileDescriptor, output: files[1].fileDescriptor,
            errors: files[2].fileDescriptor)
        let status = await child.status()
        return Output(
            command: arguments.joined(separator: " "), status: status, out: try folder.text("out"), err: try folder.text("err"))
    }

    /// Starts the command with its time limit. `--foreground` passes a signal on once, to the command, not also to its process group. After
    /// SIGTERM the command has some seconds before it is killed; hexlistd takes at most 15 s to stop.
    static func start(
        _ arguments: [String], _ environment: [String: String], _ seconds: Int, input: CInt? = nil, output: CInt, errors: CInt
    ) throws -> ChildProcess {
        try ChildProcess(
            "/usr/bin/env", ["timeout", "--foreground", "--kill-after=30", "\(seconds)"] + arguments,
            environment: ProcessInfo.processInfo.environment.merging(environment) { $1 }, input: input, output: output, errors: errors)
    }
}

/// A program whose output is read line by line, so that tests can wait for a line.
final class RunningCommand: Sendable {
    private let child: ChildProcess
    private let lines: AsyncStream<String>
    private let command: String

    /// - Parameters:
    ///   - input: standard input, closed by the caller; /dev/null if `nil`.
    ///   - seconds: the time after which the program is ended and a wait for a line fails.
    init(_ arguments: [String], environment: [String: String] = [:], input: CInt? = nil, seconds: Int = Patience.command) throws {
        command = arguments.joined(separator: " ")
        let pipe = Pipe()
        let writer = pipe.fileHandleForWriting
        defer { try? writer.close() }
        child = try Command.start(
            arguments, environment, seconds, input: input, output: writer.fileDescriptor, errors: writer.fileDescriptor)
        let (lines, linesContinuation) = AsyncStream.makeStream(of: String.self)
        // A thread of its own, because a `readabilityHandler` missed the end of a pipe and the test waited for ever.
        Thread.detachNewThread {
            let reader = pipe.fileHandleForReading
            var splitter = LineSplitter()
            while true {
                let data = reader.availableData
                for line in data.isEmpty ? splitter.rest() : splitter.feed(data) { linesContinuation.yield(line) }
                if data.isEmpty { break }
            }
            linesContinuation.finish()
        }
        self.lines = lines
    }

    /// The first line for which `match` returns a value. Earlier lines are discarded.
    func first<Result>(_ match: (String) throws -> Result?) async throws -> Result {
        var seen: [String] = []
        let result = try await firstIfAny { line -> Result? in
            if let result = try match(line) { return result }
            seen.append(line)
            if seen.count > 40 { seen.removeFirst() }
            return nil
        }
        if let result { return result }
        throw Command.Failure(
            "`\(command)` ended, or its time was up, before the line that was waited for. It said:\n\(seen.joined(separator: "\n"))")
    }

    /// - Returns: `nil` if the program exited or the time limit was reached before such a line.
    func firstIfAny<Result>(_ match: (String) throws -> Result?) async throws -> Result? {
        for await line in lines {
            if let result = try match(line) { return result }
        }
        return nil
    }

    /// Sends SIGTERM to the program's own process and waits for its end.
    @discardableResult
    func stop() async -> Int32 {
        child.signal(SIGTERM)
        return await status()
    }

    func status() async -> Int32 { await child.status() }

    var identifier: Int32 { child.identifier }
}

/// Splits bytes into lines.
private struct LineSplitter {
    private var pending = Data()

    mutating func feed(_ data: Data) -> [String] {
        pending.append(data)
        var lines: [String] = []
        while let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
            lines.append(String(decoding: pending[pending.startIndex..<end], as: UTF8.self))
            pending = Data(pending[pending.index(after: end)...])
        }
        return lines
    }

    mutating func rest() -> [String] {
        defer { pending = Data() }
        return pending.isEmpty ? [] : [String(decoding: pending, as: UTF8.self)]
    }
}

/// A test's own folder with a short path, because a socket's path is limited to 107 bytes.
struct TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = "/tmp/hexlist-test-\(ProcessInfo.processInfo.processIdentifier)-\(UInt32.random(in: 0...UInt32.max))"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    }

    func url(_ name: String) -> URL { URL(fileURLWithPath: "\(path)/\(name)") }

    func newFile(_ name: String) throws -> FileHandle {
        try Data().write(to: url(name))
        return try FileHandle(forWritingTo: url(name))
    }

    func text(_ name: String) throws -> String { String(decoding: try Data(contentsOf: url(name)), as: UTF8.self) }

    func write(_ text: String, to name: String) throws { try Data(text.utf8).write(to: url(name)) }

    /// Removes the file. A failure does not matter.
    func remove() { try? FileManager.default.removeItem(atPath: path) }
}
