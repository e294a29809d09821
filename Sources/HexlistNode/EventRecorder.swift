import HexlistAPI
import HexlistEventLoop
import HexlistJSON
import HexlistModel
import HexlistStore
import Logging
import NIOCore

protocol EventHost: NodeHost {
    var events: EventRecorder { get }
}

/// Writes the event log. What peers may cause as often as they like is recorded within their allowance and the disk's reserve; the rest is
/// counted, for one `events.omitted` a minute.
final class EventRecorder {
    private var allowance = EventAllowance()
    private let timer: DeadlineTimer

    init(on eventLoop: any EventLoop, _ clocks: Clocks) { timer = DeadlineTimer(on: eventLoop, clocks) }

    /// When an `events.omitted` is due; `nil` while none is.
    var nextOmission: ContinuousClock.Instant? { allowance.nextDeadline }

    /// Records an event. Peer text in `data` is stored unchanged and cleaned where it is shown.
    /// - Parameter source: the source whose allowance the event counts against; `nil` for an event caused by this machine's user.
    func record(
        _ type: EventType, peer: PeerID?, data: [String: String] = [:], from source: EventAllowance.Source? = nil,
        _ host: isolated some EventHost
    ) {
        if let source, !allowance.take(source, now: host.clocks.now) { return schedule(host) }
        write(type, peer: peer, data: data, of: source.map { EventAllowance.Omission(source: $0, count: 1) }, host)
    }

    /// Records what was left out so far, and stops its clock.
    func stop(_ host: isolated some EventHost) {
        timer.cancel()
        tell(allowance.takeAll(), host)
    }

    private func tell(_ omissions: [EventAllowance.Omission], _ host: isolated some EventHost) {
        for omission in omissions {
            write(
                .eventsOmitted, peer: omission.source.peer, data: ["of": omission.source.word, "count": "\(omission.count)"], of: omission,
                host)
        }
    }

    /// - Parameter counted: what counts as left out where the disk has no room beyond its reserve; `nil` writes into the reserve.
    private func write(
        _ type: EventType, peer: PeerID?, data: [String: String], of counted: EventAllowance.Omission?, _ host: isolated some EventHost
    ) {
        let text = data.isEmpty ? nil : JSONText.object(data.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
        let at = host.clocks.milliseconds
        let reserve = counted == nil ? nil : Int64(host.configuration.limits.diskReserveBytes)
        host.store.appendEvent(type, at: at, peer: peer, data: text, leaving: reserve) { [host] result in
            switch result {
            case .success(true): break
            case .success(false):
                guard let counted else { break }
                host.onLoop { host in
                    host.events.allowance.omitted(counted.count, counted.source, now: host.clocks.now)
                    host.events.schedule(host)
                }
            case .failure(let error): host.logger.error("event could not be recorded", metadata: ["error": "\(error)"])
            }
        }
    }

    private func schedule(_ host: isolated some EventHost) {
        timer.set(allowance.nextDeadline, host) { host in
            host.events.tell(host.events.allowance.takeDue(now: host.clocks.now), host)
            host.events.schedule(host)
        }
    }
}
