public import HexlistAPI
internal import HexlistModel
internal import HexlistSystem

/// The checks of `hexlist doctor` that need no daemon (clock, D-Bus, avahi-daemon, firewall), and the report that combines them with the
/// daemon's.
///
/// The daemon checks its store, sessions and network itself (`POST /v1/doctor`).
public struct LocalDoctor: Sendable {
    private let variables: [String: String]

    /// - Parameter variables: the environment variables of the process.
    public init(variables: [String: String]) { self.variables = variables }

    /// Makes the local checks, and combines them with those of the daemon.
    /// - Parameters:
    ///   - daemon: the step that shows whether the daemon answers.
    ///   - steps: the daemon's steps; empty if it does not answer.
    ///   - port: the daemon's port; `nil` for the default port if it does not answer.
    ///   - usesMulticast: whether multicast DNS is needed.
    /// - Returns: all steps. Each step comes after those it depends on; the steps of a peer come last.
    public func report(daemon: DoctorStep, steps: [DoctorStep], port: Int?, usesMulticast: Bool) async -> DoctorReport {
        var local = [daemon, LocalChecks.clock()]
        if usesMulticast { local += [LocalChecks.bus(variables["DBUS_SYSTEM_BUS_ADDRESS"]), LocalChecks.avahi()] }
        let needed = IncomingPort.needed(port ?? ProtocolLimits.defaultPort, usesMulticast: usesMulticast)
        let firewall = await Firewall.inForce(variables).step(needed: needed, unseen: needed.filter { !$0.isSeen(steps) })
        let isOfPeer = { (step: DoctorStep) in step.step == "peer" || step.step.hasPrefix("peer.") }
        return DoctorReport(steps: local + steps.filter { !isOfPeer($0) } + [firewall] + steps.filter(isOfPeer))
    }
}
