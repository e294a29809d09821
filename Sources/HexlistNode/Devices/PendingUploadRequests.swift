import HexlistAPI
import HexlistEventLoop
import HexlistLocalSend
import HexlistModel
import HexlistTransport
import NIOCore

/// The `prepare-upload` requests about which the user has to decide, because their devices are strangers. Their connections stay open until
/// then.
final class PendingUploadRequests {
    private(set) var requests = UploadRequests()
    private var exchanges: [Int: IncomingDeviceRequest] = [:]
    private let timer: DeadlineTimer

    init(on eventLoop: any EventLoop, _ clocks: Clocks) { timer = DeadlineTimer(on: eventLoop, clocks) }

    /// Adds a request. Answers 409 instead if the device or its address already has one, or if too many are waiting.
    func add(_ upload: PrepareUpload, _ exchange: IncomingDeviceRequest, _ node: isolated Node) {
        let device = exchange.certificate.fingerprint
        guard let request = requests.add(upload, from: device, at: exchange.remoteAddress, now: node.clocks.now) else {
            return exchange.answer(409)
        }
        exchanges[request.id] = exchange
        exchange.onAbort = { [weak node] in node?.assumeIsolated { $0.devices.requests.unanswered.end(request.id, $0) } }
        let view = view(of: request, node)
        node.events.record(
            .deviceAsked, peer: device.peerID,
            data: ["request": "\(view.id)", "name": view.label.text(), "files": "\(view.files)", "bytes": "\(view.size)"], from: .strangers,
            node)
        changed(node)
    }

    /// Removes a request without an answer to the device.
    private func end(_ id: Int, _ node: isolated Node) {
        exchanges[id] = nil
        if requests.remove(id) != nil { changed(node) }
    }

    /// Refuses the request of a device, if there is one.
    func withdraw(of device: Fingerprint, _ node: isolated Node) {
        if let request = requests.request(of: device) { refuse(request.id, node) }
    }

    /// Refuses a request.
    /// - Returns: `nil` if there is none with this ID.
    @discardableResult
    func refuse(_ id: Int, _ node: isolated Node) -> UploadRequests.Request? {
        guard let request = requests.remove(id) else { return nil }
        exchanges.removeValue(forKey: id)?.answer(403)
        changed(node)
        return request
    }

    /// Accepts a request.
    /// - Parameter completion: called once, with success, or with the reason if the files cannot be received, such as a full disk. Not
    ///   called if there is no request with this ID.
    /// - Returns: `nil` if there is none with this ID.
    func accept(
        _ id: Int, _ node: isolated Node, completion: @escaping @Sendable (Result<Void, HexlistError>) -> Void
    ) -> UploadRequests.Request? {
        guard let request = requests.remove(id), let exchange = exchanges.removeValue(forKey: id) else { return nil }
        exchange.onAbort = nil
        node.devices.requests.files.open(request.upload, exchange, node, completion: completion)
        changed(node)
        return request
    }

    /// Accepts the request of a device if the user has trusted the device, and refuses the request if the user has blocked it.
    func trustChanged(of device: Fingerprint, to trust: Trust, _ node: isolated Node) {
        guard let request = requests.request(of: device) else { return }
        switch trust {
        case .trusted: _ = accept(request.id, node) { _ in }
        case .blocked: refuse(request.id, node)
        case .stranger: break
        }
    }

    /// Refuses all requests, because this machine stops.
    func stop(_ node: isolated Node) {
        for request in requests.waiting { refuse(request.id, node) }
        timer.cancel()
    }

    private func changed(_ node: isolated Node) {
        timer.set(requests.nextDeadline, node) { node in
            let unanswered = node.devices.requests.unanswered
            for request in unanswered.requests.removeExpired(now: node.clocks.now) {
                unanswered.exchanges.removeValue(forKey: request.id)?.answer(403)
            }
            unanswered.changed(node)
        }
        node.watchers.notify()
    }

    func view(of request: UploadRequests.Request, _ node: isolated Node) -> UploadRequestView {
        let peer = request.fingerprint.peerID
        let label =
            node.peerList.label(of: peer).map { PeerSummary($0) }
            ?? PeerSummary(name: PeerName.cut(request.upload.info.alias, bytes: NormalizedName.bytes), trust: .stranger)
        return UploadRequestView(
            id: request.id, peer: peer, tag: label, files: request.upload.files.count,
            size: request.upload.totalBytes,
            names: request.upload.files.prefix(UploadRequestView.nameLimit).map { $0.path.map(\.description).joined(separator: "/") },
            until: Timestamp(milliseconds: node.times().milliseconds(of: request.until)))
    }
}
