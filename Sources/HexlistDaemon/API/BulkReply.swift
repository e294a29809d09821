import HexlistAPI
import HexlistModel
import HexlistNode
import HexlistStore
import HexlistWire
import Hummingbird
import NIOCore
import ServiceLifecycle
import Synchronization

/// A stream of hexes, one a line, and the reply to it that is written meanwhile.
///
///     body ──► lines ──► decoded, signed ──► BulkQueue ──► outbox, durable ──► delivered
///     reply ◄── refused lines, ends, progress, summary ◄──────┴────────────────────┘
///
/// Three tasks: one reads and decodes, one puts into the outbox, one writes the reply. A caller that does not read its
/// reply does not keep its hexes from being taken.
struct BulkReply: Sendable {
    struct Wishes: Sendable {
        var wait: SendWait
        /// The longest wait without progress, in seconds.
        var seconds: Double
        var allowsEmpty: Bool
        var reportsAll: Bool
        var reportsProgress: Bool
    }

    /// Hexes that go into the outbox in one transaction, at most.
    private static let batchLimit = 1_000
    /// Refused lines that wait to be written, at most; those beyond are counted only.
    private static let refusalLimit = 20_000
    private static let progressInterval = Duration.milliseconds(500)

    let api: APIContext
    private let node: Node
    let bulk: TrackedSend
    /// The labels of the receivers, as they were when the stream began.
    private let labels: [PeerID: PeerLabel]
    let wishes: Wishes
    let wakeups: AsyncStream<Void>
    let wake: AsyncStream<Void>.Continuation
    private let startedAt = ContinuousClock.now
    private let queue = BulkQueue()
    private let intake = Intake()

    /// The state that the reading tasks share with the writing one.
    private final class Intake: Sendable {
        struct State: Sendable {
            var lines = 0
            var invalid = 0
            var refusals: [BulkRefusal] = []
            var warnings: [BulkWarning] = []
            /// Refused lines there was no room for among those.
            var untold = 0
            /// All that came is in the outbox, or was refused.
            var isAccepted = false
            var error: HexlistError?
        }

        let state = Mutex(State())
    }

    init(api: APIContext, peers: [PeerID], force: Bool, wishes: Wishes) async throws {
        self.api = api
        node = api.node
        self.wishes = wishes
        // The writing task looks at everything there is, so one wake-up is as good as many.
        let (wakeups, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        (self.wakeups, self.wake) = (wakeups, wake)
        labels = await node.labels(of: peers)
        bulk = try await node.beginBulk(to: peers, force: force, tellsAll: wishes.reportsAll) { wake.yield(()) }
    }

    func response(to request: Request) -> Response {
        let body = request.body
        return Response(
            status: .ok, headers: [.contentType: LocalAPI.bulkType, .cacheControl: "no-store"],
            body: ResponseBody { writer in
                try await node.following(bulk) { try await run(body, &writer) }
                try await writer.finish(nil)
            })
    }

    private func run(_ body: RequestBody, _ writer: inout any ResponseBodyWriter) async throws {
        let interval = TimeAmount(Self.progressInterval)
        let timer = api.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in wake.yield(()) }
        defer { timer.cancel() }
        try await withGracefulShutdownHandler {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await read(body) }
                group.addTask { await accept() }
                defer {
                    group.cancelAll()
                    queue.cancel()
                }
                try await report(&writer)
            }
        } onGracefulShutdown: {
            wake.finish()
        }
    }

    // MARK: In

    private func read(_ body: RequestBody) async {
        defer { queue.end() }
        do {
            var preparer = await node.preparer()
            var decoder = BulkLineDecoder(allowsEmpty: wishes.allowsEmpty)
            var splitter = LineSplitter(limit: BulkLineDecoder.lineBytes)
            var hints = MemberHints()
            var prepared: [PreparedHex] = []
            let take = { (number: Int, line: [UInt8]?) in
                switch decoder.decode(line) {
                case .blank: return
                case .refused(let code, let message): return refuse(BulkRefusal(line: number, code: code, message: message))
                case .hex(let hex):
                    for hint in hints.hints(of: hex.content) { warn(BulkWarning(line: number, warning: hint)) }
                    do throws(HexlistError) {
                        prepared.append(try preparer.prepare(hex.content, key: hex.key, line: number, at: Timestamp.now.milliseconds))
                    } catch {
                        return refuse(BulkRefusal(line: number, code: error.code.rawValue, message: error.message))
                    }
                }
                intake.state.withLock { $0.lines += 1 }
            }
            for try await buffer in body {
                buffer.withUnsafeReadableBytes { splitter.feed($0, take) }
                guard !prepared.isEmpty else { continue }
                await queue.put(prepared)
                prepared.removeAll(keepingCapacity: true)
            }
            guard !Task.isCancelled else { return }
            splitter.finish(take)
            await queue.put(prepared)
        } catch {
            // The caller went away in the middle; a line that is not whole is none.
            intake.state.withLock { $0.error = HexlistError(.badRequest, "The stream of hexes broke off.") }
        }
    }

    private func refuse(_ refusal: BulkRefusal) {
        intake.state.withLock { state in
            state.lines += 1
            state.invalid += 1
            if state.refusals.count < Self.refusalLimit { state.refusals.append(refusal) } else { state.untold += 1 }
        }
        wake.yield(())
    }

    private func warn(_ warning: BulkWarning) {
        intake.state.withLock { $0.warnings.append(warning) }  // `MemberHints` gives few
        wake.yield(())
    }

    private func accept() async {
        while let batch = await queue.take(Self.batchLimit) {
            let (refused, failure) = await node.enqueue(batch, for: bulk, timeout: wishes.seconds)
            for hex in refused {
                intake.state.withLock { $0.lines -= 1 }  // it was counted when it was read
                refuse(BulkRefusal(line: hex.line, code: hex.error.code.rawValue, message: hex.error.message))
            }
            guard let failure else { continue }
            queue.cancel()
            intake.state.withLock { $0.error = failure }
        }
        intake.state.withLock { $0.isAccepted = true }
        wake.yield(())
    }

    // MARK: Out

    private func report(_ writer: inout any ResponseBodyWriter) async throws {
        var hasToldEnd = false
        var progressAt = ContinuousClock.now + Self.progressInterval
        for await _ in wakeups {
            let isAccepted = intake.state.withLock { $0.isAccepted }
            var bytes = told()
            bytes += try await ends(all: false)
            if wishes.reportsProgress, ContinuousClock.now >= progressAt || isAccepted && !hasToldEnd {
                progressAt = .now + Self.progressInterval
                bytes += BulkLine.progress(summary(await node.progress(of: bulk), ended: isAccepted)).lineBytes
            }
            if isAccepted { hasToldEnd = true }
            if !bytes.isEmpty { try await writer.write(ByteBuffer(bytes: bytes)) }
            guard isAccepted else { continue }
            if wishes.wait == .queued || intake.state.withLock({ $0.error != nil }) { break }
            if await node.isOver(bulk, timeout: wishes.seconds) { break }
        }
        while true {
            let bytes = try await ends(all: true)
            guard !bytes.isEmpty else { break }
            try await writer.write(ByteBuffer(bytes: bytes))
        }
        var error = intake.state.withLock { $0.error }
        if error == nil, !hasToldEnd { error = HexlistError(.internal, "hexlistd stops.", hint: "Send the rest when it runs again.") }
        var bytes = told()
        if let error { bytes += BulkLine.error(ErrorShape(error)).lineBytes }
        bytes += BulkLine.summary(summary(try await node.summary(of: bulk))).lineBytes
        try await writer.write(ByteBuffer(bytes: bytes))
    }

    /// Lines on lines of the input that were not told yet.
    private func told() -> [UInt8] {
        let (refusals, warnings) = intake.state.withLock { state in
            defer { (state.refusals, state.warnings) = ([], []) }
            return (state.refusals, state.warnings)
        }
        return refusals.flatMap { BulkLine.refused($0).lineBytes } + warnings.flatMap { BulkLine.warning($0).lineBytes }
    }

    /// - Parameter all: those too that have no end yet.
    private func ends(all: Bool) async throws -> [UInt8] {
        guard wishes.reportsAll else {
            guard wishes.wait == .stored else { return [] }
            return try await node.takeEnds(of: bulk).flatMap { line($0.line, $0.outcome) }
        }
        var bytes: [UInt8] = []
        while bytes.count < 1 << 20 {
            let rows = try await node.takeRows(of: bulk, all: all || wishes.wait == .queued, limit: 500)
            guard !rows.isEmpty else { break }
            for (line, outcome) in rows { bytes += self.line(line, outcome) }
        }
        return bytes
    }

    private func line(_ line: Int?, _ outcome: SendOutcome) -> [UInt8] {
        var outcome = outcome
        outcome.tag = labels[outcome.peer].map(PeerTag.init)
        return BulkLine.outcome(BulkOutcome(line: line, send: outcome)).lineBytes
    }

    private func summary(_ counts: BulkCounts, ended: Bool = false) -> BulkSummary {
        let (lines, invalid, untold) = intake.state.withLock { ($0.lines, $0.invalid, $0.untold) }
        let milliseconds = (ContinuousClock.now - startedAt) / .milliseconds(1)
        return BulkSummary(
            lines: lines, invalid: invalid, accepted: counts.accepted, stored: counts.stored, held: counts.held,
            rejected: counts.rejected, failed: counts.failed, queued: counts.queued, earlier: counts.earlier,
            seconds: milliseconds.rounded() / 1_000, ended: ended, untold: untold)
    }
}
