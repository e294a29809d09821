import Testing

/// The real programs on separate hosts with real avahi-daemons. Each test has its own lab. Tests in each of these three suites run one at a
/// time, because parallel labs would disturb each other's timing. The suites take about equally long, because the longest determines the
/// total time.
@Suite(
    "Two machines", .serialized, .timeLimit(.minutes(Patience.test)),
    .enabled(if: Lab.isAvailable, "needs network namespaces, as root or in a user namespace. \(Lab.availability.reason)"))
enum TwoMachines {}

/// The real programs on networks with missing or failing parts: avahi-daemon, cables, ports, multicast.
@Suite(
    "Troubled networks", .serialized, .timeLimit(.minutes(Patience.test)),
    .enabled(if: Lab.isAvailable, "needs network namespaces, as root or in a user namespace. \(Lab.availability.reason)"))
enum TroubledNetworks {}

/// The real programs with machines that are missing, share an identity, violate the protocol or implement little of it.
@Suite(
    "Strange machines", .serialized, .timeLimit(.minutes(Patience.test)),
    .enabled(if: Lab.isAvailable, "needs network namespaces, as root or in a user namespace. \(Lab.availability.reason)"))
enum StrangeMachines {}
