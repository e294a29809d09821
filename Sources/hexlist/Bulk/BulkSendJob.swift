import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel
import Synchronization
import UnixSignals

/// Runs `hexlist send --bulk`.
struct BulkSendJob: Sendable {
    /// Maximum time to wait after Ctrl-C for the daemon's final report.
    private static let finalReportTimeout = Duration.seconds(2)

    let send: HexlistClient.BulkSend
    let path: String
    let isStrict: Bool
    let json: Bool

    private enum FinishReason: Sendable {
        case complete
        /// The user stopped the send, and the results of all accepted hexes are known.
        case stopped
        /// The user stopped the send, and the daemon sent no final report in time.
        case unreported
        case failed(any Error)
        case refused(ExitStatus)
        /// A helper task has ended. The send continues.
        case none
    }

    func run(_ client: HexlistClient) async throws -> ExitStatus {
        let input = BulkInput(path: path)
        let report = BulkReport(json: json, wait: send.wait, to: send.peers)
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let (stops, stop) = AsyncStream.makeStream(of: Void.self)
        let end = await withTaskGroup(of: FinishReason.self) { group in
            group.addTask { await transfer(client, input, report) }
            group.addTask {
                var count = 0
                for await signal in signals {
                    count += 1
                    if count > 1 { _exit(128 + signal.rawValue) }
                    input.stop()
                    stop.yield()
                }
                return .none
            }
            group.addTask {
                for await _ in stops {
                    do {
                        try await Task.sleep(for: Self.finalReportTimeout)
                        return .unreported
                    } catch {
                        return .none
                    }
                }
                return .none
            }
            defer {
                group.cancelAll()
                input.stop()
            }
            for await end in group {
                if case .none = end { continue }
                return end
            }
            return .none
        }
        return try finish(end, input, report)
    }

    private func finish(_ end: FinishReason, _ input: BulkInput, _ report: BulkReport) throws -> ExitStatus {
        switch end {
        case .refused(let status): return status
        case .failed(let error):
            report.connectionLost()
            throw error
        case .stopped: return try report.interrupted(isKnown: true, isWhole: input.position.isAtEnd)
        case .unreported, .none: return try report.interrupted(isKnown: false, isWhole: input.position.isAtEnd)
        case .complete:
            let status = try report.end(hint: input.position.firstLine?.bulkHint)
            guard let failure = input.failure else { return status }
            StandardError.report(failure)
            return .combined([status, .failed])
        }
    }

    private func transfer(_ client: HexlistClient, _ input: BulkInput, _ report: BulkReport) async -> FinishReason {
        do {
            try await input.open()
            if isStrict, let status = try await check(input, report) { return .refused(status) }
            guard !input.isStopped else { return .stopped }
            var isStopped = false
            try await client.sendBulk(send, input: input) { line in
                try report.take(line, at: input.position)
                if case .progress(let progress) = line, progress.ended, input.isStopped { isStopped = true }
                return !isStopped
            }
            return isStopped ? .stopped : .complete
        } catch {
            return .failed(error)
        }
    }

    /// Validates the input for `--strict` before sending.
    /// - Returns: the exit status if a line is invalid; `nil` if all are valid.
    private func check(_ input: BulkInput, _ report: BulkReport) async throws -> ExitStatus? {
        let invalid = Mutex(0)
        let lines = try await input.check(allowsEmpty: send.allowsEmpty) { refusal in
            invalid.withLock { $0 += 1 }
            report.reportRefused(refusal)
        }
        let count = invalid.withLock { $0 }
        guard count > 0, !input.isStopped else { return nil }
        try report.refusedAll(lines: lines, invalid: count, hint: input.position.firstLine?.bulkHint)
        return .usage
    }
}
