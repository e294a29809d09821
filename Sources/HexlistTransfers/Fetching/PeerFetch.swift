import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistModel
import HexlistStore
import HexlistTransport
import NIOCore

/// One attempt to fetch a file from a peer. It opens the partial file, requests the missing bytes, writes them, and renames the file to its
/// final name.
///
/// Used on the event loop only. Files are opened and written on the file threads, one operation at a time. Bytes that arrive during a write
/// stay in the connection, which stops reading when it has enough of them.
final class PeerFetch: FetchAttempt, FileClientDelegate, @unchecked Sendable {
    private enum Phase {
        /// The partial file or a connection is being opened.
        case preparing
        case asked
        case receiving
        case finishing
        /// All bytes were written. The file is being renamed in a batch.
        case whole
        case ended
    }

    /// Received bytes that are to be written. Used by the file thread while `isWriting` is `true`, otherwise on the event loop.
    private final class WriteBuffer: @unchecked Sendable {
        var bytes = ByteBuffer()
    }

    let run: TransferAttemptID
    let id: TransferID
    private(set) var row: TransferRow
    private let link: FileLink
    private let dependencies: FetchDependencies
    /// Whether the connection is shared with other attempts. That is the case for a small file of which no byte was fetched before.
    private let sharesConnection: Bool
    /// Called once with the result of the attempt, unless it is stopped. Has the connection if it can be used again.
    private let ended: (PeerFetch, FetchResult, FileClientConnection?) -> Void
    private let progressed: (PeerFetch) -> Void
    /// Called with the content of a small file, which is to be written. The result of writing it is passed to `written`.
    private let arrived: (PeerFetch, VerifiedPartFile.Content) -> Void
    /// Called with a complete file, which is to be renamed. Has the connection if it can be used again.
    private let whole: (PeerFetch, VerifiedPartFile, FileClientConnection?) -> Void
    private var phase = Phase.preparing
    private var part: PartFile?
    private var connection: FileClientConnection?
    private let buffer = WriteBuffer()
    private var isWriting = false
    /// The result of the attempt, if it has to wait for the end of a write; otherwise `nil`.
    private var pending: FetchResult?
    /// Number of bytes that the partial file had at the beginning of the attempt.
    private var startedWith: Int64 = 0
    /// Number of bytes that this attempt has received, written or not.
    private(set) var arrivedBytes: Int64 = 0
    /// Number of bytes taken from the peer's daily limit for this attempt. 0 for a file that the user requested.
    private var reserved: Int64 = 0
    /// Whether the peer sent the file from its first byte again, so that bytes of an earlier attempt were discarded.
    private var hasBegunAnew = false
    /// Whether the partial file is deleted at the end.
    private var discards = false
    /// The received bytes of a small file (at most `FileLimits.sharedBytes`). It is written when it is complete, and renamed in a batch.
    /// `nil` for a larger file.
    private var small: ByteBuffer?
    /// The complete file, until it has its final name.
    private var wholeFile: VerifiedPartFile?

    init(
        _ run: TransferAttemptID, _ row: TransferRow, _ link: FileLink, sharesConnection: Bool, with dependencies: FetchDependencies,
        progressed: @escaping (PeerFetch) -> Void, arrived: @escaping (PeerFetch, VerifiedPartFile.Content) -> Void,
        whole: @escaping (PeerFetch, VerifiedPartFile, FileClientConnection?) -> Void,
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

    // MARK: Start

    /// Begins the attempt.
    /// - Parameter connect: opens a connection, or reports why there is none. Called at most once.
    func start(_ connect: @escaping (@escaping @Sendable (Result<FileClientConnection, ConnectFault>) -> Void) -> Void) {
        let (row, dependencies) = (row, dependencies)
        // A small file is collected in memory, unless it has a digest, in which case the pool may have it. The bytes are lost with the
        // connection, so this is done in the first attempt only.
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
            // A file of a share has no digest. Only if its entity tag is the same, the remaining bytes belong to the same version.
            let length = isShared && row.entityTag == nil ? 0 : part?.length ?? 0
            connection.get(link.requestTarget, from: length, ifStill: row.entityTag, self)
        }
    }

    // MARK: Response

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

    /// Returns the command that fetches a folder, for a message. If the path is long or needs escaping, it is replaced by `PATH`.
    static func command(for link: FileLink) -> String {
        guard case .share(let share, let path) = link.target else { return "`hexlist fetch PEER:PATH`" }
        let text = ([share] + path.names).joined(separator: "/")
        let isPlain = text.utf8.count <= 300 && !text.contains("'") && text.unicodeScalars.allSatisfy(TerminalText.isShown)
        return isPlain ? "`hexlist fetch '\(link.peer.shortID):\(text)'`" : "`hexlist fetch \(link.peer.shortID):PATH`"
    }

    private func receive(from offset: Int64, size: Int64, _ head: FileAnswerHead) {
        // The size of a file of a share may have changed since the listing, if it has no digest. For a file with a digest, the pool has
        // reserved space of exactly this size.
        if let announced = row.size, announced != size, !isShared || row.sha256 != nil {
            return end(FetchResult(outcome: .final, reason: "changed", message: "It has \(size) bytes; \(announced) were announced."))
        }
        row.size = size
        row.entityTag = head.entityTag.flatMap { EntityTag($0) }?.description
        phase = .receiving
        if small != nil, size <= FileLimits.sharedBytes { return pumpSmall() }
        // The file is too large for a shared connection by now. The attempt ends, so that other small files do not have to wait.
        guard !sharesConnection else {
            return end(
                FetchResult(outcome: .interrupted(progressed: true), reason: "link", message: "It has grown, and is fetched by itself."))
        }
        small = nil
        if let part, part.length == offset, part.specification.size == size { return pump() }
        // The response has the whole file, so the partial file belongs to another version.
        let (old, row, minimumFree) = (part, row, dependencies.minimumFree)
        part = nil
        startedWith = 0
        if let old, old.length > 0 { hasBegunAnew = true }
        if hasBegunAnew, row.reservedBytes != nil {
            // Only the missing bytes are reserved, so the whole file must not be fetched.
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
            // After a crash, only the stored entity tag shows to which version the partial file belongs.
            if self.isShared, size > PartFile.stride { self.dependencies.store.updateTransfers([self.row]) { _ in } }
            self.pump()
        }
    }

    func bodyArrived(on connection: FileClientConnection) {
        count(connection)
        if small == nil { pump() } else { pumpSmall() }
    }

    private func count(_ connection: FileClientConnection) { if case .receiving = phase { arrivedBytes = connection.arrivedBytes } }

    /// Collects received bytes of a small file. When it is complete, it is written.
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
        arrived(self, VerifiedPartFile.Content(folder: row.folder, specification: specification, bytes: Array(all.readableBytesView)))
    }

    /// Handles the result of writing a small file.
    func written(_ result: Result<VerifiedPartFile, any Error>) {
        worked(result) { file in
            self.row.bytes = file.specification.size
            self.phase = .whole
            self.wholeFile = file
            let free = self.leaveConnection()
            self.whole(self, file, free)
        }
    }

    /// Gives up the connection.
    /// - Returns: the connection, if no other attempt uses it and it can be used again.
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

    /// Handles the result of renaming the file to its final name.
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

    /// Writes received bytes to the partial file, unless a write is in progress.
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

    /// Whether the link leads into a share. Size and digest of such a file are unknown before it is read.
    private var isShared: Bool { if case .share = link.target { true } else { false } }

    private var hasProgressed: Bool { row.bytes > startedWith }

    /// Whether an interrupted attempt has saved less than half of the bytes that it received. It then counts as a failure of the source, of
    /// which only a limited number is permitted.
    private var isWaste: Bool {
        guard case .receiving = phase else { return false }
        let kept = max(0, (part?.length ?? 0) - startedWith)
        return hasBegunAnew || arrivedBytes > 2 * kept
    }

    // MARK: End of the attempt

    private func finish() {
        guard let part else { return }
        phase = .finishing
        let (store, pool, row) = (dependencies.store, dependencies.pool, row)
        work({ () -> Finished in
            if let place = row.place, let digest = row.sha256, part.digest == digest, let (_, pooled) = pool.open(digest) {
                // The pool has this content from another peer already. The partial file is not needed.
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
        /// The pool had the content already.
        case pooled(PooledFile)
    }

    /// Ends the attempt to free its slot for another peer, unless all bytes have arrived. The partial file stays.
    func preempt() {
        switch phase {
        case .preparing, .asked, .receiving: end(FetchResult(outcome: .preempted))
        case .finishing, .whole, .ended: break
        }
    }

    /// Records that the user has requested the file, so that the limit for automatic fetches no longer applies.
    func markRequested() { row.reservedBytes = nil }

    /// Ends the attempt and closes its connection, if bytes are missing.
    func cutOff() {
        guard phase == .asked || phase == .receiving, let connection else { return }
        connection.abort()
        failed(.closed, on: connection)
    }

    /// Ends the attempt without a report of its result.
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

    /// Cleans up after work that was completed after the end of the attempt.
    private func cleanUp<Value>(_ result: Result<Value, any Error>) {
        adopt(result)
        if case .success(let value) = result, let file = value as? VerifiedPartFile { discard(file) }
        leavePart()
    }

    /// Stores the partial file that a file thread has opened, so that it is closed later.
    private func adopt<Value>(_ result: Result<Value, any Error>) {
        guard case .success(let value) = result else { return }
        if let opened = value as? OpenedTransfer, case .part(let part, let unused, _) = opened { take(part, unused) }
        if let part = value as? PartFile { self.part = part }
    }

    /// Deletes a complete file that does not have its final name.
    private func discard(_ file: VerifiedPartFile) {
        let folder = row.folder
        _ = dependencies.threads.run(on: dependencies.eventLoop) { PartFile.discard(folder: folder, specification: file.specification) }
    }

    private func end(_ end: FetchResult) {
        if case .ended = phase { return }
        // The end waits for the write in progress, because the bytes of that write count as fetched.
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

    /// Releases the reserved bytes that have not arrived.
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

    /// Closes the partial file. It is deleted if no other attempt needs it.
    private func leavePart() {
        guard let part else { return }
        self.part = nil
        let discards = discards
        _ = dependencies.threads.run(on: dependencies.eventLoop) { if discards { part.discard() } else { try part.suspend() } }
    }
}
