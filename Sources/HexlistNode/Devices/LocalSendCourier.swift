import HexlistDelivery
import HexlistEventLoop
import HexlistFiles
import HexlistLocalSend
import HexlistModel
import HexlistStore
import HexlistTransfers
import HexlistTransport

/// Delivers hexes to one LocalSend device, one at a time. A hex counts as delivered when the app on the device has confirmed it; LocalSend
/// has no other receipt.
///
/// It exists while the device is online and trusted. Confined to the event loop of its node; that makes it `Sendable`.
final class LocalSendCourier: Courier, @unchecked Sendable {
    /// The pause between two hexes, so that a phone shows each one.
    static let pause = Duration.seconds(1)
    /// Maximum bytes of a response. The tokens of the largest request take about 40 KiB.
    private static let responseBytes = 128 << 10

    private enum State {
        /// - Parameter until: the instant from which the next hex may be sent.
        case idle(until: ContinuousClock.Instant)
        /// The hex's files and the device's PIN are being read from the store.
        case loading(row: Int64)
        case sending(Sending)
        /// - Parameter row: the outbox row that was in flight; `nil` if there was none.
        case ended(row: Int64?)
    }

    private struct Sending {
        var row: Int64
        var content: DeviceSendContent
        var outbound: DeviceOutbound
        /// The PIN in the last `prepare-upload` request.
        var pin: String?
        /// The request in flight. `number` is its number; a reply to a request with another number is ignored.
        var call: OutgoingDeviceRequest?
        var number = 0
    }

    let peer: PeerID
    private let device: Fingerprint
    private weak var node: Node?
    private let timer: DeadlineTimer
    private var state: State

    init(_ device: Fingerprint, _ node: isolated Node) {
        peer = device.peerID
        self.device = device
        self.node = node
        timer = DeadlineTimer(on: node.eventLoop, node.clocks)
        state = .idle(until: node.clocks.now)
    }

    // MARK: Courier

    var guarantee: DeliveryGuarantee { .delivered }

    var isOpen: Bool { if case .ended = state { false } else { true } }

    var frameLimit: Int { ProtocolLimits.trustedFrameBytes }

    var inFlight: Set<Int64> {
        switch state {
        case .idle, .ended(nil): []
        case .loading(let row), .ended(let row?): [row]
        case .sending(let sending): [sending.row]
        }
    }

    /// `false`, because the user of the device may take minutes to answer, and other peers must not wait for a send slot meanwhile.
    var takesSlot: Bool { false }

    var wait: CourierWait? {
        guard case .sending(let sending) = state else { return nil }
        return switch sending.outbound.wait {
        case .answer: CourierWait(.answer)
        case .pin: CourierWait(.pin)
        case .retry(let until): CourierWait(.retry, until: until)
        case nil: nil
        }
    }

    func capacity(of window: CourierWindow) -> CourierCapacity {
        guard case .idle(let until) = state, let node, node.clocks.now >= until else { return .none }
        return CourierCapacity(hexes: 1, bytes: .max, isIdle: true)
    }

    func send(_ batch: [OutgoingHex]) {
        guard case .idle = state, let hex = batch.first, let node else { return }
        state = .loading(row: hex.id)
        let own = node.id
        node.store.submitRead({ [peer] reader in
            let content = Result { () throws -> DeviceSendContent in
                try DeviceSendContent(hex, own: own) { try reader.offer($0.bytes, to: peer) }
            }
            return (content, try reader.pin(of: peer))
        }) { [weak node] result in
            node?.onLoop { self.loaded(result, row: hex.id, $0) }
        }
    }

    func flush() {}

    func close() {
        node?.onLoop { self.end(CourierEnd(.lost, "The delivery was interrupted."), $0) }
    }

    func withdraw(_ rows: Set<Int64>) {
        node?.onLoop { node in
            switch self.state {
            case .loading(let row) where rows.contains(row): self.settle(row, .undelivered(.failed, code: "cancelled", message: ""), node)
            case .sending(var sending) where rows.contains(sending.row):
                let actions = sending.outbound.withdraw()
                self.state = .sending(sending)
                self.perform(actions, node)
                self.settle(sending.row, .undelivered(.failed, code: "cancelled", message: ""), node)
            case .idle, .loading, .sending, .ended: break
            }
        }
    }

    func retryNow() { node?.onLoop { self.change($0) { outbound in outbound.retryNow() } } }

    // MARK: Events

    /// Handles a change of the device's PIN by the user.
    func pinChanged(to pin: String?, _ node: isolated Node) { change(node) { $0.pinChanged(to: pin) } }

    /// Ends the courier. The hex in flight is sent again later.
    func end(_ end: CourierEnd, _ node: isolated Node) {
        guard isOpen else { return }
        stop()
        node.deliver { [peer] deliveries, outbox in deliveries.ended(self, to: peer, end, outbox) }
    }

    /// Cancels the request in flight. The delivery scheduler is not notified.
    func stop() {
        let before = state
        state = .ended(row: inFlight.first)
        if case .sending(let sending) = before { sending.call?.cancel() }
        timer.cancel()
    }

    private func loaded(
        _ result: Result<(Result<DeviceSendContent, any Error>, String?), any Error>, row: Int64, _ node: isolated Node
    ) {
        guard case .loading(row) = state else { return }
        switch result {
        case .failure(let error):
            node.logger.error("outbox could not be read", metadata: ["peer.id": "\(peer)", "error": "\(error)"])
            end(CourierEnd(.lost, "The hex could not be read."), node)
        case .success((.failure(let error), _)):
            var message = "The hex could not be read."
            if case .notOffered(let name)? = error as? DeviceSendContent.Fault { message = "\(name) is no longer offered." }
            settle(row, .undelivered(.failed, code: "device", message: message), node)
        case .success((.success(let content), let pin)):
            var outbound = DeviceOutbound(files: content.files.map(\.file.id), pin: pin)
            let actions = outbound.start()
            state = .sending(Sending(row: row, content: content, outbound: outbound))
            perform(actions, node)
        }
    }

    /// Passes an event to the state machine and carries out its actions.
    private func change(_ node: isolated Node, _ event: (inout DeviceOutbound) -> [DeviceOutbound.Action]) {
        guard case .sending(var sending) = state else { return }
        let before = sending.outbound.wait
        let actions = event(&sending.outbound)
        state = .sending(sending)
        perform(actions, node)
        if sending.outbound.wait != before { waitChanged(node) }
    }

    private func waitChanged(_ node: isolated Node) {
        node.wakeWaiters()
        node.outbox.outboxChanged()
    }

    // MARK: Actions

    private func perform(_ actions: [DeviceOutbound.Action], _ node: isolated Node) {
        for action in actions {
            guard case .sending(var sending) = state else { return }
            switch action {
            case .prepare(let pin):
                sending.pin = pin
                state = .sending(sending)
                let body = PrepareUpload(info: node.devices.info(of: node), files: sending.content.files.map(\.file)).bytes
                let query = pin.map { "?pin=" + PercentEncoding.encode($0) } ?? ""
                var request = DeviceRequest("\(LocalSendLimits.path)/v2/prepare-upload\(query)", .json(body), limit: Self.responseBytes)
                request.responseTime = .init(DeviceOutbound.answerTime)
                self.request(request, node) { outbound, reply, now in
                    var random = SystemRandomNumberGenerator()
                    return outbound.prepared(reply, now: now, using: &random)
                }
                waitChanged(node)
            case .upload(let index, let session, let token):
                let (file, body) = sending.content.files[index]
                let query =
                    "sessionId=\(PercentEncoding.encode(session))&fileId=\(PercentEncoding.encode(file.id))"
                    + "&token=\(PercentEncoding.encode(token))"
                let request = DeviceRequest(
                    "\(LocalSendLimits.path)/v2/upload?\(query)", Self.body(body), limit: Self.responseBytes)
                self.request(request, node) { outbound, reply, now in
                    var random = SystemRandomNumberGenerator()
                    if case .file(let why) = reply {
                        return outbound.uploaded(.file("\(file.fileName) \(why)."), now: now, using: &random)
                    }
                    return outbound.uploaded(reply, now: now, using: &random)
                }
            case .abort:
                let call = sending.call
                sending.call = nil
                sending.number += 1
                state = .sending(sending)
                call?.cancel()
            case .cancel(let session):
                guard let endpoint = node.devices.endpoint(of: device, node) else { break }
                let target = "\(LocalSendLimits.path)/v2/cancel?sessionId=\(PercentEncoding.encode(session))"
                node.transport.send(
                    DeviceRequest(target, .bytes([]), limit: Self.responseBytes), to: endpoint.address, port: endpoint.port,
                    expecting: device
                ) { _ in }
            case .forgetPIN:
                guard let pin = sending.pin else { break }
                node.store.forgetPIN(pin, of: peer) { [logger = node.logger, peer] result in
                    guard case .failure(let error) = result else { return }
                    logger.error("the refused PIN could not be deleted", metadata: ["peer.id": "\(peer)", "error": "\(error)"])
                }
            case .wait(let until): timer.set(until, node) { self.timePassed($0) }
            case .end(let end): ended(end, sending, node)
            }
        }
    }

    private static func body(_ body: DeviceSendContent.Body) -> DeviceRequest.Body {
        switch body {
        case .bytes(let bytes): .bytes(bytes)
        case .offer(let row): .file(UploadBody(row), length: row.size)
        }
    }

    private func request(
        _ request: DeviceRequest, _ node: isolated Node,
        _ event: @escaping @Sendable (inout DeviceOutbound, DeviceReply, ContinuousClock.Instant) -> [DeviceOutbound.Action]
    ) {
        guard case .sending(var sending) = state else { return }
        sending.number += 1
        let number = sending.number
        guard let endpoint = node.devices.endpoint(of: device, node) else {
            state = .sending(sending)
            return node.onLoop { node in self.change(node) { event(&$0, .unreachable("is away"), node.clocks.now) } }
        }
        sending.call = node.transport.send(request, to: endpoint.address, port: endpoint.port, expecting: device) { [weak node] result in
            node?.assumeIsolated { node in
                guard !node.isStopping, case .sending(let sending) = self.state, sending.number == number else { return }
                self.change(node) { event(&$0, DeviceReply(result), node.clocks.now) }
                if case .failure(let fault) = result, let failure = DeviceDialResult(fault) {
                    node.devices.requestFailed(self.device, at: endpoint, failure, node)
                }
            }
        }
        state = .sending(sending)
    }

    private func timePassed(_ node: isolated Node) {
        switch state {
        case .idle: node.deliver { [peer] deliveries, outbox in deliveries.pump(self, to: peer, outbox) }
        case .sending: change(node) { $0.timePassed(now: node.clocks.now) }
        case .loading, .ended: break
        }
    }

    // MARK: Results

    private func ended(_ end: DeviceOutbound.End, _ sending: Sending, _ node: isolated Node) {
        switch end {
        case .delivered(let note):
            let left = sending.content.unreachable
            let unreachable =
                left == 0
                ? nil
                : left == 1
                    ? "one link leads to a file that the device cannot fetch"
                    : "\(left) links lead to files that the device cannot fetch"
            let notes = [note, unreachable].compactMap(\.self)
            settle(sending.row, .delivered(note: notes.isEmpty ? nil : notes.joined(separator: "; ")), node)
        case .declined: settle(sending.row, .undelivered(.rejected, code: "declined", message: ""), node)
        case .failed(let message): settle(sending.row, .undelivered(.failed, code: "device", message: message), node)
        case .away(let why): self.end(CourierEnd(.lost, "The device \(why)."), node)
        case .otherCertificate: self.end(CourierEnd(.lost, "Another device answers at its address; nothing was sent."), node)
        }
    }

    private func settle(_ row: Int64, _ result: DeliveryResult, _ node: isolated Node) {
        let until = node.clocks.now + Self.pause
        state = .idle(until: until)
        timer.cancel()
        timer.set(until, node) { self.timePassed($0) }
        node.deliver { [peer] deliveries, outbox in deliveries.settled([RowResult(id: row, result)], by: self, to: peer, outbox) }
        node.devices.rowSettled(of: peer, node)
    }
}

extension DeviceReply {
    fileprivate init(_ result: Result<DeviceResponse, DeviceRequestFault>) {
        switch result {
        case .success(let response): self = .response(status: response.status, body: response.body)
        case .failure(.otherCertificate(let other)): self = .otherCertificate(other)
        case .failure(.unreachable(let why)): self = .unreachable(why)
        case .failure(.timeout): self = .timeout
        case .failure(.closed), .failure(.cancelled): self = .closed
        case .failure(.file(let why)): self = .file(why)
        case .failure(.failed(let why)): self = .invalid("The device \(why)")
        }
    }
}

extension DeviceDialResult {
    /// Converts a fault that concerns an address of the device; `nil` for any other fault.
    fileprivate init?(_ fault: DeviceRequestFault) {
        switch fault {
        case .otherCertificate(let other): self = .otherCertificate(other)
        case .unreachable(let why): self = .failed(why)
        case .timeout, .closed, .file, .cancelled, .failed: return nil
        }
    }
}
