import HexlistModel
import Testing

@testable import HexlistLocalSend

@Suite struct UploadRequestsTests {
    private let start = ContinuousClock.now
    private let upload = PrepareUpload(info: DeviceInfo(alias: "Pixel 9", fingerprint: nil), files: [])

    private func fingerprint(_ number: UInt8) throws -> Fingerprint {
        try #require(Fingerprint(bytes: Array(repeating: number, count: 32)))
    }

    private func address(_ number: Int) throws -> IPAddress { try #require(IPAddress("10.0.0.\(number)")) }

    @Test("one request of each device, two of each address, eight in all") func limits() throws {
        var requests = UploadRequests()
        func add(_ device: UInt8, _ host: Int) throws -> Int? {
            requests.add(upload, from: try fingerprint(device), at: try address(host), now: start)?.id
        }
        #expect(try add(1, 1) == 1)
        #expect(try add(1, 2) == nil, "the device has one")
        #expect(try add(2, 1) == 2)
        #expect(try add(3, 1) == nil, "the address has two")
        for device in UInt8(3)...8 { #expect(try add(device, Int(device)) != nil) }
        #expect(try add(9, 9) == nil, "there are eight")
        #expect(requests.remove(1)?.fingerprint == (try fingerprint(1)))
        #expect(requests.remove(1) == nil)
        #expect(try add(9, 1) == 9, "IDs are not used again")
        #expect(requests.request(of: try fingerprint(9))?.id == 9)
    }

    @Test func expiry() throws {
        var requests = UploadRequests()
        #expect(requests.nextDeadline == nil)
        _ = requests.add(upload, from: try fingerprint(1), at: try address(1), now: start)
        _ = requests.add(upload, from: try fingerprint(2), at: try address(2), now: start + .seconds(30))
        #expect(requests.nextDeadline == start + .seconds(120))
        #expect(requests.removeExpired(now: start + .seconds(119)).isEmpty)
        #expect(requests.removeExpired(now: start + .seconds(120)).map(\.id) == [1])
        #expect(requests.nextDeadline == start + .seconds(150))
    }
}
