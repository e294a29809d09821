import Testing

/// hexlistd and LocalSend devices on hosts of a lab, with the real programs.
@Suite("Sending to LocalSend devices in a lab", .serialized, .rigLimit(long: 30), .ifBuilt)
struct SendToDevicesTests {
    @Test("rows wait, arrive in order and survive kills; files; a device with another certificate", .ifRuns("localsend/send"))
    func send() async throws {
        try await Rig.run("localsend/send", ["--rows", "5", "--rounds", "3"], long: ["--rows", "100", "--rounds", "200"])
    }
}
