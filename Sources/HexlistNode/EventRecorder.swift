import HexlistAPI
import HexlistEventLoop
import HexlistJSON
import HexlistModel
import HexlistStore
import Logging
import NIOCore

/// Writes the event log. Events that peers cause are omitted if `EventAllowance` is exhausted or if only the disk reserve is left. At most
/// one `events.omitted` per minute and source reports the number of omitted events.
final class EventRecorder {
    private var allowance = EventAllowance()
    private let timer: DeadlineTimer

    init(on eventLoop: any EventLoop, _ clocks: Clocks) { timer = DeadlineTimer(on: eventLoop, clocks) }

    /// The time of the next `events.omitted`; `nil` if nothing was omitted.
    var nextOmission: ContinuousClock.Instant? { allowance.nextDeadline }

    /// Records an event. Peer text in `data` is stored unchanged and cleaned for display.
    /// - Parameter source: the source whose allowance the event counts against; `nil` for an event caused by this machine's user.
    func record(
        _ type: EventType, peer: PeerID?, data: [String: String] = [:], from source: EventAllowance.Source? = nil,
        _ node: isolated Node
    ) {
        if let source, !allowance.take(source, now: node.clocks.now) { return schedule(node) }
        write(type, peer: peer, data: data, of: source.map { EventAllowance.OmittedEvents(source: $0, count: 1) }, node)
    }

    /// Records `events.omitted` for all events omitted so far, and stops the timer.
    func stop(_ node: isolated Node) {
        timer.cancel()
        recordOmissions(allowance.takeAll(), node)
    }

    private func recordOmissions(_ omissions: [EventAllowance.OmittedEvents], _ node: isolated Node) {
        for omission in omissions {
            write(
                .eventsOmitted, peer: omission.source.peer, data: ["of": omission.source.word, "count": "\(omission.count)"], of: omission,
                node)
        }
    }

    /// Appends an event to the log of the store.
    /// - Parameter counted: the source and number of events to count as omitted if the disk reserve is reached; `nil` for an event that may
    ///   use the reserve.
    private func write(
        _ type: EventType, peer: PeerID?, data: [String: String], of counted: EventAllowance.OmittedEvents?, _ node: isolated Node
    ) {
        let text = data.isEmpty ? nil : JSONText.object(data.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
        let at = node.clocks.milliseconds
        let reserve = counted == nil ? nil : Int64(node.configuration.limits.diskReserveBytes)
        node.store.appendEvent(type, at: at, peer: peer, data: text, leaving: reserve) { [node] result in
            switch result {
            case .success(true): break
            case .success(false):
                guard let counted else { break }
                node.onLoop { node in
                    node.events.allowance.omitted(counted.count, counted.source, now: node.clocks.now)
                    node.events.schedule(node)
                }
            case .failure(let error): node.logger.error("event could not be recorded", metadata: ["error": "\(error)"])
            }
        }
    }

    private func schedule(_ node: isolated Node) {
        timer.set(allowance.nextDeadline, node) { node in
            node.events.recordOmissions(node.events.allowance.takeDue(now: node.clocks.now), node)
            node.events.schedule(node)
        }
    }
}
