import Testing

/// The real programs on hosts of their own, with real avahi-daemons. One test at a time: each has a lab of its own, and
/// a machine that runs several at once would measure nothing but its own load.
@Suite(
    "Two machines", .serialized, .timeLimit(.minutes(Patience.test)),
    .enabled(if: Lab.isAvailable, "needs network namespaces, as root or in a user namespace. \(Lab.availability.reason)"))
enum TwoMachines {}
