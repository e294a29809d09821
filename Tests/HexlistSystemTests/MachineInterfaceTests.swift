import HexlistModel
import Testing

@testable import HexlistSystem

@Suite("Interfaces of this machine")
struct MachineInterfaceTests {
    @Test("the addresses given to others are those on which the daemon listens") func listen() {
        func list(_ listen: [String]) -> [String] {
            let texts = ["10.0.0.2", "10.1.0.2", "fd00::2", "fe80::2"].compactMap { IPAddress($0) }
            let interface = MachineInterface(
                name: "eth0", index: 2, isUp: true, isRunning: true, isLoopback: false, hasMulticast: true,
                addresses: texts.map { InterfaceAddress(interface: "eth0", index: 2, address: $0, prefixLength: 24) })
            return OwnAddresses.list(port: 7, listen: ListenAddresses(listen), [interface])
        }
        #expect(list([]) == ["10.0.0.2:7", "10.1.0.2:7"] && list(["::"]) == list([]) && list(["0.0.0.0"]) == list([]))
        #expect(list(["10.1.0.2"]) == ["10.1.0.2:7"] && list(["fd00::2", "127.0.0.1"]) == ["[fd00::2]:7"])
        #expect(list(["127.0.0.1"]).isEmpty && list(["10.9.9.9"]).isEmpty)
    }

    @Test("each is listed once, by index, with addresses in a fixed order: IPv4 first")
    func order() {
        let all = MachineInterface.all()
        #expect(all.map(\.index) == all.map(\.index).sorted() && Set(all.map(\.name)).count == all.count)
        #expect(all.contains { $0.isLoopback })
        for interface in all {
            let addresses = interface.addresses
            #expect(addresses.map(\.address.isIPv6) == addresses.map(\.address.isIPv6).sorted { !$0 && $1 })
            for family in [false, true] {
                let those = addresses.filter { $0.address.isIPv6 == family }.map(\.address)
                #expect(those == those.sorted())
            }
        }
    }
}
