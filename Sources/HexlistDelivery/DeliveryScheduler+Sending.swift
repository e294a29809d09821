public import HexlistModel
import Logging

// The rows of one peer, batch by batch, to its courier; and the slots.
extension DeliveryScheduler {
    /// Sends over a courier that has room again, if it is the one that is used.
    public func pump(_ courier: any Courier, to peer: PeerID, _ host: isolated some DeliveryHost) {
        guard let link = links[peer], link.courier === courier else { return }
        pump(link, host)
    }

    /// Sends as much as the courier takes, and loads more rows. Takes a slot, and gives it back if there is nothing to send.
    func pump(_ link: DeliveryLink, _ host: isolated some DeliveryHost) {
        guard !host.isStopping, let courier = link.courier, courier.isOpen else { return }
        let now = clocks.now
        guard link.delivery.hasWork, !link.delivery.isPaused(now: now), !isHeld(link.peer, host), !host.isUndecided(link.peer) else {
            return giveSlotBack(link, host)
        }
        let hadSlot = slots.hasSlot(link.peer)
        guard slots.request(link.peer, now: now) else { return watchSlots(host) }
        if !hadSlot { link.delivery.slotBegan() }

        while sendBatch(link, over: courier, now: now, host) {}
        if !link.delivery.hasWork {
            giveSlotBack(link, host)
        } else if hasUsedSlot(link) {
            giveSlotBack(link, host)
            _ = slots.request(link.peer, now: now)  // to the end of the queue
        }
    }

    /// Whether others wait for the slot, and the peer has had its share.
    private func hasUsedSlot(_ link: DeliveryLink) -> Bool {
        slots.othersWait && link.delivery.bytesThisSlot >= ProtocolLimits.windowBytes
    }

    /// - Returns: whether the courier may take more.
    private func sendBatch(
        _ link: DeliveryLink, over courier: any Courier, now: ContinuousClock.Instant, _ host: isolated some DeliveryHost
    ) -> Bool {
        var capacity = courier.capacity(of: window)
        var batch: [OutgoingHex] = []
        steps: while !hasUsedSlot(link) {
            switch link.delivery.next(now: now, hasRoom: capacity.takes) {
            case .send(let row):
                capacity.use(bytes: PeerDelivery.frameBytes(row))
                batch.append(row)
            case .load(let after, let epoch): load(link, after: after, epoch: epoch, host)
            case .reject(let row):
                let limit = link.delivery.frameLimit
                let refusal = DeliveryResult.refused(.tooLarge, message: "It is longer than the \(limit) bytes this peer takes.")
                write([RowResult(id: row, refusal)], for: link, counted: false, host)
            case .end:
                courier.close()
                break steps
            case .wait: break steps
            }
        }
        guard let first = batch.first else { return false }
        if link.measured == nil { link.measured = (first.id, now) }
        courier.send(batch)
        return true
    }

    private func load(_ link: DeliveryLink, after: Int64, epoch: Int, _ host: isolated some DeliveryHost) {
        let peer = link.peer
        let longest = max(0, link.delivery.frameLimit < ProtocolLimits.trustedFrameBytes ? link.delivery.longestBody : .max)
        host.outbox.nextBatch(
            for: peer, after: after, limit: PeerDelivery.loadRows, maxBytes: PeerDelivery.loadBytes, longest: longest
        ) { [host] result in
            host.onLoop { host in
                guard let link = host.deliveries.links[peer] else { return }
                switch result {
                case .success(let batch):
                    link.delivery.loaded(batch.items, hasMore: batch.hasMore, epoch: epoch)
                    host.deliveries.pump(link, host)
                case .failure(let error):
                    host.logger.error("outbox could not be read", metadata: ["peer.id": "\(peer)", "error": "\(error)"])
                    link.delivery.loadFailed(epoch: epoch)
                    host.deliveries.transferFailed(link, end: nil, host)
                }
            }
        }
    }

    // MARK: Slots

    func giveSlotBack(_ link: DeliveryLink, _ host: isolated some DeliveryHost) {
        guard slots.hasSlot(link.peer) || slots.isWaiting(link.peer) else { return }
        if slots.release(link.peer) != nil { wakeNext(host) }
    }

    /// Lets the peer that is first in line request the free slot, and then the next one.
    private func wakeNext(_ host: isolated some DeliveryHost) {
        // Not from inside the other one's steps.
        host.onLoop { host in
            let deliveries = host.deliveries
            guard let next = deliveries.slots.next else { return }
            if let waiting = deliveries.links[next] {
                deliveries.pump(waiting, host)
            } else {
                _ = deliveries.slots.release(next)
            }
            if let following = deliveries.slots.next, following != next { deliveries.wakeNext(host) }
        }
    }

    /// Revokes a slot after 30 s without a result if others wait, also if the courier's own timeout is longer.
    private func watchSlots(_ host: isolated some DeliveryHost) {
        slotTimer.set(slots.deadline, host) { host in
            let deliveries = host.deliveries
            let now = deliveries.clocks.now
            for peer in deliveries.slots.overdue(now: now) {
                if deliveries.slots.release(peer) != nil { deliveries.wakeNext(host) }
                if deliveries.links[peer] != nil { _ = deliveries.slots.request(peer, now: now) }
            }
            deliveries.watchSlots(host)
        }
    }
}
