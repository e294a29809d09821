import Testing

/// LocalSend devices, in a lab: localsendd, a strict device, and attacks from another host.
@Suite("LocalSend", .serialized, .rigLimit(long: 20), .ifBuilt)
struct LocalSendTests {
    @Test("devices are listed, their texts and files arrive, and no attack changes a device", .ifRuns("localsend/receive"))
    func receive() async throws {
        try await Rig.run("localsend/receive", ["--slowest", "2000"], long: ["--devices", "5000", "--slowest", "100"])
    }

    @Test("the TLS libraries of the apps connect in both directions", .ifRuns("localsend/stacks"))
    func stacks() async throws { try await Rig.run("localsend/stacks", long: []) }

    @Test("localsendd and hexlistd list each other and exchange files; ghosts have reasons", .ifRuns("localsend/programs"))
    func programs() async throws {
        try await Rig.run("localsend/programs", long: ["--mib", "1024", "--transfers", "5", "--rounds", "100"])
    }
}
