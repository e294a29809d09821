public import HexlistModel
import Logging

/// Sends batches of rows to couriers, and distributes the slots.
extension DeliveryScheduler {
    /// Sends more rows over a courier that has capacity again. No effect if the peer has a newer courier, which is used instead.
    public func pump(_ courier: any Courier, to peer: PeerID, _ host: isolated some DeliveryHost) {
        guard let link = links[peer], link.courier === courier else { return }
        pump(link, host)
    }

    /// Sends rows up to the courier's capacity, and reads more rows from the store. Requests a slot if rows are to be sent; otherwise
    /// releases the slot.
    func pump(_ link: PeerDeliveryContext, _ host: isolated some DeliveryHost) {
        guard !host.isStopping, let courier = link.courier, courier.isOpen else { return }
        let now = clocks.now
        guard link.delivery.hasWork, !link.delivery.isPaused(now: now), !isHeld(link.peer, host), !host.isUndecided(link.peer) else {
            return releaseSlot(link, host)
        }
        guard courier.takesSlot else {
            while sendBatch(link, over: courier, now: now, host) {}
            return
        }
        let hadSlot = slots.hasSlot(link.peer)
        guard slots.request(link.peer, now: now) else { return watchSlots(host) }
        if !hadSlot { link.delivery.slotBegan() }

        while sendBatch(link, over: courier, now: now, host) {}
        if !link.delivery.hasWork {
            releaseSlot(link, host)
        } else if hasUsedSlot(link) {
            releaseSlot(link, host)
            _ = slots.request(link.peer, now: now)  // now last in the queue
        }
    }

    /// Whether other peers wait for a slot, and this peer was sent a full window of bytes in its slot.
    private func hasUsedSlot(_ link: PeerDeliveryContext) -> Bool {
        slots.hasSlot(link.peer) && slots.othersWait && link.delivery.bytesThisSlot >= ProtocolLimits.windowBytes
    }

    /// Sends rows that fit into the courier's capacity, as one batch.
    /// - Returns: whether the courier may have capacity for more.
    private func sendBatch(
        _ link: PeerDeliveryContext, over courier: any Courier, now: ContinuousClock.Instant, _ host: isolated some DeliveryHost
    ) -> Bool {
        var capacity = courier.capacity(of: window)
        var batch: [OutgoingHex] = []
        steps: while !hasUsedSlot(link) {
            switch link.delivery.next(now: now, fitsWindow: capacity.takes) {
            case .send(let row):
                capacity.use(bytes: PeerDelivery.frameBytes(row))
                batch.append(row)
            case .load(let after, let epoch): load(link, after: after, epoch: epoch, host)
            case .reject(let row):
                let limit = link.delivery.frameLimit
                let refusal = DeliveryResult.refused(.tooLarge, message: "It is longer than the \(limit) bytes that this peer accepts.")
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

    /// Reads a batch of rows from the store, and passes it to the delivery.
    private func load(_ link: PeerDeliveryContext, after: Int64, epoch: Int, _ host: isolated some DeliveryHost) {
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

    /// Gives up the peer's slot, or its position in the queue for one.
    func releaseSlot(_ link: PeerDeliveryContext, _ host: isolated some DeliveryHost) {
        guard slots.hasSlot(link.peer) || slots.isWaiting(link.peer) else { return }
        if slots.release(link.peer) != nil { wakeNext(host) }
    }

    /// Lets the first peer in the queue for slots request the free slot. Repeats this for the next peers while slots are free.
    private func wakeNext(_ host: isolated some DeliveryHost) {
        // Deferred to a later tick, because the caller may still be sending to another peer.
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

    /// Sets the timer that revokes slots after their timeout if other peers wait. It does not depend on the courier's own timeout, which
    /// may be longer.
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
