import HexlistAPI
import HexlistDelivery
import HexlistModel
import HexlistNode
import Hummingbird
import NIOCore

/// Writes the reply to a bulk send: lines for refusals, outcomes and progress, and the summary at the end.
struct BulkReplyWriter: Sendable {
    static let progressInterval = Duration.milliseconds(500)

    let node: Node
    let bulk: OutgoingSend
    /// Display names of the recipients, as of the start of the stream.
    let labels: [PeerID: PeerDisplayName]
    let options: BulkResponder.Options
    let intake: BulkIntake
    private let startedAt = ContinuousClock.now

    init(node: Node, bulk: OutgoingSend, labels: [PeerID: PeerDisplayName], options: BulkResponder.Options, intake: BulkIntake) {
        self.node = node
        self.bulk = bulk
        self.labels = labels
        self.options = options
        self.intake = intake
    }

    /// Writes new lines after each change, until all hexes have an outcome or the maximum wait is over. Then writes the summary.
    func report(_ wakeups: AsyncStream<Void>, to writer: inout any ResponseBodyWriter) async throws {
        var hasToldEnd = false
        var progressAt = ContinuousClock.now + Self.progressInterval
        for await _ in wakeups {
            let isAccepted = intake.progress.isAccepted
            var bytes = newRefusals()
            bytes += try await newOutcomes(all: false)
            if options.reportsProgress, ContinuousClock.now >= progressAt || isAccepted && !hasToldEnd {
                progressAt = .now + Self.progressInterval
                bytes += BulkReplyLine.progress(summary(await node.outbox.progress(of: bulk), ended: isAccepted)).lineBytes
            }
            if isAccepted { hasToldEnd = true }
            if !bytes.isEmpty { try await writer.write(ByteBuffer(bytes: bytes)) }
            guard isAccepted else { continue }
            if options.wait == .queued || intake.progress.error != nil { break }
            if await node.outbox.isOver(bulk, timeout: options.seconds) { break }
        }
        while true {
            let bytes = try await newOutcomes(all: true)
            guard !bytes.isEmpty else { break }
            try await writer.write(ByteBuffer(bytes: bytes))
        }
        var error = intake.progress.error
        if error == nil, !hasToldEnd { error = HexlistError(.internal, "hexlistd stops.", hint: "Send the rest when it runs again.") }
        var bytes = newRefusals()
        if let error { bytes += BulkReplyLine.error(ErrorJSON(error)).lineBytes }
        bytes += BulkReplyLine.summary(summary(try await node.outbox.summary(of: bulk))).lineBytes
        try await writer.write(ByteBuffer(bytes: bytes))
    }

    /// Returns the lines for new refusals and warnings, encoded as JSON.
    private func newRefusals() -> [UInt8] {
        let (refusals, warnings) = intake.take()
        return refusals.flatMap { BulkReplyLine.refused($0).lineBytes } + warnings.flatMap { BulkReplyLine.warning($0).lineBytes }
    }

    /// Returns the lines for new outcomes, encoded as JSON.
    /// - Parameter all: whether to include rows that have no outcome yet.
    private func newOutcomes(all: Bool) async throws -> [UInt8] {
        guard options.reportsAll else {
            guard options.wait == .stored else { return [] }
            return try await node.outbox.takeFailures(of: bulk).flatMap { line($0.line, $0.outcome) }
        }
        var bytes: [UInt8] = []
        while bytes.count < 1 << 20 {
            let rows = try await node.outbox.takeRows(of: bulk, all: all || options.wait == .queued, limit: 500)
            guard !rows.isEmpty else { break }
            for (line, outcome) in rows { bytes += self.line(line, outcome) }
        }
        return bytes
    }

    private func line(_ line: Int?, _ outcome: SendOutcome) -> [UInt8] {
        var outcome = outcome
        outcome.tag = labels[outcome.peer].map(PeerSummary.init)
        return BulkReplyLine.outcome(BulkOutcome(line: line, send: outcome)).lineBytes
    }

    private func summary(_ counts: SendCounts, ended: Bool = false) -> BulkSummary {
        let taken = intake.progress
        let milliseconds = (ContinuousClock.now - startedAt) / .milliseconds(1)
        return BulkSummary(
            lines: taken.lines, invalid: taken.invalid, accepted: counts.accepted, stored: counts.stored, held: counts.held,
            rejected: counts.rejected, failed: counts.failed, queued: counts.queued, earlier: counts.earlier,
            seconds: milliseconds.rounded() / 1_000, ended: ended, untold: taken.untold)
    }
}
