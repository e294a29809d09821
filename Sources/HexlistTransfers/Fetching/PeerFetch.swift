import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistModel
import HexlistStore
import HexlistTransport
import NIOCore

/// One attempt to fetch a file from a peer: opens the partial file, requests the missing bytes, writes them, and gives the file its final
/// name.
///
/// Confined to the event loop. Files are opened and written on the file threads, one operation at a time. Bytes that arrive during a write
/// stay in the connection, which stops reading (back-pressure).
final class PeerFetch: FetchAttempt, FileClientDelegate, @unchecked Sendable {
    private enum Phase {
        /// The partial file or a connection is being opened.
        case preparing
        case asked
        case receiving
        case finishing
        /// All bytes are written; the file waits for its final name.
        case whole
        case ended
    }

    /// Received bytes that are not written yet. Used by the file thread while `isWriting`, otherwise by the event loop.
    private final class WriteBuffer: @unchecked Sendable {
        var bytes = ByteBuffer()
    }

    let run: TransferAttemptID
    let id: TransferID
    private(set) var row: TransferRow
    private let link: FileLink
    private let dependencies: FetchDependencies
    /// Whether the connection is shared with other attempts, because the file is small and none of it was fetched before.
    private let sharesConnection: Bool
    /// Called with the end of the attempt, exactly once unless it is stopped, and with the connection if it can be reused.
    private let ended: (PeerFetch, FetchResult, FileClientConnection?) -> Void
    private let progressed: (PeerFetch) -> Void
    /// Called with all bytes of a small file. The result is passed to `written`.
    private let arrived: (PeerFetch, WholeFile.Content) -> Void
    /// Called with a complete file that waits for its final name, and the connection if it can be reused.
    private let whole: (PeerFetch, WholeFile, FileClientConnection?) -> Void
    private var phase = Phase.preparing
    private var part: PartFile?
    private var connection: FileClientConnection?
    private let buffer = WriteBuffer()
    private var isWriting = false
    /// The end to report once the write in progress has finished.
    private var pending: FetchResult?
    private var startedWith: Int64 = 0
    /// Number of bytes that arrived in this attempt, written or not.
    private(set) var arrivedBytes: Int64 = 0
    /// Number of bytes of the peer's daily limit that are reserved for this attempt; 0 for a file that the user requested.
    private var reserved: Int64 = 0
    /// Whether the peer sent the file from byte 0 again, so that bytes of an earlier attempt were discarded.
    private var hasBegunAnew = false
    private var discards = false
    /// Received bytes of a small file (`FileLimits.sharedBytes`), which is written once it is complete and gets its final name in a batch;
    /// `nil` for a larger file.
    private var small: ByteBuffer?
    /// The complete file while it waits for its final name.
    private var wholeFile: WholeFile?

    init(
        _ run: TransferAttemptID, _ row: TransferRow, _ link: FileLink, sharesConnection: Bool, with dependencies: FetchDependencies,
        progressed: @escaping (PeerFetch) -> Void, arrived: @escaping (PeerFetch, WholeFile.Content) -> Void,
        whole: @escaping (PeerFetch, WholeFile, FileClientConnection?) -> Void,
        ended: @escaping (PeerFetch, FetchResult, FileClientConnection?) -> Void
    ) {
        self.run = run
        id = TransferID(row.id)
        self.row = row
        self.link = link
        self.sharesConnection = sharesConnection
        self.dependencies = dependencies
        self.progressed = progressed
        self.arrived = arrived
        self.whole = whole
        self.ended = ended
    }

    // MARK: Beginning

    /// - Parameter connect: opens a connection, or reports why there is none. Called at most once.
    func start(_ connect: @escaping (@escaping @Sendable (Result<FileClientConnection, ConnectFault>) -> Void) -> Void) {
        let (row, dependencies) = (row, dependencies)
        // A small file is buffered in memory, unless it has a digest and so may be in the pool. The buffer is lost with the connection, so
        // only the first attempt does this.
        if sharesConnection || row.isSmallAndNew && row.sha256 == nil && row.attempts <= 1 {
            small = ByteBuffer()
            return connect { self.connected($0) }
        }
        work({ try OpenedTransfer.open(row, dependencies) }) { opened in
            switch opened {
            case .finished(let length, let identity):
                (self.row.bytes, self.row.identity) = (length, identity)
                return self.end(FetchResult(outcome: .done))
            case .part(let part, let unused, let isCopy):
                self.take(part, unused)
                if isCopy || part.length == part.specification.size && part.length > 0 { return self.finish() }
            case .nothing: break
            }
            connect { self.connected($0) }
        }
    }

    private func take(_ part: PartFile, _ unused: Int64?) {
        self.part = part
        startedWith = part.length
        row.bytes = part.length
        guard let unused, row.reservedBytes != nil else { return }
        reserved = part.specification.size - part.length
        row.reservedBytes = unused
    }

    private func connected(_ result: Result<FileClientConnection, ConnectFault>) {
        guard case .preparing = phase else {
            if case .success(let connection) = result, !sharesConnection { connection.abort() }
            return
        }
        switch result {
        case .failure(.unreachable(let why)):
            end(FetchResult(outcome: .interrupted(progressed: false), reason: "unreachable", message: why))
        case .success(let connection):
            self.connection = connection
            phase = .asked
            // A shared file has no digest: only a matching entity tag shows that the remaining bytes belong to the same version.
            let length = isShared && row.entityTag == nil ? 0 : part?.length ?? 0
            connection.get(link.requestTarget, from: length, ifStill: row.entityTag, self)
        }
    }

    // MARK: The answer

    func answered(_ head: FileAnswerHead, on connection: FileClientConnection) {
        switch head.status {
        case 200 where isShared && head.entityTag == nil:
            end(
                FetchResult(
                    outcome: .final, reason: "folder",
                    message: "It is a folder; \(Self.command(for: link)) fetches it with all that is in it."))
        case 200: receive(from: 0, size: head.length, head)
        case 206:
            guard case .bytes(let range, let size)? = head.contentRange.flatMap({ ContentRange($0) }), Int64(range.count) == head.length,
                range.lowerBound == part?.length, range.upperBound == size
            else { return refuse("answer", "Its owner sent another part of it than was asked for.") }
            receive(from: range.lowerBound, size: size, head)
        case 404:
            let message =
                isShared
                ? "It is not there, may not be read there, or is not shared with this machine any more."
                : "Its owner does not offer it to this machine, or no longer: the offer ended, or this machine is not trusted there."
            end(FetchResult(outcome: .final, reason: "notOffered", message: message))
        case 410:
            end(
                FetchResult(
                    outcome: .final, reason: "changed",
                    message: "It is not as it was offered: it changed, was deleted or may not be read there."))
        default: refuse("answer", "Its owner answered with status \(head.status).")
        }
    }

    /// Returns the command that fetches a folder, ready to paste; with `PATH` as a placeholder if the path is long or needs escaping.
    static func command(for link: FileLink) -> String {
        guard case .share(let share, let path) = link.target else { return "`hexlist fetch PEER:PATH`" }
        let text = ([share] + path.names).joined(separator: "/")
        let isPlain = text.utf8.count <= 300 && !text.contains("'") && text.unicodeScalars.allSatisfy(TerminalText.isShown)
        return isPlain ? "`hexlist fetch '\(link.peer.shortID):\(text)'`" : "`hexlist fetch \(link.peer.shortID):PATH`"
    }

    private func receive(from offset: Int64, size: Int64, _ head: FileAnswerHead) {
        // A shared file without a digest may have another size than when it was listed. For a file with a digest, the pool has reserved
        // room for the announced size.
        if let announced = row.size, announced != size, !isShared || row.sha256 != nil {
            return end(FetchResult(outcome: .final, reason: "changed", message: "It has \(size) bytes; \(announced) were announced."))
        }
        row.size = size
        row.entityTag = head.entityTag.flatMap { EntityTag($0) }?.description
        phase = .receiving
        if small != nil, size <= FileLimits.sharedBytes { return pumpSmall() }
        // The file grew beyond the limit for shared connections: ends the attempt, so that other small files need not wait.
        guard !sharesConnection else {
            return end(
                FetchResult(outcome: .interrupted(progressed: true), reason: "link", message: "It has grown, and is fetched by itself."))
        }
        small = nil
        if let part, part.length == offset, part.specification.size == size { return pump() }
        // The answer is the whole file, so the partial file belongs to another version.
        let (old, row, minimumFree) = (part, row, dependencies.minimumFree)
        part = nil
        startedWith = 0
        if let old, old.length > 0 { hasBegunAnew = true }
        if hasBegunAnew, row.reservedBytes != nil {
            // The reservation covers only the missing bytes, so the whole file must not be fetched.
            if let connection = connection.take() { connection.abort() }
            self.row.bytes = 0
            return work({ old?.discard() }) {
                self.refuse("answer", "Its owner sent it from its beginning again, and not what was still to come.")
            }
        }
        work({
            old?.discard()
            guard let specification = PartFile.Specification(row, minimumFree) else { throw FileFault.partLost }
            return try PartFile(folder: row.folder, specification: specification)
        }) { part in
            self.part = part
            // After a crash, only the stored entity tag shows that the partial file belongs to this version.
            if self.isShared, size > PartFile.stride { self.dependencies.store.updateTransfers([self.row]) { _ in } }
            self.pump()
        }
    }

    func bodyArrived(on connection: FileClientConnection) {
        count(connection)
        if small == nil { pump() } else { pumpSmall() }
    }

    private func count(_ connection: FileClientConnection) { if case .receiving = phase { arrivedBytes = connection.arrivedBytes } }

    /// Buffers received bytes, and writes the file when it is complete.
    private func pumpSmall() {
        guard case .receiving = phase, let connection else { return }
        var bytes = ByteBuffer()
        let isEnd = connection.takeBody(into: &bytes)
        count(connection)
        progressed(self)
        small?.writeBuffer(&bytes)
        guard isEnd, let all = small.take() else { return }
        phase = .finishing
        guard let specification = PartFile.Specification(row, dependencies.minimumFree) else {
            return end(FetchResult(of: FileFault.partLost))
        }
        isWriting = true
        arrived(self, WholeFile.Content(folder: row.folder, specification: specification, bytes: Array(all.readableBytesView)))
    }

    /// Handles the result of writing a small file.
    func written(_ result: Result<WholeFile, any Error>) {
        worked(result) { file in
            self.row.bytes = file.specification.size
            self.phase = .whole
            self.wholeFile = file
            let free = self.leaveConnection()
            self.whole(self, file, free)
        }
    }

    /// Ends the use of the connection by this attempt.
    /// - Returns: the connection, if this attempt used it alone and it can be reused.
    private func leaveConnection() -> FileClientConnection? {
        guard let connection = connection.take() else { return nil }
        if sharesConnection {
            connection.cancelResponse(to: self)
            return nil
        }
        if connection.isIdle { return connection }
        connection.abort()
        return nil
    }

    /// Handles the result of giving the file its final name.
    func placed(_ result: Result<PartFile.Placement, any Error>) {
        guard case .whole = phase else { return }
        wholeFile = nil
        switch result {
        case .success(let placement):
            row.finalName = placement.name
            row.fileInode = placement.fileInode
            end(FetchResult(outcome: .done))
        case .failure(let error): end(FetchResult(ofPlacing: error))
        }
    }

    /// Writes received bytes, unless a write is in progress.
    private func pump() {
        guard case .receiving = phase, !isWriting, let part, let connection else { return }
        let buffer = buffer
        let isEnd = connection.takeBody(into: &buffer.bytes)
        count(connection)
        guard buffer.bytes.readableBytes > 0 || isEnd else { return }
        work({
            try buffer.bytes.withUnsafeReadableBytes { try part.append($0) }
            return part.length
        }) { length in
            self.row.bytes = length
            self.progressed(self)
            if isEnd { self.finish() } else if self.connection?.isWorthTaking == true { self.pump() }
        }
    }

    func failed(_ fault: FileConnectionFault, on connection: FileClientConnection) {
        count(connection)
        self.connection = nil
        switch fault {
        case .answer(let what): refuse("answer", "Its owner's answer is not understood: \(what).")
        case .closed where phase == .asked && !sharesConnection:
            end(
                FetchResult(
                    outcome: .interrupted(progressed: false), reason: "refused",
                    message: "Its owner closed the connection without an answer; perhaps it does not trust this machine."))
        case .closed, .timeout:
            end(FetchResult(outcome: .interrupted(progressed: hasProgressed), reason: "link", message: "The link was lost: \(fault)."))
        }
    }

    private func refuse(_ reason: String, _ message: String) { end(FetchResult(outcome: .sourceFault, reason: reason, message: message)) }

    /// Whether the link leads to a file or folder in a share, whose size and digest are unknown before it is read.
    private var isShared: Bool { if case .share = link.target { true } else { false } }

    private var hasProgressed: Bool { row.bytes > startedWith }

    /// Whether an interrupted attempt saved too few of the bytes it received. It then counts as a fault of the source, and the number of
    /// such faults is limited.
    private var isWaste: Bool {
        guard case .receiving = phase else { return false }
        let kept = max(0, (part?.length ?? 0) - startedWith)
        return hasBegunAnew || arrivedBytes > 2 * kept
    }

    // MARK: The end

    private func finish() {
        guard let part else { return }
        phase = .finishing
        let (store, pool, row) = (dependencies.store, dependencies.pool, row)
        work({ () -> Finished in
            if let place = row.place, let digest = row.sha256, part.digest == digest, let (_, pooled) = pool.open(digest) {
                // The pool already has this content from another peer, so this file is not needed.
                part.discard()
                if pooled.place != place { pool.folder(place).removeEmpty(digest) }
                return .pooled(pooled)
            }
            let placement = try part.finish { placement in
                try store.placeTransfer(row.id, inode: placement.fileInode, name: placement.name)
            }
            return .placed(placement, identity: row.place == nil ? nil : pool.identity(of: row, name: placement.name))
        }) { finished in
            switch finished {
            case .placed(let placement, let identity):
                (self.row.finalName, self.row.fileInode, self.row.identity) = (placement.name, placement.fileInode, identity)
            case .pooled(let file):
                (self.row.place, self.row.folder) = (file.place, pool.folder(file.place).folder(of: file.sha256))
                (self.row.finalName, self.row.identity) = (file.name, file.identity)
            }
            self.row.bytes = part.specification.size
            self.end(FetchResult(outcome: .done))
        }
    }

    private enum Finished: Sendable {
        case placed(PartFile.Placement, identity: String?)
        /// The pool already had the file.
        case pooled(PooledFile)
    }

    /// Ends the attempt to free its slot for a file of another peer, unless all bytes have arrived. The partial file is kept.
    func preempt() {
        switch phase {
        case .preparing, .asked, .receiving: end(FetchResult(outcome: .preempted))
        case .finishing, .whole, .ended: break
        }
    }

    /// Marks an automatically fetched file as requested by the user, so that the daily limit no longer applies.
    func markRequested() { row.reservedBytes = nil }

    /// Aborts the connection if bytes are still missing, and ends the attempt.
    func cutOff() {
        guard phase == .asked || phase == .receiving, let connection else { return }
        connection.abort()
        failed(.closed, on: connection)
    }

    /// Stops without calling `ended`.
    /// - Parameter discarding: whether to delete the partial file.
    func stop(discarding: Bool) {
        discards = discarding
        if discarding, let file = wholeFile.take() { discard(file) }
        close()
    }

    /// Runs work on the file threads. An error ends the attempt.
    private func work<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value, then: @escaping (Value) -> Void) {
        isWriting = true
        dependencies.threads.run(on: dependencies.eventLoop, work).assumeIsolated().whenComplete { self.worked($0, then) }
    }

    private func worked<Value>(_ result: Result<Value, any Error>, _ then: (Value) -> Void) {
        isWriting = false
        if case .ended = phase { return cleanUp(result) }
        if let pending {
            adopt(result)
            return end(pending)
        }
        switch result {
        case .success(let value): then(value)
        case .failure(let error): end(FetchResult(of: error))
        }
    }

    /// Cleans up the result of work that finished after the attempt had ended.
    private func cleanUp<Value>(_ result: Result<Value, any Error>) {
        adopt(result)
        if case .success(let value) = result, let file = value as? WholeFile { discard(file) }
        leavePart()
    }

    /// Stores a partial file that a file thread has opened, so that it is closed later.
    private func adopt<Value>(_ result: Result<Value, any Error>) {
        guard case .success(let value) = result else { return }
        if let opened = value as? OpenedTransfer, case .part(let part, let unused, _) = opened { take(part, unused) }
        if let part = value as? PartFile { self.part = part }
    }

    /// Deletes a file that has no final name.
    private func discard(_ file: WholeFile) {
        let folder = row.folder
        _ = dependencies.threads.run(on: dependencies.eventLoop) { PartFile.discard(folder: folder, specification: file.specification) }
    }

    private func end(_ end: FetchResult) {
        if case .ended = phase { return }
        // Waits for the write in progress, because its bytes count as fetched.
        guard !isWriting else {
            pending = pending ?? end
            return
        }
        if let part { row.bytes = part.length }
        if let connection { count(connection) }
        var end = end
        if case .sourceFault = end.outcome, end.reason == "otherBytes" { row.bytes = 0 }
        if case .interrupted = end.outcome, isWaste { end.outcome = .sourceFault }
        let free = leaveConnection()
        if case .done = end.outcome { part = nil }
        close()
        ended(self, end, free)
    }

    /// Releases reserved bytes that did not arrive.
    private func releaseReserved() {
        if let unused = row.reservedBytes { row.reservedBytes = unused + max(0, reserved - arrivedBytes) }
        reserved = 0
    }

    private func close() {
        guard phase != .ended else { return }
        if let connection { count(connection) }
        phase = .ended
        releaseReserved()
        if let free = leaveConnection() { free.abort() }
        if !isWriting { leavePart() }
    }

    /// Closes the partial file, and deletes it unless the next attempt needs it.
    private func leavePart() {
        guard let part else { return }
        self.part = nil
        let discards = discards
        _ = dependencies.threads.run(on: dependencies.eventLoop) { if discards { part.discard() } else { try part.suspend() } }
    }
}
