import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel
import Synchronization

/// The host of the browser's extension: answers its messages by the local API, and tells it what happens, until standard input ends.
final class BrowserHost: Sendable {
    /// The seconds a send waits for its peers before what is left is told as queued.
    private static let patience = 3.0
    /// The most requests answered at a time; further messages wait in the pipe.
    private static let atOnce = 8
    /// The most rows of the outbox whose end is told: those of the latest sends.
    private static let followed = 1_000
    /// The time between two looks at the count of unread hexes, however many arrive.
    private static let pause = Duration.milliseconds(200)
    /// The time after which a daemon that went away is looked for again, doubled each time up to the second.
    private static let first = Duration.seconds(1)
    private static let longest = Duration.seconds(30)

    private struct State {
        var unread: Int?
        /// Rows that waited when they were told, the oldest first.
        var rows: [Int64] = []
        var isAway = false
    }

    private let client: HexlistClient
    private let input = NativeInput()
    private let output = NativeOutput()
    private let state = Mutex(State())
    private let looks: AsyncStream<Void>
    private let look: AsyncStream<Void>.Continuation

    init(_ client: HexlistClient) {
        self.client = client
        (looks, look) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// - Throws: `HexlistError` where the input is no messages, after the extension was told.
    func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.followPeers() }
            group.addTask { await self.followEvents() }
            group.addTask { await self.countUnread() }
            group.addTask {
                do { try await self.answerAll() } catch let error as HexlistError {
                    self.tell(.error(id: nil, error))
                    throw error
                }
                throw CancellationError()  // the end of the input ends the rest
            }
            defer { group.cancelAll() }
            do { while try await group.next() != nil {} } catch is CancellationError {}
        }
    }

    private func tell(_ message: BrowserMessage) { output.send(message.bytes) }

    // MARK: Requests

    private func answerAll() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            var running = 0
            while let message = try await input.next() {
                if running == Self.atOnce {
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
            return tell(.error(id: BrowserRequest.id(of: message), HexlistError(.badRequest, "The message cannot be read: \(error).")))
        }
        do {
            tell(.reply(id: request.id, try await reply(request.operation)))
        } catch let error as HexlistError {
            tell(.error(id: request.id, error))
        } catch {
            tell(.error(id: request.id, HexlistError(.internal, "The request was given up.")))
        }
        // What became of rows between their reply and now was told to nobody.
        if case .send = request.operation { await tellRows(onlyChanged: true) }
    }

    private func reply(_ operation: BrowserOperation) async throws -> any JSONEncodable {
        switch operation {
        case .recipients(let index):
            let all = BrowserRecipient.all(try await client.peers(all: true), try await client.groups())
            return BrowserPage.of(all, after: index)
        case .send(let send):
            let outcomes = try await client.send(
                HexlistClient.Send(content: .hex(send.hex.jsonBytes), peers: send.to, timeout: Self.patience, key: "browser:\(send.key)"))
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
            look.yield()
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

    // MARK: What happens

    /// Remembers rows that wait, so that their end is told.
    private func followed(_ rows: [BrowserRow]) -> BrowserRows {
        state.withLock { state in
            for row in rows where row.waits && !state.rows.contains(row.row) { state.rows.append(row.row) }
            state.rows.removeFirst(max(0, state.rows.count - Self.followed))
        }
        return BrowserRows(rows: rows)
    }

    /// Tells how the rows that are followed stand.
    private func tellRows(onlyChanged: Bool = false) async {
        for row in (try? await rows(state.withLock(\.rows))) ?? [] where !onlyChanged || !row.waits { tell(row) }
    }

    private func tell(_ row: BrowserRow) {
        if !row.waits { state.withLock { $0.rows.removeAll { $0 == row.row } } }
        tell(.event("row", row))
    }

    private func followEvents() async {
        await untilTheEnd {
            try await self.client.followEvents(.last(0), types: ["hex"]) { event in
                if event.type == "hex.received" { self.look.yield() }
                if let id = event.outboxID, self.state.withLock({ $0.rows.contains(id) }), let row = try await self.rows([id]).first {
                    self.tell(row)
                }
                return true
            }
        }
    }

    /// The list of peers changes with their counts of unread hexes too, so it also says when a hex was read elsewhere.
    private func followPeers() async {
        await untilTheEnd {
            try await self.client.watchPeers(all: true) { _ in
                if self.state.withLock({ state in
                    defer { state.isAway = false }
                    return state.isAway
                }) {
                    await self.tellRows()
                }
                self.look.yield()
                self.tell(.event("recipients", true))
                return true
            }
        } lost: { error in
            let isNew = self.state.withLock { state in
                defer { (state.isAway, state.unread) = (true, nil) }
                return !state.isAway
            }
            if isNew { self.tell(.event("daemon", BrowserFault(error: error))) }
        }
    }

    /// Runs what follows the daemon, and again after it went away: there is no other word of its return than that it answers.
    private func untilTheEnd(_ body: () async throws -> Void, lost: (HexlistError) -> Void = { _ in }) async {
        var pause = Self.first
        while !Task.isCancelled {
            let start = ContinuousClock.now
            do { try await body() } catch { if !Task.isCancelled, let error = error as? HexlistError { lost(error) } }
            if ContinuousClock.now - start > Self.longest { pause = Self.first }
            try? await Task.sleep(for: pause)
            pause = min(pause * 2, Self.longest)
        }
    }

    private func countUnread() async {
        for await _ in looks {
            guard let status = try? await client.status() else { continue }
            let isNew = state.withLock { state in
                defer { state.unread = status.unread }
                return state.unread != status.unread
            }
            if isNew { tell(.event("unread", status.unread)) }
            try? await Task.sleep(for: Self.pause)
        }
    }
}
