import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistModel
import HexlistStore
import HexlistTransport
import NIOCore

/// One attempt to fetch a file: opens what is there of it, asks the peer for the rest, writes it, and gives it its name.
///
/// Confined to the event loop; files are opened and written on the threads for them, one piece of work at a time. Bytes that the peer sends
/// meanwhile wait in the connection, which reads no further.
final class PeerFetch: FetchAttempt, FileClientDelegate, @unchecked Sendable {
    private enum Phase {
        /// The partial file is being opened, or a connection is made.
        case preparing
        case asked
        case receiving
        case finishing
        /// All of it is here, and waits for its name.
        case whole
        case ended
    }

    /// The bytes that are being written: the thread's while `isWriting`, else the loop's.
    private final class Taken: @unchecked Sendable {
        var bytes = ByteBuffer()
    }

    let run: TransferAttemptID
    let id: TransferID
    private(set) var row: TransferRow
    private let link: FileLink
    private let dependencies: FetchDependencies
    /// Whether others ask on the same connection: the file is small, and nothing is here of it.
    private let sharesConnection: Bool
    /// Called with the connection that is free again, at most once; and with the end, exactly once unless the run is stopped.
    private let ended: (PeerFetch, FetchEnd, FileClientConnection?) -> Void
    private let progressed: (PeerFetch) -> Void
    /// Called with all bytes of a small file; `written` is the answer.
    private let arrived: (PeerFetch, WholeFile.Content) -> Void
    /// Called with a whole file that waits for its name, and the connection if it is free again.
    private let whole: (PeerFetch, WholeFile, FileClientConnection?) -> Void
    private var phase = Phase.preparing
    private var part: PartFile?
    private var connection: FileClientConnection?
    private let taken = Taken()
    private var isWriting = false
    /// The end that waits for the thread that writes.
    private var pending: FetchEnd?
    private var startedWith: Int64 = 0
    /// Bytes of the file that arrived in this run, taken or not.
    private(set) var arrivedBytes: Int64 = 0
    /// Bytes that are reserved for this run of the peer's day; 0 for a file that somebody asked for.
    private var reserved: Int64 = 0
    /// Whether the peer restarted the file from byte 0, so that bytes of an earlier run were discarded.
    private var hasBegunAnew = false
    private var discards = false
    /// The bytes of a small file, of at most `FileLimits.sharedBytes`, until all are here; `nil` for another. It is written when all of it is
    /// here, and gets its name together with others.
    private var small: ByteBuffer?
    /// The file while it waits for its name.
    private var wholeFile: WholeFile?

    init(
        _ run: TransferAttemptID, _ row: TransferRow, _ link: FileLink, sharesConnection: Bool, with dependencies: FetchDependencies,
        progressed: @escaping (PeerFetch) -> Void, arrived: @escaping (PeerFetch, WholeFile.Content) -> Void,
        whole: @escaping (PeerFetch, WholeFile, FileClientConnection?) -> Void,
        ended: @escaping (PeerFetch, FetchEnd, FileClientConnection?) -> Void
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

    /// - Parameter connect: makes a connection, or passes on why there is none; called once, and only if the peer has to be asked.
    func start(_ connect: @escaping (@escaping @Sendable (Result<FileClientConnection, ConnectFault>) -> Void) -> Void) {
        let (row, dependencies) = (row, dependencies)
        // A file with a digest may be here already. The bytes of a file in memory are lost with the connection, so that is tried only once.
        if sharesConnection || row.isSmallAndNew && row.sha256 == nil && row.attempts <= 1 {
            small = ByteBuffer()
            return connect { self.connected($0) }
        }
        work({ try OpenedTransfer.open(row, dependencies) }) { opened in
            switch opened {
            case .finished(let length, let identity):
                (self.row.bytes, self.row.identity) = (length, identity)
                return self.end(FetchEnd(outcome: .done))
            case .part(let part, let unused):
                self.take(part, unused)
                if part.length == part.goal.size, part.length > 0 { return self.finish() }
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
        reserved = part.goal.size - part.length
        row.reservedBytes = unused
    }

    private func connected(_ result: Result<FileClientConnection, ConnectFault>) {
        guard case .preparing = phase else {
            if case .success(let connection) = result, !sharesConnection { connection.abort() }
            return
        }
        switch result {
        case .failure(.unreachable(let why)): end(FetchEnd(outcome: .interrupted(progressed: false), reason: "unreachable", message: why))
        case .success(let connection):
            self.connection = connection
            phase = .asked
            // Without a digest, a rest of the file is taken only behind what is known to be of the same one.
            let length = isShared && row.entityTag == nil ? 0 : part?.length ?? 0
            connection.get(link.requestTarget, from: length, ifStill: row.entityTag, self)
        }
    }

    // MARK: The answer

    func answered(_ head: FileAnswerHead, on connection: FileClientConnection) {
        switch head.status {
        case 200 where isShared && head.entityTag == nil:
            end(
                FetchEnd(
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
            end(FetchEnd(outcome: .final, reason: "notOffered", message: message))
        case 410:
            end(
                FetchEnd(
                    outcome: .final, reason: "changed",
                    message: "It is not as it was offered: it changed, was deleted or may not be read there."))
        default: refuse("answer", "Its owner answered with status \(head.status).")
        }
    }

    /// The command that fetches a folder, as it can be typed; without the path if that needs more quoting.
    static func command(for link: FileLink) -> String {
        guard case .share(let share, let path) = link.target else { return "`hexlist fetch PEER:PATH`" }
        let text = ([share] + path.names).joined(separator: "/")
        let isPlain = text.utf8.count <= 300 && !text.contains("'") && text.unicodeScalars.allSatisfy(TerminalText.isShown)
        return isPlain ? "`hexlist fetch '\(link.peer.shortID):\(text)'`" : "`hexlist fetch \(link.peer.shortID):PATH`"
    }

    private func receive(from offset: Int64, size: Int64, _ head: FileAnswerHead) {
        // A shared file may have another size by now. A file with a digest may not, and the pool has reserved room for its announced size.
        if let announced = row.size, announced != size, !isShared || row.sha256 != nil {
            return end(FetchEnd(outcome: .final, reason: "changed", message: "It has \(size) bytes; \(announced) were announced."))
        }
        row.size = size
        row.entityTag = head.entityTag.flatMap { EntityTag($0) }?.description
        phase = .receiving
        if small != nil, size <= FileLimits.sharedBytes { return pumpSmall() }
        // The others do not wait for it.
        guard !sharesConnection else {
            return end(
                FetchEnd(outcome: .interrupted(progressed: true), reason: "link", message: "It has grown, and is fetched by itself."))
        }
        small = nil
        if let part, part.length == offset, part.goal.size == size { return pump() }
        // The whole file comes: the partial file, if any, is of another version.
        let (old, row, minimumFree) = (part, row, dependencies.minimumFree)
        part = nil
        startedWith = 0
        if let old, old.length > 0 { hasBegunAnew = true }
        if hasBegunAnew, row.reservedBytes != nil {
            // Only the missing bytes are reserved.
            if let connection = connection.take() { connection.abort() }
            self.row.bytes = 0
            return work({ old?.discard() }) {
                self.refuse("answer", "Its owner sent it from its beginning again, and not what was still to come.")
            }
        }
        work({
            old?.discard()
            guard let goal = PartFile.Goal(row, minimumFree) else { throw FileFault.partLost }
            return try PartFile(folder: row.folder, goal: goal)
        }) { part in
            self.part = part
            // After a kill only the tag says that the partial file belongs to the same version.
            if self.isShared, size > PartFile.stride { self.dependencies.store.updateTransfers([self.row]) { _ in } }
            self.pump()
        }
    }

    func bodyArrived(on connection: FileClientConnection) {
        count(connection)
        if small == nil { pump() } else { pumpSmall() }
    }

    private func count(_ connection: FileClientConnection) { if case .receiving = phase { arrivedBytes = connection.arrivedBytes } }

    /// Keeps what has come; writes it when it is all.
    private func pumpSmall() {
        guard case .receiving = phase, let connection else { return }
        var bytes = ByteBuffer()
        let isEnd = connection.takeBody(into: &bytes)
        count(connection)
        progressed(self)
        small?.writeBuffer(&bytes)
        guard isEnd, let all = small.take() else { return }
        phase = .finishing
        guard let goal = PartFile.Goal(row, dependencies.minimumFree) else { return end(FetchEnd(of: FileFault.partLost)) }
        isWriting = true
        arrived(self, WholeFile.Content(folder: row.folder, goal: goal, bytes: Array(all.readableBytesView)))
    }

    /// A small file is written, or why it is not.
    func written(_ result: Result<WholeFile, any Error>) {
        worked(result) { file in
            self.row.bytes = file.goal.size
            self.phase = .whole
            self.wholeFile = file
            let free = self.leaveConnection()
            self.whole(self, file, free)
        }
    }

    /// Lets go of the connection.
    /// - Returns: the connection if only this run used it and it can be used again.
    private func leaveConnection() -> FileClientConnection? {
        guard let connection = connection.take() else { return nil }
        if sharesConnection {
            connection.giveUp(self)
            return nil
        }
        if connection.isIdle { return connection }
        connection.abort()
        return nil
    }

    /// A whole file has its name, or why it has none.
    func placed(_ result: Result<PartFile.Placement, any Error>) {
        guard case .whole = phase else { return }
        wholeFile = nil
        switch result {
        case .success(let placement):
            row.finalName = placement.name
            row.fileInode = placement.fileInode
            end(FetchEnd(outcome: .done))
        case .failure(let error): end(FetchEnd(ofPlacing: error))
        }
    }

    /// Writes what has come, unless something is being written.
    private func pump() {
        guard case .receiving = phase, !isWriting, let part, let connection else { return }
        let taken = taken
        let isEnd = connection.takeBody(into: &taken.bytes)
        count(connection)
        guard taken.bytes.readableBytes > 0 || isEnd else { return }
        work({
            try taken.bytes.withUnsafeReadableBytes { try part.append($0) }
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
                FetchEnd(
                    outcome: .interrupted(progressed: false), reason: "refused",
                    message: "Its owner closed the connection without an answer; perhaps it does not trust this machine."))
        case .closed, .timeout:
            end(FetchEnd(outcome: .interrupted(progressed: hasProgressed), reason: "link", message: "The link was lost: \(fault)."))
        }
    }

    private func refuse(_ reason: String, _ message: String) { end(FetchEnd(outcome: .sourceFault, reason: reason, message: message)) }

    /// Whether it is something in a share, which has neither size nor digest before it is read.
    private var isShared: Bool { if case .share = link.target { true } else { false } }

    private var hasProgressed: Bool { row.bytes > startedWith }

    /// Whether an interrupted run leaves less than it fetched: then it counts as a failure of the source, of which there may be only so many.
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
                // Another peer sent the same; one is enough.
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
            self.row.bytes = part.goal.size
            self.end(FetchEnd(outcome: .done))
        }
    }

    private enum Finished: Sendable {
        case placed(PartFile.Placement, identity: String?)
        /// The file was here already, under its digest.
        case pooled(PooledFile)
    }

    /// Gives the place of the run to another peer's file; the partial file stays. A run that has all its bytes goes on to its end.
    func giveWay() {
        switch phase {
        case .preparing, .asked, .receiving: end(FetchEnd(outcome: .gaveWay))
        case .finishing, .whole, .ended: break
        }
    }

    /// Somebody asks for the file, which was fetched without being asked for.
    func markRequested() { row.reservedBytes = nil }

    /// Ends as if the link was lost, if bytes are still to come.
    func cutOff() {
        guard phase == .asked || phase == .receiving, let connection else { return }
        connection.abort()
        failed(.closed, on: connection)
    }

    /// Stops without an end.
    /// - Parameter discarding: whether the partial file goes too.
    func stop(discarding: Bool) {
        discards = discarding
        if discarding, let file = wholeFile.take() { discard(file) }
        close()
    }

    /// Runs work on the threads; a fault of it ends the run.
    private func work<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value, then: @escaping (Value) -> Void) {
        isWriting = true
        dependencies.threads.run(on: dependencies.eventLoop, work).assumeIsolated().whenComplete { self.worked($0, then) }
    }

    private func worked<Value>(_ result: Result<Value, any Error>, _ then: (Value) -> Void) {
        isWriting = false
        if case .ended = phase { return settle(result) }
        if let pending {
            adopt(result)
            return end(pending)
        }
        switch result {
        case .success(let value): then(value)
        case .failure(let error): end(FetchEnd(of: error))
        }
    }

    /// The run was stopped while the threads worked for it.
    private func settle<Value>(_ result: Result<Value, any Error>) {
        adopt(result)
        if case .success(let value) = result, let file = value as? WholeFile { discard(file) }
        leavePart()
    }

    /// Takes over a partial file that the threads opened.
    private func adopt<Value>(_ result: Result<Value, any Error>) {
        guard case .success(let value) = result else { return }
        if let opened = value as? OpenedTransfer, case .part(let part, let unused) = opened { take(part, unused) }
        if let part = value as? PartFile { self.part = part }
    }

    /// Deletes a file that got no name.
    private func discard(_ file: WholeFile) {
        let folder = row.folder
        _ = dependencies.threads.run(on: dependencies.eventLoop) { PartFile.discard(folder: folder, goal: file.goal) }
    }

    private func end(_ end: FetchEnd) {
        if case .ended = phase { return }
        // The thread still writes the file; the bytes it wrote count.
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

    /// Gives back the reserved bytes that did not arrive.
    private func giveBack() {
        if let unused = row.reservedBytes { row.reservedBytes = unused + max(0, reserved - arrivedBytes) }
        reserved = 0
    }

    private func close() {
        guard phase != .ended else { return }
        if let connection { count(connection) }
        phase = .ended
        giveBack()
        if let free = leaveConnection() { free.abort() }
        if !isWriting { leavePart() }
    }

    /// Lets go of the partial file: it stays for the next run, or goes.
    private func leavePart() {
        guard let part else { return }
        self.part = nil
        let discards = discards
        _ = dependencies.threads.run(on: dependencies.eventLoop) { if discards { part.discard() } else { try part.suspend() } }
    }
}
