import HexlistAPI
import HexlistModel
import HexlistNode
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
/// reply does not keep its hexes from being taken (but with `results=all`, where each has a line).
struct BulkReply: Sendable {
    struct Wishes: Sendable {
        var wait: SendWait
        /// Without progress.
        var seconds: Double
        var allowsEmpty: Bool
        var reportsAll: Bool
        var reportsProgress: Bool
    }

    /// Hexes that go into the outbox in one transaction, at most.
    private static let batchLimit = 1_000
    /// Refused lines that wait to be written, at most; those beyond are counted only.
    private static let refusalLimit = 20_000
    private static let progressInterval = TimeAmount.milliseconds(500)

    let api: APIContext
    let bulk: BulkSend
    let wishes: Wishes
    let wakeups: AsyncStream<Wakeup>
    let wake: AsyncStream<Wakeup>.Continuation
    private let startedAt = ContinuousClock.now
    private let queue = BulkQueue()
    private let intake = Intake()

    enum Wakeup: Sendable {
        case changed, tick
    }

    /// What the reading tasks tell the writing one.
    private final class Intake: Sendable {
        struct State: Sendable {
            var lines = 0
            var invalid = 0
            var refusals: [BulkRefusal] = []
            /// All that came is in the outbox, or was refused.
            var isAccepted = false
            var error: HexlistError?
        }

        let state = Mutex(State())
    }

    init(api: APIContext, peers: [PeerID], force: Bool, wishes: Wishes) async throws {
        self.api = api
        self.wishes = wishes
        // Who looks sees everything there is, so one reason to look is as good as many.
        let (wakeups, wake) = AsyncStream.makeStream(of: Wakeup.self, bufferingPolicy: .bufferingNewest(1))
        (self.wakeups, self.wake) = (wakeups, wake)
        bulk = try await api.node.beginBulk(to: peers, force: force) { wake.yield(.changed) }
    }

    func response(to request: Request) -> Response {
        let body = request.body
        return Response(
            status: .ok, headers: [.contentType: LocalAPI.bulkType, .cacheControl: "no-store"],
            body: ResponseBody { writer in
                do {
                    try await run(body, &writer)
                } catch {
                    await api.node.endBulk(bulk)
                    throw error
                }
                await api.node.endBulk(bulk)
                try await writer.finish(nil)
            })
    }

    private func run(_ body: RequestBody, _ writer: inout any ResponseBodyWriter) async throws {
        let timer = api.eventLoop.scheduleRepeatedTask(initialDelay: Self.progressInterval, delay: Self.progressInterval) { _ in
            wake.yield(.tick)
        }
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
            var preparer = await api.node.preparer()
            var decoder = BulkLineDecoder(allowsEmpty: wishes.allowsEmpty)
            var splitter = LineSplitter(limit: BulkLineDecoder.lineBytes)
            var prepared: [PreparedHex] = []
            let take = { (number: Int, line: [UInt8]?) in
                switch decoder.decode(line) {
                case .blank: return
                case .refused(let code, let message): return refuse(BulkRefusal(line: number, code: code, message: message))
                case .hex(let hex):
                    do throws(HexlistError) {
                        prepared.append(try preparer.prepare(hex.content, key: hex.key, line: number, at: APIContext.wallClock()))
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
            if state.refusals.count < Self.refusalLimit { state.refusals.append(refusal) }
        }
        wake.yield(.changed)
    }

    private func accept() async {
        do {
            while let batch = await queue.take(Self.batchLimit) {
                let refused = try await api.node.enqueue(batch, for: bulk, timeout: wishes.seconds)
                for hex in refused {
                    intake.state.withLock { $0.lines -= 1 }  // it was counted when it was read
                    refuse(BulkRefusal(line: hex.line, code: hex.error.code.rawValue, message: hex.error.message))
                }
            }
        } catch {
            queue.cancel()
            let known = error as? HexlistError ?? HexlistError(.internal, "The outbox failed.", hint: "The log of hexlistd says more.")
            intake.state.withLock { $0.error = known }
        }
        intake.state.withLock { $0.isAccepted = true }
        wake.yield(.changed)
    }

    // MARK: Out

    private func report(_ writer: inout any ResponseBodyWriter) async throws {
        var told: Int64 = 0
        var hasToldEnd = false
        var isOver = false
        for await wakeup in wakeups {
            let (refusals, isAccepted) = intake.state.withLock { state in
                defer { state.refusals = [] }
                return (state.refusals, state.isAccepted)
            }
            var bytes = refusals.flatMap { BulkLine.refused($0).lineBytes }
            bytes += try await ends(&told, all: false)
            if wishes.reportsProgress, wakeup == .tick || isAccepted && !hasToldEnd {
                let counts = await api.node.progress(of: bulk)
                bytes += BulkLine.progress(summary(counts, ended: isAccepted)).lineBytes
            }
            if isAccepted { hasToldEnd = true }
            if !bytes.isEmpty { try await writer.write(ByteBuffer(bytes: bytes)) }
            guard isAccepted else { continue }
            isOver = intake.state.withLock { $0.error != nil }
            if !isOver, wishes.wait == .stored { isOver = await api.node.isOver(bulk, timeout: wishes.seconds) }
            if isOver || wishes.wait == .queued { break }
        }
        while true {
            let bytes = try await ends(&told, all: true)
            guard !bytes.isEmpty else { break }
            try await writer.write(ByteBuffer(bytes: bytes))
        }
        var error = intake.state.withLock { $0.error }
        if error == nil, !hasToldEnd { error = HexlistError(.internal, "hexlistd stops.", hint: "Send the rest when it runs again.") }
        var bytes = error.map { BulkLine.error(ErrorShape($0)).lineBytes } ?? []
        bytes += BulkLine.summary(summary(try await api.node.summary(of: bulk))).lineBytes
        try await writer.write(ByteBuffer(bytes: bytes))
    }

    /// - Parameter all: those too that have no end yet.
    private func ends(_ told: inout Int64, all: Bool) async throws -> [UInt8] {
        guard wishes.reportsAll else {
            guard wishes.wait == .stored else { return [] }
            return try await api.node.takeEnds(of: bulk).flatMap { Self.line($0.line, $0.outcome) }
        }
        let isAwaited = wishes.wait == .stored && !all
        var bytes: [UInt8] = []
        while true {
            let outcomes = try await api.node.outcomes(of: bulk, after: told, all: !isAwaited, limit: 500)
            guard let last = outcomes.last else { return bytes }
            told = last.outcome.outboxID
            for (line, outcome) in outcomes { bytes += Self.line(line, outcome) }
            if bytes.count > 1 << 20 { return bytes }
        }
    }

    private static func line(_ line: Int?, _ outcome: SendOutcome) -> [UInt8] {
        BulkLine.outcome(BulkOutcome(line: line, send: SendShape(outcome))).lineBytes
    }

    private func summary(_ counts: BulkCounts, ended: Bool = false) -> BulkSummary {
        let (lines, invalid) = intake.state.withLock { ($0.lines, $0.invalid) }
        let milliseconds = (ContinuousClock.now - startedAt) / .milliseconds(1)
        return BulkSummary(
            lines: lines, invalid: invalid, accepted: counts.accepted, stored: counts.stored, held: counts.held,
            rejected: counts.rejected, failed: counts.failed, queued: counts.queued, seconds: milliseconds.rounded() / 1_000, ended: ended)
    }
}
