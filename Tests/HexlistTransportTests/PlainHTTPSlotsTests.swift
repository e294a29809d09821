import HexlistModel
import Testing

@testable import HexlistTransport

/// The connection slots of guests.
@Suite("Slots of plain HTTP") struct PlainHTTPSlotsTests {
    private func address(_ number: Int) throws -> IPAddress { try #require(IPAddress("10.0.0.\(number)")) }

    @Test("an address has at most 8 of 32 slots") func limits() throws {
        var slots = PlainHTTPSlots<Int>()
        for number in 0..<8 { #expect(slots.enter(number, from: try address(1)) == .entered) }
        #expect(slots.enter(8, from: try address(1)) == .refused)
        slots.leave(3)
        slots.leave(3)
        #expect(slots.enter(9, from: try address(1)) == .entered)
        #expect(slots.enter(10, from: try address(1)) == .refused)
        #expect(slots.enter(11, from: try address(2)) == .entered)
    }

    @Test("a new address takes the oldest slot of the address with the most") func fair() throws {
        var slots = PlainHTTPSlots<Int>(limit: 6, limitOfAddress: 4)
        for number in 0..<4 { _ = slots.enter(number, from: try address(1)) }
        for number in 4..<6 { _ = slots.enter(number, from: try address(2)) }
        #expect(slots.enter(6, from: try address(3)) == .enteredInstead(of: 0))
        #expect(slots.enter(7, from: try address(3)) == .enteredInstead(of: 1))
        #expect(slots.enter(8, from: try address(3)) == .refused)
        #expect(slots.enter(9, from: try address(4)) == .enteredInstead(of: 2))
        slots.leave(9)
        #expect(slots.enter(10, from: try address(3)) == .entered)
    }

    @Test("a new address takes a slot also if each address has one") func manyAddresses() throws {
        var slots = PlainHTTPSlots<Int>(limit: 3, limitOfAddress: 2)
        for number in 0..<3 { _ = slots.enter(number, from: try address(number)) }
        #expect(slots.enter(3, from: try address(3)) == .enteredInstead(of: 0))
        #expect(slots.enter(4, from: try address(3)) == .refused)
        #expect(slots.enter(5, from: try address(0)) == .enteredInstead(of: 1))
    }

    @Test("a second connection does not make a new address the heaviest") func second() throws {
        var slots = PlainHTTPSlots<Int>(limit: 4, limitOfAddress: 2)
        for number in 0..<4 { _ = slots.enter(number, from: try address(number / 2)) }
        #expect(slots.enter(4, from: try address(3)) == .enteredInstead(of: 0))
        #expect(slots.enter(5, from: try address(3)) == .refused)
        #expect(slots.enter(6, from: try address(0)) == .refused)
        #expect(slots.enter(7, from: try address(4)) == .enteredInstead(of: 2))
    }

    @Test("an authenticated connection keeps its slot") func authenticated() throws {
        var slots = PlainHTTPSlots<Int>(limit: 3, limitOfAddress: 3)
        for number in 0..<3 { _ = slots.enter(number, from: try address(1)) }
        slots.authenticate(0)
        slots.authenticate(9)  // a connection that has ended
        #expect(slots.enter(3, from: try address(2)) == .enteredInstead(of: 1))
        #expect(slots.enter(4, from: try address(3)) == .enteredInstead(of: 2))
        slots.authenticate(3)
        for number in 5..<100 { #expect(slots.enter(number, from: try address(number)) == .enteredInstead(of: number - 1)) }
        slots.authenticate(99)
        #expect(slots.enter(100, from: try address(100)) == .refused)
        slots.leave(0)
        #expect(slots.enter(101, from: try address(100)) == .entered)
    }

    @Test("authenticated connections are shared fairly between addresses") func authenticatedFairly() throws {
        var slots = PlainHTTPSlots<Int>(limit: 4, limitOfAddress: 3)
        for (number, network) in [1, 1, 1, 2].enumerated() {
            _ = slots.enter(number, from: try address(network))
            slots.authenticate(number)
        }
        #expect(slots.enter(4, from: try address(3)) == .enteredInstead(of: 0))
        #expect(slots.enter(5, from: try address(3)) == .refused)
        slots.authenticate(4)
        #expect(slots.enter(6, from: try address(4)) == .enteredInstead(of: 1))
        slots.authenticate(6)
        #expect(slots.enter(7, from: try address(5)) == .refused)
    }

    @Test("while a connection is not authenticated, the authenticated ones keep their slots") func mixed() throws {
        var slots = PlainHTTPSlots<Int>(limit: 6, limitOfAddress: 8)
        for number in 0..<4 {
            _ = slots.enter(number, from: try address(1))
            slots.authenticate(number)
        }
        for number in 4..<6 { #expect(slots.enter(number, from: try address(number)) == .entered) }
        #expect(slots.enter(6, from: try address(4)) == .refused, "the others have one slot each")
        #expect(slots.enter(7, from: try address(7)) == .enteredInstead(of: 4))
    }
}
