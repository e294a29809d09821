import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel
import Synchronization

/// The native messaging host of the browser extension: answers its requests with the local API and sends it events, until standard input
/// ends.
final class BrowserHost: Sendable {
    /// Seconds a send waits for receipts before its rows are reported as queued.
    private static let sendTimeout = 3.0
    /// Maximum number of concurrent requests; further messages wait in the pipe.
    private static let requestLimit = 8
    /// Maximum number of outbox rows followed to their end; the oldest are dropped.
    private static let followedLimit = 1_000
    /// Minimum time between two queries of the unread count; coalesces bursts.
    private static let unreadDelay = Duration.milliseconds(200)
    /// Delay before reconnecting to the daemon; doubled each time, up to `longestRetryDelay`.
    private static let retryDelay = Duration.seconds(1)
    private static let longestRetryDelay = Duration.seconds(30)

    private struct State {
        var unread: Int?
        /// Rows reported as waiting, oldest first.
        var rows: [Int64] = []
        var isAway = false
    }

    private let client: HexlistClient
    private let input = NativeInput()
    private let output = NativeOutput()
    private let state = Mutex(State())
    /// Signals that the unread count may have changed.
    private let unreadChanges: AsyncStream<Void>
    private let unreadChanged: AsyncStream<Void>.Continuation

    init(_ client: HexlistClient) {
        self.client = client
        (unreadChanges, unreadChanged) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// - Throws: `HexlistError` if the input is not a message stream; the extension also gets the error.
    func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.followPeers() }
            group.addTask { await self.followEvents() }
            group.addTask { await self.countUnread() }
            group.addTask {
                do { try await self.answerAll() } catch let error as HexlistError {
                    self.send(.error(id: nil, error))
                    throw error
                }
                throw CancellationError()  // the end of the input ends the rest
            }
            defer { group.cancelAll() }
            do { while try await group.next() != nil {} } catch is CancellationError {}
        }
    }

    private func send(_ message: BrowserMessage) { output.send(message.bytes) }

    // MARK: Requests

    private func answerAll() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            var running = 0
            while let message = try await input.next() {
                if running == Self.requestLimit {
                    try await group.next()
                    running -= 1
                }
                group.addTask { await self.answer(message) }
                running += 1
            }
        }
    }

    private func answer(_ message: [UInt8]) async {
        let request: BrowserRequest
        do throws(JSONFault) {
            request = try BrowserRequest(message)
        } catch {
            return send(.error(id: BrowserRequest.id(of: message), HexlistError(.badRequest, "The message cannot be read: \(error).")))
        }
        do {
            send(.reply(id: request.id, try await reply(request.operation)))
        } catch let error as HexlistError {
            send(.error(id: request.id, error))
        } catch {
            send(.error(id: request.id, HexlistError(.internal, "The request was cancelled.")))
        }
        // Rows that ended between the reply and now.
        if case .send = request.operation { await sendRows(onlyEnded: true) }
    }

    private func reply(_ operation: BrowserOperation) async throws -> any JSONEncodable {
        switch operation {
        case .recipients(let index):
            let all = BrowserRecipient.all(try await client.peers(all: true), try await client.groups())
            return BrowserPage.of(all, after: index)
        case .send(let send):
            let outcomes = try await client.send(
                HexlistClient.Send(content: .hex(send.hex.jsonBytes), peers: send.to, timeout: Self.sendTimeout, key: "browser:\(send.key)")
            )
            return followed(outcomes.map { BrowserRow($0) })
        case .rows(let ids): return followed(try await rows(ids))
        case .inbox(let unread, let cursor, let limit):
            var page = BrowserPage()
            page.next = try await client.hexes(HexlistClient.HexFilter(unread: unread), limit: limit, after: cursor) {
                _ = page.add(BrowserHexRow(hex: $0))
            }
            return page
        case .hex(let id, let index):
            let hex = try await client.hex(id)
            guard hex.location == "inbox" else { throw HexlistError(.notFound, "Hex \(id) is not in the inbox.") }
            var page = BrowserPage.of(BrowserItem.all(hex), after: index)
            page.head = [("hex", BrowserHexRow(hex: hex))]
            return page
        case .mark(let ids, let unread):
            let changed = try await client.setUnread(unread, .ids(ids))
            unreadChanged.yield()
            return changed
        case .unread:
            let status = try await client.status()
            return BrowserCounts(unread: status.unread, name: TerminalText.clean(status.name, columns: 64))
        }
    }

    private func rows(_ ids: [Int64]) async throws -> [BrowserRow] {
        var rows: [BrowserRow] = []
        for id in ids {
            do {
                rows.append(BrowserRow(try await client.outboxRow(id)))
            } catch let error as HexlistError where error.code == .notFound {
                continue  // it ended long ago
            }
        }
        return rows
    }

    // MARK: Events

    /// Starts following the waiting rows, to report their end.
    private func followed(_ rows: [BrowserRow]) -> BrowserRows {
        state.withLock { state in
            for row in rows where row.waits && !state.rows.contains(row.row) { state.rows.append(row.row) }
            state.rows.removeFirst(max(0, state.rows.count - Self.followedLimit))
        }
        return BrowserRows(rows: rows)
    }

    /// Sends the state of the followed rows.
    private func sendRows(onlyEnded: Bool = false) async {
        for row in (try? await rows(state.withLock(\.rows))) ?? [] where !onlyEnded || !row.waits { send(row) }
    }

    private func send(_ row: BrowserRow) {
        if !row.waits { state.withLock { $0.rows.removeAll { $0 == row.row } } }
        send(.event("row", row))
    }

    private func followEvents() async {
        await repeatedly {
            try await self.client.followEvents(.last(0), types: ["hex"]) { event in
                if event.type == "hex.received" { self.unreadChanged.yield() }
                if let id = event.outboxID, self.state.withLock({ $0.rows.contains(id) }), let row = try await self.rows([id]).first {
                    self.send(row)
                }
                return true
            }
        }
    }

    /// Follows the list of peers. It also changes with the unread counts of peers, for instance when a hex is read elsewhere.
    private func followPeers() async {
        await repeatedly {
            try await self.client.watchPeers(all: true) { _ in
                if self.state.withLock({ state in
                    defer { state.isAway = false }
                    return state.isAway
                }) {
                    await self.sendRows()
                }
                self.unreadChanged.yield()
                self.send(.event("recipients", true))
                return true
            }
        } lost: { error in
            let isNew = self.state.withLock { state in
                defer { (state.isAway, state.unread) = (true, nil) }
                return !state.isAway
            }
            if isNew { self.send(.event("daemon", BrowserFault(error: error))) }
        }
    }

    /// Runs `body` again whenever the daemon closes its stream, with back-off: nothing else signals the return of the daemon.
    private func repeatedly(_ body: () async throws -> Void, lost: (HexlistError) -> Void = { _ in }) async {
        var delay = Self.retryDelay
        while !Task.isCancelled {
            let start = ContinuousClock.now
            do { try await body() } catch { if !Task.isCancelled, let error = error as? HexlistError { lost(error) } }
            if ContinuousClock.now - start > Self.longestRetryDelay { delay = Self.retryDelay }
            try? await Task.sleep(for: delay)
            delay = min(delay * 2, Self.longestRetryDelay)
        }
    }

    private func countUnread() async {
        for await _ in unreadChanges {
            guard let status = try? await client.status() else { continue }
            let isNew = state.withLock { state in
                defer { state.unread = status.unread }
                return state.unread != status.unread
            }
            if isNew { send(.event("unread", status.unread)) }
            try? await Task.sleep(for: Self.unreadDelay)
        }
    }
}
