import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel
import Synchronization

/// The native messaging host of the browser extension. Answers its requests by calling the local API, and sends it events, until standard
/// input ends.
final class BrowserHost: Sendable {
    /// Maximum time in seconds that a send waits for receipts. Afterwards its rows are reported as queued.
    private static let sendTimeout = 3.0
    /// Maximum number of concurrent requests. Further requests wait in the pipe.
    private static let requestLimit = 8
    /// Maximum number of outbox rows whose changes are reported. The oldest are dropped.
    private static let followedLimit = 1_000
    /// Minimum time between two queries of the unread count, so that a burst of changes causes few queries.
    private static let unreadDelay = Duration.milliseconds(200)
    /// Delay before the first reconnection to the daemon. Doubled after each failure, up to `longestRetryDelay`.
    private static let retryDelay = Duration.seconds(1)
    private static let longestRetryDelay = Duration.seconds(30)

    private struct State {
        var unread: Int?
        /// The ids of outbox rows that were reported as waiting, oldest first. The extension is notified when they change.
        var rows: [Int64] = []
        var isAway = false
    }

    private let client: HexlistClient
    private let input = NativeMessageReader()
    private let output = NativeMessageWriter()
    private let state = Mutex(State())
    /// Signals that the unread count may have changed.
    private let unreadChanges: AsyncStream<Void>
    private let unreadChanged: AsyncStream<Void>.Continuation

    init(_ client: HexlistClient) {
        self.client = client
        (unreadChanges, unreadChanged) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Runs until standard input ends.
    /// - Throws: `HexlistError` if the input is not a stream of native messages. The extension receives the error too.
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
                throw CancellationError()  // cancels the other tasks
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
        // Some rows may have reached a final state after the reply was created.
        if case .send = request.operation { await sendRows(onlyEnded: true) }
    }

    private func reply(_ operation: BrowserOperation) async throws -> any JSONEncodable {
        switch operation {
        case .recipients(let index):
            let all = BrowserRecipient.all(try await client.peers(all: true), try await client.groups())
            return BrowserListReply.of(all, after: index)
        case .send(let send):
            let outcomes = try await client.send(
                HexlistClient.Send(content: .hex(send.hex.jsonBytes), peers: send.to, timeout: Self.sendTimeout, key: "browser:\(send.key)")
            )
            return followed(outcomes.map { BrowserOutboxRow($0) })
        case .rows(let ids): return followed(try await rows(ids))
        case .inbox(let unread, let cursor, let limit):
            var page = BrowserListReply()
            page.next = try await client.hexes(HexlistClient.HexFilter(unread: unread), limit: limit, after: cursor) {
                _ = page.add(BrowserHexRow(hex: $0))
            }
            return page
        case .hex(let id, let index):
            let hex = try await client.hex(id)
            guard hex.location == "inbox" else { throw HexlistError(.notFound, "Hex \(id) is not in the inbox.") }
            var page = BrowserListReply.of(BrowserItem.all(hex), after: index)
            page.head = [("hex", BrowserHexRow(hex: hex))]
            return page
        case .mark(let ids, let unread):
            let changed = try await client.setUnread(unread, .ids(ids))
            unreadChanged.yield()
            return changed
        case .unread:
            let status = try await client.status()
            return BrowserStatusReply(unread: status.unread, name: TerminalText.clean(status.name, columns: 64))
        }
    }

    private func rows(_ ids: [Int64]) async throws -> [BrowserOutboxRow] {
        var rows: [BrowserOutboxRow] = []
        for id in ids {
            do {
                rows.append(BrowserOutboxRow(try await client.outboxRow(id)))
            } catch let error as HexlistError where error.code == .notFound {
                continue  // the row was removed long after its delivery
            }
        }
        return rows
    }

    // MARK: Events

    /// Remembers the rows that are not in a final state, so that their changes are reported to the extension.
    private func followed(_ rows: [BrowserOutboxRow]) -> BrowserRows {
        state.withLock { state in
            for row in rows where row.waits && !state.rows.contains(row.row) { state.rows.append(row.row) }
            state.rows.removeFirst(max(0, state.rows.count - Self.followedLimit))
        }
        return BrowserRows(rows: rows)
    }

    /// Sends the current states of the remembered rows to the extension.
    private func sendRows(onlyEnded: Bool = false) async {
        for row in (try? await rows(state.withLock(\.rows))) ?? [] where !onlyEnded || !row.waits { send(row) }
    }

    private func send(_ row: BrowserOutboxRow) {
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

    /// Watches the list of peers. The list also contains unread counts, so it changes if a hex is read elsewhere.
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
            if isNew { self.send(.event("daemon", BrowserErrorJSON(error: error))) }
        }
    }

    /// Runs `body` again each time the daemon closes its stream, with increasing delays. Polling is necessary because nothing signals that
    /// the daemon is running again.
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
