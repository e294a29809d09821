import HexlistModel
import Testing

@testable import HexlistNode

@Suite("Addresses for devices")
struct DeviceAddressTests {
    @Test(
        "devices are looked for only on interfaces on which this machine listens",
        arguments: [
            ([], ["192.168.7.20", "fd00::2"]),
            (["0.0.0.0"], ["192.168.7.20", "fd00::2"]),
            (["::"], ["192.168.7.20", "fd00::2"]),
            (["127.0.0.1"], []),
            (["127.0.0.1", "192.168.7.20"], ["192.168.7.20"]),
            (["fd00::2"], ["fd00::2"]),
            (["10.0.0.1"], []),
        ])
    func listening(listen: [String], expected: [String]) throws {
        let all = try ["192.168.7.20", "fd00::2"].map {
            InterfaceAddress(interface: "eth0", index: 2, address: try #require(IPAddress($0)), prefixLength: 24)
        }
        #expect(Devices.listening(all, listen).map(\.address.description) == expected)
    }
}
