import AsyncHTTPClient
import HexlistJSON
import HexlistModel
import HexlistSystem
import NIOCore
import NIOHTTP1
import Synchronization

/// The single `rclone rcd` process. The first request starts it. It is stopped after `RcloneSettings.idle` without requests, and killed
/// when this process ends.
///
/// It listens on a random loopback port, with credentials that are new for each process. Another program may get that port later. So after
/// the process has ended, no request is sent to the port, and responses that were not read yet are discarded.
actor RcloneProcess {
    /// A started rclone process that listens on a port.
    struct Run: Sendable {
        let number: Int
        let port: UInt16
        let login: RcloneServerCredentials
        let http: HTTPClient
    }

    private enum Stage {
        /// The process is not running, or has not passed `check` yet.
        case down
        case up(Run)
        /// The daemon is stopping, so no further process is started.
        case stopped
    }

    /// Requests that wait until the process has started, by number. Cancelled requests are removed.
    private struct Waiting {
        var last = 0
        var requests: [Int: CheckedContinuation<Run, any Error>] = [:]

        mutating func takeAll() -> [CheckedContinuation<Run, any Error>] {
            defer { requests = [:] }
            return Array(requests.values)
        }
    }

    /// Timeout of the start in seconds. It is long, because a password command may wait for the user.
    private static let startSeconds = 60
    /// Maximum bytes of the process's output that are read.
    private static let outputBytes = 16 << 20
    /// A timeout in milliseconds that is never reached.
    private static let noTimeout: Int64 = 1 << 40
    private static let errorBytes = 64 << 10

    private let settings: RcloneSettings
    private let group: any EventLoopGroup
    private var stage = Stage.down
    private let waiting = Mutex(Waiting())
    /// Number of requests in flight, including those that wait until the process has started.
    private var inFlight = 0
    private var lastUse = ContinuousClock.now
    private var runs = 0
    /// The number of the last process that passed `check`.
    private var lastAnswered = 0
    private let startRequests: AsyncStream<Void>
    private let startRequest: AsyncStream<Void>.Continuation

    init(settings: RcloneSettings, group: any EventLoopGroup) {
        self.settings = settings
        self.group = group
        (startRequests, startRequest) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Number of processes started so far.
    var starts: Int { runs }
    var isUp: Bool { if case .up = stage { true } else { false } }

    // MARK: Requests

    /// Calls an rc operation and parses its response. Cancelling the task closes the connection, which cancels the operation in rclone.
    /// - Parameters:
    ///   - limit: maximum size of the response in bytes.
    ///   - seconds: timeout of the call.
    ///   - write: writes the members of the operation's parameters.
    func call(
        _ operation: String, limit: Int, seconds: Int64 = 120, _ write: @Sendable (inout JSONWriter) -> Void
    ) async throws -> JSONObject {
        inFlight += 1
        defer {
            inFlight -= 1
            lastUse = .now
        }
        let run = try await running()
        do {
            let answer = try await Self.call(run, operation, limit: limit, seconds: seconds, write)
            // After the process has ended, another program may use its port, so the response cannot be trusted.
            guard case .up(let now) = stage, now.number == run.number else { throw RcloneFault.ended("") }
            return answer
        } catch let fault as RcloneFault {
            throw fault
        } catch {
            try Task.checkCancellation()
            if (error as? HTTPClientError) == .deadlineExceeded { throw RcloneFault.timedOut }
            throw RcloneFault.ended("")
        }
    }

    private func running() async throws -> Run {
        switch stage {
        case .up(let run): return run
        case .stopped: throw RcloneFault.stopping
        case .down:
            let number = waiting.withLock { waiting in
                waiting.last += 1
                return waiting.last
            }
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in wait(number, continuation) }
            } onCancel: {
                waiting.withLock { $0.requests.removeValue(forKey: number) }?.resume(throwing: CancellationError())
            }
        }
    }

    private func wait(_ number: Int, _ continuation: CheckedContinuation<Run, any Error>) {
        // The task may have been cancelled before its continuation was stored.
        let isCancelled = waiting.withLock { waiting in
            let isCancelled = Task.isCancelled
            if !isCancelled { waiting.requests[number] = continuation }
            return isCancelled
        }
        if isCancelled { continuation.resume(throwing: CancellationError()) } else { startRequest.yield() }
    }

    private var hasWaiting: Bool { waiting.withLock { !$0.requests.isEmpty } }

    private static func call(
        _ run: Run, _ operation: String, limit: Int, seconds: Int64, _ write: @Sendable (inout JSONWriter) -> Void
    ) async throws -> JSONObject {
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(run.port)/\(operation)")
        request.method = .POST
        request.setBasicAuth(username: run.login.user, password: run.login.password)
        request.headers.add(name: "content-type", value: "application/json")
        var parameters = JSONWriter()
        parameters.object { write(&$0) }
        request.body = .bytes(parameters.bytes)
        let response = try await run.http.execute(request, timeout: .seconds(seconds))
        let isGood = response.status == .ok
        let bytes: [UInt8]
        do {
            bytes = Array(try await response.body.collect(upTo: isGood ? limit : errorBytes).readableBytesView)
        } catch is NIOTooManyBytesError {
            throw RcloneFault.unreadable("it is longer than \(isGood ? limit : errorBytes) bytes")
        }
        guard let object = try? JSONObject(JSONValue(parsing: bytes)) else { throw RcloneFault.unreadable("it is not a JSON object") }
        guard isGood else { throw RcloneFault.refused(status: Int(response.status.code), message: object["error"]?.string ?? "") }
        return object
    }

    // MARK: Start and stop

    /// Starts a process whenever a request needs one, until the task is cancelled.
    func run() async {
        for await _ in startRequests where hasWaiting { await runProcess() }
        stage = .stopped
        fail(.stopping)
    }

    private enum TaskResult: Sendable {
        case ended
        /// The process was idle for `RcloneSettings.idle`, or did not start in time.
        case idle
        case unusable(RcloneFault)
        case nothing
    }

    /// Runs one process until it ends.
    private func runProcess() async {
        guard let path = settings.program else { return fail(.missing) }
        runs += 1
        let login = RcloneServerCredentials()
        let output = SharedStderrTail()
        let (ports, announced) = AsyncStream.makeStream(of: UInt16.self, bufferingPolicy: .bufferingNewest(1))
        var program = Program(path, ["rcd", "--rc-addr", "127.0.0.1:0"])
        program.endsWithThisProcess = true
        let (started, environment) = (program, settings.childEnvironment(login))
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 64
        let http = HTTPClient(eventLoopGroupProvider: .shared(group), configuration: configuration)
        let own = runs
        var fault: RcloneFault?
        await withTaskGroup(of: TaskResult.self) { tasks in
            tasks.addTask {
                _ = await started.run(
                    environment: environment, folder: "/", milliseconds: Self.noTimeout, outputBytes: Self.outputBytes
                ) { bytes in
                    if let port = output.read(bytes) { announced.yield(port) }
                }
                announced.finish()
                return .ended
            }
            tasks.addTask {
                for await port in ports {
                    if let fault = await self.check(Run(number: own, port: port, login: login, http: http)) {
                        return .unusable(fault)
                    }
                    guard await self.isUp else { return .nothing }  // the process is ending, and its output has the reason
                    await self.waitUntilIdle()
                    return .idle
                }
                return .nothing
            }
            tasks.addTask {
                try? await Task.sleep(for: .seconds(Self.startSeconds))
                return await self.isUp ? .nothing : .idle
            }
            for await result in tasks {
                switch result {
                case .nothing: continue
                case .idle: tasks.cancelAll()
                case .unusable(let why):
                    fault = why
                    tasks.cancelAll()
                case .ended:
                    tasks.cancelAll()
                    if self.lastAnswered != own { fault = fault ?? output.fault }
                    self.markDown()
                }
            }
        }
        markDown()
        try? await http.shutdown()
        // If the process never passed `check`, all waiting requests fail with its error. If it did, requests that have arrived since it was
        // stopped wait for the next process.
        if let fault { fail(fault) }
        if hasWaiting { startRequest.yield() }
    }

    private func markDown() { if case .up = stage { stage = .down } }

    private func fail(_ fault: RcloneFault) {
        for waits in waiting.withLock({ $0.takeAll() }) { waits.resume(throwing: fault) }
    }

    /// Checks the version of a listening process, and lists its remotes, which makes it read the configuration.
    /// - Returns: the reason why the process cannot be used. `nil` if it can be used, or if the call failed because the process is ending;
    ///   its output then has the reason.
    private func check(_ run: Run) async -> RcloneFault? {
        do {
            let version = try await Self.call(run, "core/version", limit: 64 << 10, seconds: 10) { _ in }
            let parts = version["decomposed"]?.elements?.compactMap(\.integer) ?? []
            guard !parts.lexicographicallyPrecedes(RcloneFault.oldest.map(Int64.init)) else {
                return .tooOld(TerminalText.clean(version["version"]?.string ?? "", columns: 40))
            }
            _ = try await Self.call(run, "config/listremotes", limit: 1 << 20, seconds: Int64(Self.startSeconds)) { _ in }
            stage = .up(run)
            lastAnswered = run.number
            lastUse = .now
            for waits in waiting.withLock({ $0.takeAll() }) { waits.resume(returning: run) }
            return nil
        } catch let fault as RcloneFault {
            return fault
        } catch {
            return nil
        }
    }

    /// Returns once no request has run for `RcloneSettings.idle`. The process is then marked as down, so that no further request is sent to
    /// it.
    private func waitUntilIdle() async {
        while !Task.isCancelled, case .up = stage {
            let left = inFlight > 0 ? max(settings.idle, .milliseconds(10)) : lastUse + settings.idle - .now
            guard left > .zero else { return markDown() }
            try? await Task.sleep(for: left)
        }
    }
}
