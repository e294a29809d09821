import HexlistModel
import Testing

@testable import hexlist

@Suite struct DeviceVerificationTests {
    @Test("both fingerprints in upper case, the smaller one first, in any order of the arguments") func text() throws {
        let one = try #require(Fingerprint("05c8e1d9" + String(repeating: "0", count: 48) + "0a077f77"))
        let other = try #require(Fingerprint("901648DC" + String(repeating: "F", count: 48) + "C248C2BD"))
        let expected = "05C8E1D9…0A077F77 901648DC…C248C2BD"
        #expect(DeviceVerification.text(one, other) == expected && DeviceVerification.text(other, one) == expected)
    }
}
