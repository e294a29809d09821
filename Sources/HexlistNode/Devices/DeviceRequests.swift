import HexlistEventLoop
import HexlistJSON
import HexlistLocalSend
import HexlistModel
import HexlistStore
import HexlistTransport
import NIOCore

/// Answers the HTTPS requests of LocalSend devices.
final class DeviceRequests {
    let files: DeviceFileReceiver
    let unanswered: PendingUploadRequests
    var limit = SourceRateLimit.requestsOfStrangers

    init(on eventLoop: any EventLoop, _ clocks: Clocks) {
        files = DeviceFileReceiver(on: eventLoop, clocks)
        unanswered = PendingUploadRequests(on: eventLoop, clocks)
    }

    func received(_ exchange: IncomingDeviceRequest, _ node: isolated Node) {
        guard !node.isStopping, node.devices.isOpen, exchange.path.utf8.starts(with: LocalSendLimits.path.utf8) else {
            return exchange.answer(404)
        }
        guard isKnown(exchange.certificate.fingerprint, node) || limit.take(from: exchange.remoteAddress, now: node.clocks.now) else {
            return exchange.refuse(429)
        }
        node.devices.proved(exchange.certificate, at: exchange.remoteAddress, info: nil, node)
        switch (exchange.method, String(exchange.path.dropFirst(LocalSendLimits.path.count))) {
        case (.get, "/v1/info"), (.get, "/v2/info"): exchange.answer(200, Self.ownInfo(node))
        case (.post, "/v2/register"): register(exchange, node)
        case (.post, "/v2/prepare-upload"): prepare(exchange, node)
        case (.post, "/v2/upload"): files.upload(exchange, node)
        case (.post, "/v2/cancel"): files.cancel(exchange, node)
        case (_, "/v1/info"), (_, "/v2/info"), (_, "/v2/register"), (_, "/v2/prepare-upload"), (_, "/v2/upload"), (_, "/v2/cancel"):
            exchange.answer(405)
        default: exchange.answer(404)
        }
    }

    /// Whether the device is trusted or has an upload session, so that its requests are not rate-limited.
    private func isKnown(_ device: Fingerprint, _ node: isolated Node) -> Bool {
        if let record = node.registry.devices[device.peerID], record.fingerprint == device, record.trust == .trusted { return true }
        return files.hasSession(device)
    }

    /// The description of this machine in answers, without port and protocol.
    private static func ownInfo(_ node: isolated Node) -> [UInt8] {
        var info = node.devices.info(of: node)
        (info.port, info.scheme) = (nil, nil)
        return info.registration
    }

    /// Collects the body of a request, then calls `then` with it. If the body is too long or invalid, answers the request with an error
    /// instead.
    private func collect(
        _ exchange: IncomingDeviceRequest, limit: Int, _ node: isolated Node,
        then: @escaping @Sendable (isolated Node, [UInt8]) throws(LocalSendFault) -> Void
    ) {
        exchange.collect(limit: limit) { [weak node] result in
            guard let node else { return }
            node.assumeIsolated { node in
                do throws(LocalSendFault) {
                    switch result {
                    case .success(let body): try then(node, body)
                    case .failure(.tooLarge): exchange.answer(413)
                    case .failure(.closed): break
                    }
                } catch {
                    switch error {
                    case .invalid(let what): exchange.answer(400, Self.message("The request is invalid: \(what)."))
                    case .tooLarge(let what): exchange.answer(413, Self.message("The request exceeds a limit: \(what)."))
                    }
                }
            }
        }
    }

    private func register(_ exchange: IncomingDeviceRequest, _ node: isolated Node) {
        collect(exchange, limit: LocalSendLimits.infoBytes, node) { node, body throws(LocalSendFault) in
            let info = try DeviceInfo(parsing: body)
            exchange.answer(200, Self.ownInfo(node))
            node.devices.proved(exchange.certificate, at: exchange.remoteAddress, info: info, node)
        }
    }

    private func prepare(_ exchange: IncomingDeviceRequest, _ node: isolated Node) {
        collect(exchange, limit: LocalSendLimits.prepareBytes, node) { node, body throws(LocalSendFault) in
            let upload = try PrepareUpload(parsing: body)
            node.devices.proved(exchange.certificate, at: exchange.remoteAddress, info: upload.info, node)
            if let text = upload.text {
                node.devices.requests.store(text, of: upload.info, exchange, node)
            } else {
                node.devices.requests.files.prepare(upload, exchange, node)
            }
        }
    }

    // MARK: Texts

    /// Stores a text of a device like a hex of any peer, and answers once it is durable.
    private func store(_ text: String, of info: DeviceInfo, _ exchange: IncomingDeviceRequest, _ node: isolated Node) {
        let peer = exchange.certificate.fingerprint.peerID
        let sender = Sender(
            peer: peer, kind: .localsend, fingerprint: exchange.certificate.fingerprint,
            name: PeerName.cut(info.alias, bytes: NormalizedName.bytes),
            address: exchange.remoteAddress.description)
        let bound = NIOLoopBound(exchange, eventLoop: node.eventLoop)
        node.keep([DeviceTextHex.hex(text, from: peer, name: info.alias)], from: sender) { _, results in
            let (status, message) = Self.answer(to: results.first)
            bound.value.answer(status, message.map(Self.message) ?? [])
        }
    }

    private static func answer(to result: DeliveryResult?) -> (status: Int, message: String?) {
        guard case .refused(let code, let message, _)? = result else { return (result == nil ? 500 : 204, nil) }
        switch code {
        case .blocked, .notAccepting: return (403, message)
        case .quotaExceeded: return (429, message)
        default: return (500, message)
        }
    }

    static func message(_ text: String) -> [UInt8] {
        var json = JSONWriter(wireCapacity: 128)
        json.object { $0.member("message", text) }
        return json.bytes
    }
}
