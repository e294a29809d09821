import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistJSON
import HexlistLocalSend
import HexlistModel
import HexlistStore
import HexlistTransfers
import HexlistTransport
import Logging
import NIOCore

/// Receives the files that LocalSend devices send: drives `DeviceUploadSessions`, writes the bytes, and stores the files of a session as
/// one hex when it ends.
final class DeviceFileReceiver {
    private var inbound = DeviceUploadSessions {
        var random = SystemRandomNumberGenerator()
        return OfferID.random(using: &random).description
    }
    private let timer: DeadlineTimer
    /// The number of sessions whose hexes are being stored; `stop` waits for them.
    private var finishing = 0
    private var whenFinished: [@Sendable () -> Void] = []

    init(on eventLoop: any EventLoop, _ clocks: Clocks) { timer = DeadlineTimer(on: eventLoop, clocks) }

    // MARK: Life cycle

    /// Stores the files of upload sessions that were open when the daemon last stopped.
    func start(_ node: isolated Node) async {
        do {
            let files = node.transfers.deviceFiles
            let rows = try await node.store.read { try $0.arrivals() }
            for session in Set(rows.map(\.session)) { await finish(session, node) }
            try await node.transport.fileThreads.run(on: node.eventLoop) { try files.removeOthers() }.get()
        } catch {
            node.logger.error("files of devices could not be stored", metadata: ["error": "\(error)"])
        }
    }

    /// Ends all upload sessions, and returns when their hexes are stored.
    func stop(_ node: isolated Node) async {
        timer.cancel()
        for ended in inbound.stop() { await finish(ended.id, node) }
    }

    // MARK: Requests

    func hasSession(_ device: Fingerprint) -> Bool { inbound.hasSession(device) }

    /// Handles a `prepare-upload` request for files: opens a session, refuses it, or asks the user.
    func prepare(_ upload: PrepareUpload, _ exchange: IncomingDeviceRequest, _ node: isolated Node) {
        let fingerprint = exchange.certificate.fingerprint
        let record = node.registry.devices[fingerprint.peerID].flatMap { $0.fingerprint == fingerprint ? $0 : nil }
        let sender = DeviceUploadSessions.Sender(
            fingerprint: fingerprint, trust: record?.trust ?? .stranger, receive: record?.receive ?? .inbox)
        let strangersMayAsk = node.configuration.announce && node.configuration.receiveFrom != .trusted
        switch inbound.prepare(from: sender, strangersMayAsk: strangersMayAsk) {
        case .refused(403):
            exchange.answer(403, DeviceRequests.message("\(node.configuration.name) does not receive files from this device."))
        case .refused(let status): exchange.answer(status)
        case .accepted: open(upload, exchange, node) { _ in }
        case .ask: node.devices.requests.unanswered.add(upload, exchange, node)
        }
    }

    /// Opens a session if the files fit on the disk, and answers the device.
    /// - Parameter completion: called once, with success if a session was opened, or with the reason for the refusal.
    func open(
        _ upload: PrepareUpload, _ exchange: IncomingDeviceRequest, _ node: isolated Node,
        completion: @escaping @Sendable (Result<Void, HexlistError>) -> Void
    ) {
        let bytes = upload.totalBytes.addingClamped(inbound.openBytes)
        guard bytes <= DeviceFiles.totalBytes else {
            exchange.answer(500, DeviceRequests.message("These files are too large."))
            return completion(
                .failure(HexlistError(.tooLarge, "Devices may send \(ByteCountText.of(DeviceFiles.totalBytes)) at once; this is more.")))
        }
        let folder = node.transfers.deviceFiles.folder
        let reserve = Int64(node.configuration.limits.diskReserveBytes)
        let bound = NIOLoopBound((self, exchange), eventLoop: node.eventLoop)
        node.transport.fileThreads.run(on: node.eventLoop) { try folder.checkRoom(for: bytes, minimumFree: reserve) }
            .whenComplete { [weak node] result in
                node?.assumeIsolated { node in
                    let (arrivals, exchange) = bound.value
                    if case .failure = result {
                        exchange.answer(500, DeviceRequests.message("There is not enough space for these files."))
                        return completion(.failure(HexlistError(.storageFull, "There is not enough space for these files.")))
                    }
                    let fingerprint = exchange.certificate.fingerprint
                    guard let session = arrivals.inbound.open(upload, from: fingerprint, now: node.clocks.now) else {
                        exchange.answer(409)
                        return completion(
                            .failure(
                                HexlistError(.alreadyRunning, "Too many devices are sending files; the device has to send it again later."))
                        )
                    }
                    exchange.answer(200, Self.accepted(upload, session.id, session.tokens))
                    arrivals.setTimer(node)
                    completion(.success(()))
                }
            }
    }

    private static func accepted(_ upload: PrepareUpload, _ session: String, _ tokens: [String]) -> [UInt8] {
        var json = JSONWriter(wireCapacity: 256)
        json.object { json in
            json.member("sessionId", session)
            json.named("files") { json in
                json.object { json in
                    for (file, token) in zip(upload.files, tokens) { json.member(file.id, token) }
                }
            }
        }
        return json.bytes
    }

    /// Handles an `upload` request: checks its token and length, then writes its body to a partial file.
    func upload(_ exchange: IncomingDeviceRequest, _ node: isolated Node) {
        let (id, now) = (exchange.parameter("sessionId"), node.clocks.now)
        let decision = inbound.upload(
            session: id, file: exchange.parameter("fileId"), token: exchange.parameter("token"), from: exchange.certificate.fingerprint,
            now: now)
        switch decision {
        case .refused(let status): exchange.answer(status)
        case .receive(let index):
            guard let id, let upload = inbound.upload(of: id) else { return exchange.answer(403) }
            if let length = exchange.contentLength, length != upload.files[index].size {
                return end(.failed("Its length differs from the announced one."), id, index, exchange, node)
            }
            receive(upload, id, index, exchange, node)
        }
    }

    private func receive(_ upload: PrepareUpload, _ id: String, _ index: Int, _ exchange: IncomingDeviceRequest, _ node: isolated Node) {
        let (folder, file) = (node.transfers.deviceFiles.folder, upload.files[index])
        let reserve = Int64(node.configuration.limits.diskReserveBytes)
        let modified = file.modified.flatMap { Timestamp(rfc3339: $0) }.map { $0.milliseconds.multipliedReportingOverflow(by: 1_000_000) }
        let bound = NIOLoopBound((self, exchange), eventLoop: node.eventLoop)
        node.transport.fileThreads.run(on: node.eventLoop) {
            try folder.begin(
                id, number: index, size: file.size, digest: file.sha256, modified: modified.flatMap { $0.overflow ? nil : $0.partialValue },
                minimumFree: reserve)
        }.whenComplete { [weak node] result in
            node?.assumeIsolated { node in
                let (arrivals, exchange) = bound.value
                switch result {
                case .failure: arrivals.end(.failed("It could not be written."), id, index, exchange, node)
                case .success(let part):
                    DeviceUploadWriter(
                        exchange, into: part, node.transport.fileThreads, on: node.eventLoop,
                        progressed: { [weak node] in
                            node?.assumeIsolated { $0.devices.requests.files.inbound.progressed(id, now: $0.clocks.now) } ?? false
                        },
                        completion: { [weak node] end in
                            node?.assumeIsolated { $0.devices.requests.files.end(end, id, index, bound.value.1, $0) }
                        }
                    ).start()
                }
            }
        }
    }

    /// Ends an upload. A file is recorded in the store before the device gets its confirmation.
    private func end(_ end: DeviceUploadWriter.End, _ id: String, _ index: Int, _ exchange: IncomingDeviceRequest, _ node: isolated Node) {
        switch end {
        case .stored(let name, let digest):
            guard let upload = inbound.upload(of: id) else { return answer(.failed, nil, id, index, exchange, node) }
            let fingerprint = exchange.certificate.fingerprint
            let file = upload.files[index]
            let row = ArrivalRow(
                session: id, peer: fingerprint.peerID, fingerprint: fingerprint,
                sender: PeerName.cut(upload.info.alias, bytes: NormalizedName.bytes),
                file: name, name: file.path.map(\.description).joined(separator: "/"), size: file.size, sha256: digest,
                mediaType: file.fileType.utf8.contains(UInt8(ascii: "/")) ? file.fileType : MediaType.of(file.fileName),
                modified: file.modified.flatMap { Timestamp(rfc3339: $0) }?.milliseconds)
            let bound = NIOLoopBound((self, exchange), eventLoop: node.eventLoop)
            node.store.add(row, at: node.clocks.milliseconds) { [node] result in
                node.onLoop { node in
                    let (arrivals, exchange) = bound.value
                    if case .failure(let error) = result {
                        node.logger.error("a file of a device could not be recorded", metadata: ["error": "\(error)"])
                        return arrivals.answer(.failed, "It could not be stored.", id, index, exchange, node)
                    }
                    arrivals.answer(.stored, nil, id, index, exchange, node)
                }
            }
        case .otherDigest: answer(.otherDigest, "Its SHA-256 differs from the announced one.", id, index, exchange, node)
        case .failed(let why): answer(.failed, why, id, index, exchange, node)
        case .aborted: answer(.failed, nil, id, index, exchange, node)
        }
    }

    private func answer(
        _ result: DeviceUploadSessions.UploadResult, _ message: String?, _ id: String, _ index: Int, _ exchange: IncomingDeviceRequest,
        _ node: isolated Node
    ) {
        let (status, ended) = inbound.uploadEnded(id, index: index, result, now: node.clocks.now)
        exchange.answer(status, message.map(DeviceRequests.message) ?? [])
        if let ended { finishSoon(ended, node) }
        setTimer(node)
    }

    /// Handles a `cancel` request: ends the device's session. A request without a session ID withdraws the device's `prepare-upload`
    /// request about which the user has not decided yet.
    func cancel(_ exchange: IncomingDeviceRequest, _ node: isolated Node) {
        if exchange.parameter("sessionId") == nil {
            node.devices.requests.unanswered.withdraw(of: exchange.certificate.fingerprint, node)
        }
        if let ended = inbound.cancel(exchange.parameter("sessionId"), from: exchange.certificate.fingerprint) { finishSoon(ended, node) }
        exchange.answer(200)
        setTimer(node)
    }

    // MARK: The end of a session

    private func setTimer(_ node: isolated Node) {
        timer.set(inbound.nextDeadline, node) { node in
            let arrivals = node.devices.requests.files
            for ended in arrivals.inbound.tick(now: node.clocks.now) { arrivals.finishSoon(ended, node) }
            arrivals.setTimer(node)
        }
    }

    private func finishSoon(_ ended: DeviceUploadSessions.Ended, _ node: isolated Node) {
        node.onLoop { node in
            let arrivals = node.devices.requests.files
            arrivals.begin(ended.id, node)
        }
    }

    /// Stores the files of a session as one hex, in the background.
    private func begin(_ session: String, _ node: isolated Node) {
        let (files, store, quotas) = (node.transfers.deviceFiles, node.store, HeldQuotas(node.configuration.limits))
        let trusted = Set(node.registry.devices.values.filter { $0.trust == .trusted }.compactMap(\.fingerprint))
        let at = node.clocks.milliseconds
        let logger = node.logger
        finishing += 1
        node.transport.fileThreads.run(on: node.eventLoop) {
            try Self.store(session, files, store, at: at, trusted: trusted, quotas: quotas)
        }.whenComplete { [weak node] result in
            if case .failure(let error) = result {
                logger.error("files of a device could not be stored", metadata: ["error": "\(error)"])
            }
            node?.assumeIsolated { node in
                let arrivals = node.devices.requests.files
                arrivals.finishing -= 1
                guard arrivals.finishing == 0 else { return }
                let waiting = arrivals.whenFinished
                arrivals.whenFinished = []
                for one in waiting { one() }
            }
        }
    }

    /// Stores the files of a session as one hex. Returns when this and all other storing in progress has ended.
    private func finish(_ session: String, _ node: isolated Node) async {
        begin(session, node)
        let promise = node.eventLoop.makePromise(of: Void.self)
        whenFinished.append { promise.succeed() }
        try? await promise.futureResult.get()
    }

    private static func store(
        _ session: String, _ files: DeviceFiles, _ store: HexStore, at now: Int64, trusted: Set<Fingerprint>, quotas: HeldQuotas
    ) throws {
        let rows = try files.present(store.readSync { try $0.arrivals(of: session) })
        guard let first = rows.first else { return files.folder.remove(session) }
        // An upload session begins only if the device is trusted or the user accepts the files. So the user accepted the files of a device
        // that is not trusted.
        let sender = Sender(
            peer: first.peer, kind: .localsend, fingerprint: first.fingerprint, name: first.sender, address: "localsend",
            isAccepted: !trusted.contains(first.fingerprint))
        let hex = UploadedFilesHexBuilder(rows).hex(from: first.peer, name: first.sender) { OfferID.random }
        _ = try files.finish(rows, as: hex, from: sender, at: now, policy: .everyone, quotas: quotas)
    }
}
