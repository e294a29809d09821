internal import HexlistAPI

/// A port of this machine that others have to reach.
struct IncomingPort: Equatable, Sendable {
    enum TransportProtocol: String, Sendable { case tcp, udp }

    var carrier: TransportProtocol
    /// The port's number, 1 … 65535.
    var number: Int

    /// Returns the daemon's port, and avahi-daemon's if multicast is used.
    static func needed(_ port: Int, usesMulticast: Bool) -> [IncomingPort] {
        [IncomingPort(carrier: .tcp, number: port)] + (usesMulticast ? [.multicast] : [])
    }

    static let multicast = IncomingPort(carrier: .udp, number: 5_353)

    /// Whether a step shows that another machine reached the port: a peer that connected or was asked to dial back, or a machine that
    /// answered a multicast DNS query.
    func isSeen(_ steps: [DoctorStep]) -> Bool {
        let shows = carrier == .tcp ? ["reachable", "peer.dialBack"] : ["multicast"]
        return steps.contains { shows.contains($0.step) && $0.state == .ok }
    }

    /// The port in words: `tcp port 24391`.
    var text: String { "\(carrier.rawValue) port \(number)" }
}
