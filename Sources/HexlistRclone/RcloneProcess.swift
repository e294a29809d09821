import AsyncHTTPClient
import HexlistJSON
import HexlistModel
import HexlistSystem
import NIOCore
import NIOHTTP1
import Synchronization

/// The one `rclone rcd` of this process: started with the first request, ended some time after the last one, and with this process.
///
/// The process listens on a loopback port of the system's choice and asks for a login that is new each time. After its end nothing is sent to that
/// port any more, and what came from it and was not read yet counts as lost.
actor RcloneProcess {
    /// One process, from its announcement to its end.
    struct Run: Sendable {
        let number: Int
        let port: UInt16
        let login: RcloneLogin
        let http: HTTPClient
    }

    private enum Stage {
        /// None runs, or it has not answered yet.
        case down
        case up(Run)
        /// None is started any more.
        case stopped
    }

    /// Requests that wait for the start, by number; a cancelled one waits no more.
    private struct Waiting {
        var last = 0
        var requests: [Int: CheckedContinuation<Run, any Error>] = [:]

        mutating func takeAll() -> [CheckedContinuation<Run, any Error>] {
            defer { requests = [:] }
            return Array(requests.values)
        }
    }

    /// The time until the first answer. A command for the password may ask a person.
    private static let startSeconds = 60
    /// The most output that is read at once.
    private static let outputBytes = 16 << 20
    /// A time limit that means none.
    private static let forEver: Int64 = 1 << 40
    private static let errorBytes = 64 << 10

    private let settings: RcloneSettings
    private let group: any EventLoopGroup
    private var stage = Stage.down
    private let waiting = Mutex(Waiting())
    /// Requests under way, those that wait for the start among them.
    private var users = 0
    private var lastUse = ContinuousClock.now
    private var runs = 0
    /// The newest run that answered.
    private var begun = 0
    private let wishes: AsyncStream<Void>
    private let wish: AsyncStream<Void>.Continuation

    init(settings: RcloneSettings, group: any EventLoopGroup) {
        self.settings = settings
        self.group = group
        (wishes, wish) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// The number of processes started so far, and whether one is up.
    var starts: Int { runs }
    var isUp: Bool { if case .up = stage { true } else { false } }

    // MARK: Requests

    /// Calls an operation and reads its answer.
    ///
    /// Cancelling the task closes the connection, which cancels the operation in rclone.
    /// - Parameters:
    ///   - write: writes the members of the operation's parameters.
    ///   - limit: the most bytes of the answer.
    func call(
        _ operation: String, limit: Int, seconds: Int64 = 120, _ write: @Sendable (inout JSONWriter) -> Void
    ) async throws -> JSONObject {
        users += 1
        defer {
            users -= 1
            lastUse = .now
        }
        let run = try await running()
        do {
            let answer = try await Self.call(run, operation, limit: limit, seconds: seconds, write)
            // Another program may listen on that port by now.
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
        // One that was cancelled before will not hear of it again.
        let isCancelled = waiting.withLock { waiting in
            let isCancelled = Task.isCancelled
            if !isCancelled { waiting.requests[number] = continuation }
            return isCancelled
        }
        if isCancelled { continuation.resume(throwing: CancellationError()) } else { wish.yield() }
    }

    private var isAwaited: Bool { waiting.withLock { !$0.requests.isEmpty } }

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
        guard let object = try? JSONObject(JSONValue(parsing: bytes)) else { throw RcloneFault.unreadable("it is no JSON object") }
        guard isGood else { throw RcloneFault.refused(status: Int(response.status.code), message: object["error"]?.string ?? "") }
        return object
    }

    // MARK: Life

    /// Starts processes when they are wished, until the task is cancelled.
    func run() async {
        for await _ in wishes where isAwaited { await attend() }
        stage = .stopped
        fail(.stopping)
    }

    private enum Turn: Sendable {
        case ended
        /// The process is no longer used, or did not begin to answer.
        case over
        case unusable(RcloneFault)
        case nothing
    }

    /// Runs one process to its end.
    private func attend() async {
        guard let path = settings.program else { return fail(.missing) }
        runs += 1
        let login = RcloneLogin()
        let words = StderrReader()
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
        await withTaskGroup(of: Turn.self) { turns in
            turns.addTask {
                _ = await started.run(
                    environment: environment, folder: "/", milliseconds: Self.forEver, outputBytes: Self.outputBytes
                ) { bytes in
                    if let port = words.hear(bytes) { announced.yield(port) }
                }
                announced.finish()
                return .ended
            }
            turns.addTask {
                for await port in ports {
                    if let fault = await self.began(Run(number: own, port: port, login: login, http: http)) {
                        return .unusable(fault)
                    }
                    guard await self.isUp else { return .nothing }  // it ends; its last words say why
                    await self.untilIdle()
                    return .over
                }
                return .nothing
            }
            turns.addTask {
                try? await Task.sleep(for: .seconds(Self.startSeconds))
                return await self.isUp ? .nothing : .over
            }
            for await turn in turns {
                switch turn {
                case .nothing: continue
                case .over: turns.cancelAll()
                case .unusable(let why):
                    fault = why
                    turns.cancelAll()
                case .ended:
                    turns.cancelAll()
                    if self.begun != own { fault = fault ?? words.fault }
                    self.down()
                }
            }
        }
        down()
        try? await http.shutdown()
        // Whoever came while it ended waits for the next one; who waited for this one does not.
        if let fault { fail(fault) }
        if isAwaited { wish.yield() }
    }

    private func down() { if case .up = stage { stage = .down } }

    private func fail(_ fault: RcloneFault) {
        for waits in waiting.withLock({ $0.takeAll() }) { waits.resume(throwing: fault) }
    }

    /// Asks a process that listens for its version and its remotes, for which it has to read the configuration.
    /// - Returns: why it cannot be used; `nil` too where it ends by itself, and says why.
    private func began(_ run: Run) async -> RcloneFault? {
        do {
            let version = try await Self.call(run, "core/version", limit: 64 << 10, seconds: 10) { _ in }
            let parts = version["decomposed"]?.elements?.compactMap(\.integer) ?? []
            guard !parts.lexicographicallyPrecedes(RcloneFault.oldest.map(Int64.init)) else {
                return .tooOld(TerminalText.clean(version["version"]?.string ?? "", columns: 40))
            }
            _ = try await Self.call(run, "config/listremotes", limit: 1 << 20, seconds: Int64(Self.startSeconds)) { _ in }
            stage = .up(run)
            begun = run.number
            lastUse = .now
            for waits in waiting.withLock({ $0.takeAll() }) { waits.resume(returning: run) }
            return nil
        } catch let fault as RcloneFault {
            return fault
        } catch {
            return nil
        }
    }

    /// Returns when the process was not used for the time, and is to end. From then on nobody is given it.
    private func untilIdle() async {
        while !Task.isCancelled, case .up = stage {
            let left = users > 0 ? max(settings.idle, .milliseconds(10)) : lastUse + settings.idle - .now
            guard left > .zero else { return down() }
            try? await Task.sleep(for: left)
        }
    }
}
