import HexlistFiles
import HexlistStore
import NIOCore

/// One attempt at a transfer, as the owner of all of them knows it.
protocol FileAttempt: AnyObject, Sendable {
    var run: TransferRun { get }
    var id: TransferID { get }
    /// The transfer, ahead of the store.
    var row: TransferRow { get }
    /// Bytes that arrived in this attempt.
    var arrivedBytes: Int64 { get }

    /// A whole file has its name, or why it has none.
    func placed(_ result: Result<PartFile.Placement, any Error>)

    /// Stops without an end.
    /// - Parameter discarding: whether what is there of the file goes too.
    func stop(discarding: Bool)
}

/// One attempt to fetch a file of a remote: makes the partial file, has it written by the service, looks meanwhile how far that is, checks the
/// length, and hands it over to get its name. What was interrupted begins anew.
///
/// It has more than 15 properties because it has the parts of one attempt, as `FileRun`. Confined to the event loop; files are opened and
/// looked at on the threads for them. What the service writes is deleted once it has ended, however the attempt did.
final class RemoteRun: FileAttempt, @unchecked Sendable {
    /// The time between two looks at the length.
    private static let lookPause = TimeAmount.milliseconds(300)

    private enum Phase {
        case preparing, copying, finishing
        /// All of it is here, and waits for its name.
        case whole
        case ended
    }

    private enum Opened: Sendable {
        case finished
        case part(PartFile)
    }

    let run: TransferRun
    let id: TransferID
    private(set) var row: TransferRow
    var arrivedBytes: Int64 { row.bytes }
    private let link: RemoteLink
    private let remotes: any ContentServices
    private let means: FileRun.Means
    private let progressed: (RemoteRun) -> Void
    /// Called with a whole file that waits for its name.
    private let whole: (RemoteRun, WholeFile) -> Void
    /// Called with the end, exactly once unless the run is stopped.
    private let ended: (RemoteRun, FileRun.End) -> Void
    private var phase = Phase.preparing
    private var part: PartFile?
    private var wholeFile: WholeFile?
    /// What the service does; the attempt hears of its end in `copied`.
    private(set) var copying: Task<Void, Never>?
    private var looks: RepeatedTask?
    private var isLooking = false

    init(
        _ run: TransferRun, _ row: TransferRow, _ link: RemoteLink, of remotes: any ContentServices, with means: FileRun.Means,
        progressed: @escaping (RemoteRun) -> Void, whole: @escaping (RemoteRun, WholeFile) -> Void,
        ended: @escaping (RemoteRun, FileRun.End) -> Void
    ) {
        self.run = run
        id = TransferID(row.id)
        self.row = row
        self.link = link
        self.remotes = remotes
        self.means = means
        self.progressed = progressed
        self.whole = whole
        self.ended = ended
    }

    func start() {
        row.bytes = 0
        let (row, minimumFree) = (row, means.minimumFree)
        work({ () throws -> Opened in
            guard let goal = PartFile.Goal(row, minimumFree) else { throw FileFault.partLost }
            if let placement = PartFile.Placement(row),
                try PartFile.adopt(folder: row.folder, goal: goal, placement: placement) == .finished
            {
                return .finished
            }
            PartFile.discard(folder: row.folder, goal: goal)
            return .part(try PartFile(folder: row.folder, goal: goal))
        }) { opened in
            switch opened {
            case .finished:
                self.row.bytes = self.row.size ?? 0
                self.end(FileRun.End(outcome: .done))
            case .part(let part):
                self.part = part
                self.copy(into: part)
            }
        }
    }

    // MARK: Copying

    private func copy(into part: PartFile) {
        phase = .copying
        let (remotes, link, folder, name, eventLoop) = (remotes, link, row.folder, part.goal.partName, means.eventLoop)
        copying = Task {
            let result: Result<Void, any Error>
            do { result = .success(try await remotes.copy(link, to: folder, as: name)) } catch { result = .failure(error) }
            eventLoop.execute { self.copied(result) }
        }
        looks = eventLoop.scheduleRepeatedTask(initialDelay: Self.lookPause, delay: Self.lookPause) { [weak self] _ in
            self?.look(at: part)
        }
    }

    private func look(at part: PartFile) {
        guard case .copying = phase, !isLooking else { return }
        isLooking = true
        means.threads.run(on: means.eventLoop) { try part.writtenBytes() }.assumeIsolated().whenComplete { result in
            self.isLooking = false
            guard case .copying = self.phase, case .success(let bytes) = result else { return }
            guard bytes <= part.goal.size else { return self.end(Self.otherSize) }
            guard bytes > self.row.bytes else { return }
            self.row.bytes = bytes
            self.progressed(self)
        }
    }

    private static let otherSize = FileRun.End(
        outcome: .final, reason: "changed", message: "It has another size than was listed; fetch it again.")

    /// The service writes no more.
    private func copied(_ result: Result<Void, any Error>) {
        copying = nil
        guard case .copying = phase, let part else { return leavePart() }
        endLooks()
        switch result {
        case .failure(let fault as RemoteFault):
            end(FileRun.End(outcome: fault.outcome, reason: fault.reason, message: fault.message))
        case .failure(let error): end(FileRun.End(of: error))
        case .success:
            phase = .finishing
            work({ try part.takeOver() }) { file in
                self.part = nil
                self.row.bytes = file.goal.size
                self.phase = .whole
                self.wholeFile = file
                self.whole(self, file)
            }
        }
    }

    private func endLooks() {
        looks?.cancel()
        looks = nil
    }

    // MARK: The end

    func placed(_ result: Result<PartFile.Placement, any Error>) {
        guard case .whole = phase else { return }
        switch result {
        case .success(let placement):
            wholeFile = nil
            row.finalName = placement.name
            row.fileInode = placement.fileInode
            end(FileRun.End(outcome: .done))
        case .failure(let error): end(FileRun.End(ofPlacing: error))
        }
    }

    func stop(discarding: Bool) {
        // Where the daemon ends, the next one may find that it has its name.
        if !discarding { wholeFile = nil }
        close()
    }

    private func end(_ end: FileRun.End) {
        if case .ended = phase { return }
        if end.outcome != .done { row.bytes = 0 }
        close()
        ended(self, end)
    }

    private func close() {
        guard phase != .ended else { return }
        phase = .ended
        endLooks()
        copying?.cancel()
        leavePart()
    }

    /// Deletes what has no name, unless the service still writes it.
    private func leavePart() {
        guard copying == nil else { return }
        let (part, file, folder) = (part.take(), wholeFile.take(), row.folder)
        guard part != nil || file != nil else { return }
        _ = means.threads.run(on: means.eventLoop) {
            part?.discard()
            if let file { PartFile.discard(folder: folder, goal: file.goal) }
        }
    }

    /// Runs work on the threads; a fault of it ends the run.
    private func work<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value, then: @escaping (Value) -> Void) {
        means.threads.run(on: means.eventLoop, work).assumeIsolated().whenComplete { result in
            switch (result, self.phase) {
            case (.success(let value), .ended):
                // It was stopped meanwhile.
                if let opened = value as? Opened, case .part(let part) = opened { self.part = part }
                if let file = value as? WholeFile { self.wholeFile = file }
                self.leavePart()
            case (.failure, .ended): break
            case (.success(let value), _): then(value)
            case (.failure(let fault as FileFault), .finishing) where fault.isOtherSize: self.end(Self.otherSize)
            case (.failure(let error), _): self.end(FileRun.End(of: error))
            }
        }
    }
}

extension FileFault {
    fileprivate var isOtherSize: Bool {
        switch self {
        case .tooShort, .tooLong: true
        default: false
        }
    }
}
