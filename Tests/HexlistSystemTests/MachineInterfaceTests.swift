import Testing

@testable import HexlistSystem

@Suite("Interfaces of this machine")
struct MachineInterfaceTests {
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
