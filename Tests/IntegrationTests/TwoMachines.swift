import Testing

/// The real programs on hosts of their own, with real avahi-daemons. Each test has a lab of its own; one at a time within each of these
/// three, since a machine that runs many at once would measure nothing but its own load, and about as long as one another, since the
/// longest decides how long all tests take.
@Suite(
    "Two machines", .serialized, .timeLimit(.minutes(Patience.test)),
    .enabled(if: Lab.isAvailable, "needs network namespaces, as root or in a user namespace. \(Lab.availability.reason)"))
enum TwoMachines {}

/// The same, on networks on which something is missing or fails: avahi-daemon, cables, ports, multicast.
@Suite(
    "Troubled networks", .serialized, .timeLimit(.minutes(Patience.test)),
    .enabled(if: Lab.isAvailable, "needs network namespaces, as root or in a user namespace. \(Lab.availability.reason)"))
enum TroubledNetworks {}

/// The same, beside machines that are not there, have another's identity, break the protocol or know little of it.
@Suite(
    "Strange machines", .serialized, .timeLimit(.minutes(Patience.test)),
    .enabled(if: Lab.isAvailable, "needs network namespaces, as root or in a user namespace. \(Lab.availability.reason)"))
enum StrangeMachines {}
