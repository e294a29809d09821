import HexlistFiles
import HexlistStore
import NIOCore

/// One attempt to fetch a file of a remote. It creates the partial file, lets rclone write it, reports the progress meanwhile, and verifies
/// the length. The file is then renamed in a batch. An interrupted attempt cannot be continued.
///
/// Used on the event loop only. Files are opened and read on the file threads. A file without its final name is deleted, once rclone no
/// longer writes it.
final class RemoteFetch: FetchAttempt, @unchecked Sendable {
    /// Interval at which the length of the partial file is read.
    private static let progressInterval = TimeAmount.milliseconds(300)

    private enum Phase {
        case preparing, copying, finishing
        /// All bytes were written. The file is being renamed in a batch.
        case whole
        case ended
    }

    private enum Opened: Sendable {
        case finished
        case part(PartFile)
    }

    let run: TransferAttemptID
    let id: TransferID
    private(set) var row: TransferRow
    var arrivedBytes: Int64 { row.bytes }
    private let link: RemoteLink
    private let remotes: any RemoteServices
    private let dependencies: FetchDependencies
    private let progressed: (RemoteFetch) -> Void
    /// Called with a complete file, which is to be renamed.
    private let whole: (RemoteFetch, VerifiedPartFile) -> Void
    /// Called once with the result of the attempt, unless it is stopped.
    private let ended: (RemoteFetch, FetchResult) -> Void
    private var phase = Phase.preparing
    private var part: PartFile?
    private var wholeFile: VerifiedPartFile?
    /// The request to rclone. Its result is passed to `copied`.
    private(set) var copying: Task<Void, Never>?
    private var progressTimer: RepeatedTask?
    private var isReadingProgress = false

    init(
        _ run: TransferAttemptID, _ row: TransferRow, _ link: RemoteLink, of remotes: any RemoteServices,
        with dependencies: FetchDependencies,
        progressed: @escaping (RemoteFetch) -> Void, whole: @escaping (RemoteFetch, VerifiedPartFile) -> Void,
        ended: @escaping (RemoteFetch, FetchResult) -> Void
    ) {
        self.run = run
        id = TransferID(row.id)
        self.row = row
        self.link = link
        self.remotes = remotes
        self.dependencies = dependencies
        self.progressed = progressed
        self.whole = whole
        self.ended = ended
    }

    func start() {
        row.bytes = 0
        let (row, minimumFree) = (row, dependencies.minimumFree)
        work({ () throws -> Opened in
            guard let specification = PartFile.Specification(row, minimumFree) else { throw FileFault.partLost }
            if let placement = PartFile.Placement(row),
                try PartFile.recover(folder: row.folder, specification: specification, placement: placement) == .finished
            {
                return .finished
            }
            PartFile.discard(folder: row.folder, specification: specification)
            return .part(try PartFile(folder: row.folder, specification: specification))
        }) { opened in
            switch opened {
            case .finished:
                self.row.bytes = self.row.size ?? 0
                self.end(FetchResult(outcome: .done))
            case .part(let part):
                self.part = part
                self.copy(into: part)
            }
        }
    }

    // MARK: Copying

    private func copy(into part: PartFile) {
        phase = .copying
        let (remotes, link, folder, name, eventLoop) = (remotes, link, row.folder, part.specification.partName, dependencies.eventLoop)
        copying = Task {
            let result: Result<Void, any Error>
            do { result = .success(try await remotes.copy(link, to: folder, as: name)) } catch { result = .failure(error) }
            eventLoop.execute { self.copied(result) }
        }
        progressTimer = eventLoop.scheduleRepeatedTask(initialDelay: Self.progressInterval, delay: Self.progressInterval) { [weak self] _ in
            self?.updateProgress(from: part)
        }
    }

    private func updateProgress(from part: PartFile) {
        guard case .copying = phase, !isReadingProgress else { return }
        isReadingProgress = true
        dependencies.threads.run(on: dependencies.eventLoop) { try part.writtenBytes() }.assumeIsolated().whenComplete { result in
            self.isReadingProgress = false
            guard case .copying = self.phase, case .success(let bytes) = result else { return }
            guard bytes <= part.specification.size else { return self.end(Self.otherSize) }
            guard bytes > self.row.bytes else { return }
            self.row.bytes = bytes
            self.progressed(self)
        }
    }

    private static let otherSize = FetchResult(
        outcome: .final, reason: "changed", message: "It has another size than was listed; fetch it again.")

    /// Handles the end of the request to rclone, which no longer writes the file.
    private func copied(_ result: Result<Void, any Error>) {
        copying = nil
        guard case .copying = phase, let part else { return leavePart() }
        endLooks()
        switch result {
        case .failure(let fault as RemoteFault):
            end(FetchResult(outcome: fault.outcome, reason: fault.reason, message: fault.message))
        case .failure(let error): end(FetchResult(of: error))
        case .success:
            phase = .finishing
            work({ try part.takeOver() }) { file in
                self.part = nil
                self.row.bytes = file.specification.size
                self.phase = .whole
                self.wholeFile = file
                self.whole(self, file)
            }
        }
    }

    private func endLooks() {
        progressTimer?.cancel()
        progressTimer = nil
    }

    // MARK: End of the attempt

    func placed(_ result: Result<PartFile.Placement, any Error>) {
        guard case .whole = phase else { return }
        switch result {
        case .success(let placement):
            wholeFile = nil
            row.finalName = placement.name
            row.fileInode = placement.fileInode
            end(FetchResult(outcome: .done))
        case .failure(let error): end(FetchResult(ofPlacing: error))
        }
    }

    func stop(discarding: Bool) {
        // When the daemon stops, the file may still be renamed. The next start finds out.
        if !discarding { wholeFile = nil }
        close()
    }

    private func end(_ end: FetchResult) {
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

    /// Deletes a file that does not have its final name, unless rclone still writes it.
    private func leavePart() {
        guard copying == nil else { return }
        let (part, file, folder) = (part.take(), wholeFile.take(), row.folder)
        guard part != nil || file != nil else { return }
        _ = dependencies.threads.run(on: dependencies.eventLoop) {
            part?.discard()
            if let file { PartFile.discard(folder: folder, specification: file.specification) }
        }
    }

    /// Runs work on the file threads. An error ends the attempt.
    private func work<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value, then: @escaping (Value) -> Void) {
        dependencies.threads.run(on: dependencies.eventLoop, work).assumeIsolated().whenComplete { result in
            switch (result, self.phase) {
            case (.success(let value), .ended):
                // The attempt has ended while the work was running.
                if let opened = value as? Opened, case .part(let part) = opened { self.part = part }
                if let file = value as? VerifiedPartFile { self.wholeFile = file }
                self.leavePart()
            case (.failure, .ended): break
            case (.success(let value), _): then(value)
            case (.failure(let fault as FileFault), .finishing) where fault.isOtherSize: self.end(Self.otherSize)
            case (.failure(let error), _): self.end(FetchResult(of: error))
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
