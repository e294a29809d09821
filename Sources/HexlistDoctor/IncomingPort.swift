internal import HexlistAPI

/// A port of this machine that others have to reach.
struct IncomingPort: Equatable, Sendable {
    enum Carrier: String, Sendable { case tcp, udp }

    var carrier: Carrier
    /// The port's number, 1 … 65535.
    var number: Int

    /// The daemon's port, and avahi-daemon's if multicast is used.
    static func needed(_ port: Int, usesMulticast: Bool) -> [IncomingPort] {
        [IncomingPort(carrier: .tcp, number: port)] + (usesMulticast ? [.multicast] : [])
    }

    static let multicast = IncomingPort(carrier: .udp, number: 5_353)

    /// Whether a step shows that somebody reached the port: a peer that was asked to dial back or dialled by itself, or one that answered a
    /// multicast DNS question.
    func isSeen(_ steps: [DoctorStep]) -> Bool {
        let shows = carrier == .tcp ? ["reachable", "peer.dialBack"] : ["multicast"]
        return steps.contains { shows.contains($0.step) && $0.state == .ok }
    }

    /// The port as rules are written: `tcp port 24391`.
    var text: String { "\(carrier.rawValue) port \(number)" }
}
