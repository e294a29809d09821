public import HexlistAPI
internal import HexlistModel
internal import HexlistSystem

/// The steps of doctor that need no daemon (clock, D-Bus, avahi-daemon, firewall), and the report they make with the daemon's.
///
/// The daemon takes the others itself: they look at its store, its sessions and its network (`POST /v1/doctor`).
public struct LocalDoctor: Sendable {
    private let variables: [String: String]

    /// - Parameter variables: of the process.
    public init(variables: [String: String]) { self.variables = variables }

    /// - Parameters:
    ///   - daemon: whether it answers.
    ///   - steps: the daemon's; none where it does not answer.
    ///   - port: the daemon's; the usual one where it does not answer.
    ///   - usesMulticast: whether multicast DNS is needed.
    /// - Returns: all steps in the order of what rests on what: those of a peer come last.
    public func report(daemon: DoctorStep, steps: [DoctorStep], port: Int?, usesMulticast: Bool) async -> DoctorReport {
        var local = [daemon, LocalSteps.clock()]
        if usesMulticast { local += [LocalSteps.bus(variables["DBUS_SYSTEM_BUS_ADDRESS"]), LocalSteps.avahi()] }
        let needed = IncomingPort.needed(port ?? ProtocolLimits.defaultPort, usesMulticast: usesMulticast)
        let firewall = await Firewall.inForce(variables).step(needed: needed, unseen: needed.filter { !$0.isSeen(steps) })
        let isOfPeer = { (step: DoctorStep) in step.step == "peer" || step.step.hasPrefix("peer.") }
        return DoctorReport(steps: local + steps.filter { !isOfPeer($0) } + [firewall] + steps.filter(isOfPeer))
    }
}
