public import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistModel
import HexlistStore

/// Lists, cancels and retries transfers.
extension FileTransfers {
    /// Returns a page of transfers, the newest first.
    /// - Parameters:
    ///   - hex: the hex whose links the transfers fetch; `nil` for all transfers.
    ///   - before: the cursor that the previous page returned.
    public func page(
        _ stages: Set<TransferStage>?, hex: Int64? = nil, before: Int64?, limit: Int
    ) async throws -> (rows: [TransferView], next: Int64?) {
        let states = stages.map { Set($0.map(\.stored)) }
        var cursor = before
        while true {
            let page = try await store.read { [cursor] in try $0.transferPage(states, hex: hex, before: cursor, limit: limit) }
            let views = page.items.map(view(of:)).filter { view in stages.map { view.state.known.map($0.contains) ?? false } ?? true }
            guard views.isEmpty, let next = page.next else { return (views, page.next) }
            cursor = next
        }
    }

    /// Returns one transfer.
    /// - Throws: `HexlistError` `notFound`.
    public func transfer(_ id: Int64) async throws -> TransferView {
        guard let row = try await store.read({ try $0.transfers([id]) }).first else { throw Self.noTransfer(id) }
        return view(of: row)
    }

    /// Counts the transfers with these ids by state, and sums up their bytes.
    public func summary(_ ids: ClosedRange<Int64>) async throws -> TransferSummary {
        let sums = try await store.read { try $0.transferSums(ids) }
        var summary = TransferSummary()
        for (state, sum) in sums where state != .waiting {
            switch state {
            case .done: summary.done = sum.count
            case .failed: summary.failed = sum.count
            case .cancelled: summary.cancelled = sum.count
            case .waiting: break
            }
            guard state == .done else { continue }
            summary.bytes = summary.bytes.addingClamped(sum.bytes)
            summary.size = summary.size.addingClamped(sum.size)
        }
        for (id, entry) in fetching.transfers.entries where ids.contains(id.value) {
            switch fetching.queue.state(of: id) {
            case .running: summary.running += 1
            case .waiting(.slot), .waiting(.source): summary.soon += 1
            default: summary.waiting += 1
            }
            summary.bytes = summary.bytes.addingClamped(entry.bytes)
            summary.size = summary.size.addingClamped(entry.size ?? entry.bytes)
        }
        // Rows with the state `waiting` that are not in the queue belong to transfers that have just ended: their rows are still being
        // written.
        let waiting = sums[.waiting]?.count ?? 0
        summary.soon += max(0, waiting - summary.running - summary.soon - summary.waiting)
        return summary
    }

    /// Cancels a transfer and deletes its partial file.
    /// - Throws: `HexlistError` `notFound`; `badRequest` if the transfer has ended.
    public func cancel(_ id: Int64) async throws -> TransferView {
        guard let row = try await store.read({ try $0.transfers([id]) }).first else { throw Self.noTransfer(id) }
        guard fetching.cancel(row, self) else {
            throw HexlistError(
                .badRequest, "Transfer \(id) has already ended (\(view(of: row).state)).",
                hint: "To remove it from the list: `hexlist transfers rm \(id)`.")
        }
        return try await settledTransfer(id)
    }

    /// Retries a transfer immediately: one that waits, has failed or was cancelled.
    public func retry(_ id: Int64, force: Bool) async throws -> TransferView {
        guard var row = try await store.read({ try $0.transfers([id]) }).first else { throw Self.noTransfer(id) }
        if fetching.transfers.contains(TransferID(id)) {
            if case .paused(let until) = fetching.retry(TransferID(id), force: force, self) {
                throw HexlistError(
                    .recentlyFailed,
                    "Transfer \(id) failed several times and pauses for \(max(1, (until - clocks.now).components.seconds)) s.",
                    hint: "To try now: --force.")
            }
            return view(of: row)
        }
        guard row.state != .done else {
            throw HexlistError(.badRequest, "Transfer \(id) is done.", hint: "If the file is gone, fetch it again with `hexlist fetch`.")
        }
        if let other = fetching.known(TransferKey(row)) { throw HexlistError(.badRequest, "Transfer \(other) already fetches this file.") }
        if !force, let until = fetching.pause(of: TransferKey(row), now: clocks.now) {
            throw HexlistError(
                .recentlyFailed,
                "Transfer \(id) failed several times; it can be tried again in \(max(1, (until - clocks.now).components.seconds)) s.",
                hint: "To try now: --force.")
        }
        (row.state, row.reason, row.error, row.endedAt) = (.waiting, nil, nil, nil)
        row.reservedBytes = nil  // the user requests the file, so the limit for automatic fetches does not apply
        try await updated(row)
        fetching.add([row], force: force, self)
        node.notifyWatchers()
        return view(of: row)
    }

    /// Removes a transfer that has ended from the list. Its file stays.
    public func forget(_ id: Int64) async throws {
        let row = try await transfer(id)
        guard try await store.forgetTransfers([id]) == 1 else {
            throw HexlistError(.badRequest, "Transfer \(id) is \(row.state).", hint: "First run `hexlist transfers cancel \(id)`.")
        }
    }

    /// Returns a transfer with its present state. It waits until the store has finished all earlier writes.
    private func settledTransfer(_ id: Int64) async throws -> TransferView {
        try await store.setMeta(["transfersSeen": nil])
        return try await transfer(id)
    }

    private func updated(_ row: TransferRow) async throws {
        let store = store
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            store.updateTransfers([row]) { continuation.resume(with: $0) }
        }
    }

    private static func noTransfer(_ id: Int64) -> HexlistError {
        HexlistError(.notFound, "There is no transfer \(id).", hint: "`hexlist transfers --all` lists the transfers.")
    }

    private func view(of stored: TransferRow) -> TransferView {
        let id = TransferID(stored.id)
        var row = fetching.transfers.row(id) ?? stored
        if let entry = fetching.transfers.entries[id] { (row.bytes, row.size) = (entry.bytes, entry.size) }
        let present = stored.state == .waiting ? fetching.queue.state(of: id) : nil
        var (stage, wait, until): (TransferStage, String?, Timestamp?) = (row.state.stage, nil, nil)
        switch present {
        case .running: stage = .running
        case .waiting(let reason): wait = reason.rawValue
        case .paused(let instant): (stage, until) = (.paused, Timestamp(milliseconds: node.milliseconds(of: instant)))
        case .done, .failed, .cancelled, nil: break
        }
        var view = TransferView(
            id: row.id, hex: row.hex, url: row.url, peer: row.peer, file: row.state == .done ? row.finalName ?? row.name : row.name,
            folder: row.folder, state: stage, waitingFor: wait, until: until, reason: row.reason, message: row.error, bytes: row.bytes,
            size: row.size, createdAt: Timestamp(milliseconds: row.createdAt), endedAt: row.endedAt.map { Timestamp(milliseconds: $0) })
        if let link = RemoteLink(row.url) {
            // The owner of a remote is always this machine, even if it had another identity when the transfer was started.
            (view.service, view.peer) = (link.remote, self.id)
        } else {
            view.tag = node.label(of: row.peer).map(PeerSummary.init)
        }
        return view
    }
}

extension TransferStage {
    fileprivate var stored: StoredTransferState {
        switch self {
        case .waiting, .running, .paused: .waiting
        case .done: .done
        case .failed: .failed
        case .cancelled: .cancelled
        }
    }
}

extension StoredTransferState {
    fileprivate var stage: TransferStage {
        switch self {
        case .waiting: .waiting
        case .done: .done
        case .failed: .failed
        case .cancelled: .cancelled
        }
    }
}
