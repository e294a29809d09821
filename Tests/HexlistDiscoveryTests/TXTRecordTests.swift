import HexlistModel
import TestSupport
import Testing

@testable import HexlistDiscovery

@Suite struct TXTRecordTests {
    static let peer = PeerID(UUIDBytes(high: 0x1234_5678_9ABC_8EF0, low: 0x8000_0000_0000_0001))

    struct Case: Sendable {
        var strings: [String]
        var peer: PeerID? = TXTRecordTests.peer
        var version: String?
        var protocolVersion: Int?
        var boot: BootNonce?
    }

    @Test(
        "reads the known keys, whatever else the record contains",
        arguments: [
            Case(
                strings: ["txtvers=1", "id=\(peer)", "v=1.2", "p=1", "boot=00000000000000ff"], version: "1.2", protocolVersion: 1,
                boot: BootNonce(255)),
            Case(strings: ["id=\(peer.description.lowercased())"]),
            Case(strings: ["ID=\(peer)", "id=nonsense"]),  // the first one counts, without regard to case
            Case(strings: ["id=nonsense", "id=\(peer)"], peer: nil),
            Case(strings: ["", "=x", "id", "v", "x=\u{0}", "id=\(peer)"]),
            Case(strings: ["id=\(peer)", "p=one", "boot=12", "v="], version: ""),
            Case(strings: ["id=\(peer)", "p=99999999999999999999999", "boot=zzzzzzzzzzzzzzzz"]),
            Case(strings: ["id= \(peer)"], peer: nil),
            Case(strings: ["id=\(peer)\u{0}"], peer: nil),
            Case(strings: ["id=00000000-0000-0000-0000-000000000000"], peer: nil),
            Case(strings: ["id=FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"], peer: nil),
            Case(strings: ["i\u{7}d=1", "id=\(peer)"]),
            Case(strings: [], peer: nil),
            Case(strings: Array(repeating: "a=1", count: 15) + ["id=\(peer)"]),
            Case(strings: Array(repeating: "a=1", count: 16) + ["id=\(peer)"], peer: nil),  // the id is in the 17th string
            Case(strings: [String(repeating: "x", count: 254), "id=\(peer)", String(repeating: "y", count: 200), "v=9"]),
            // The id begins after the first 400 bytes.
            Case(strings: [String(repeating: "x", count: 254), String(repeating: "y", count: 144), "id=\(peer)"], peer: nil),
        ]) func reading(_ example: Case)
    {
        let record = TXTRecord(strings: example.strings.map { Array($0.utf8) })
        #expect(record.peer == example.peer)
        #expect(record.version == example.version)
        #expect(record.protocolVersion == example.protocolVersion)
        #expect(record.boot == example.boot)
    }

    @Test func anyBytesAreRead() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<5_000 {
            let strings = (0..<Int.random(in: 0...20, using: &generator)).map { _ in
                (0..<Int.random(in: 0...255, using: &generator)).map { _ in UInt8.random(in: 0...255, using: &generator) }
            }
            let record = TXTRecord(strings: strings)
            #expect((record.version?.utf8.count ?? 0) <= 64)
        }
    }

    @Test func announcementReadsBackAndFits() {
        let announcement = ServiceAnnouncement(
            displayName: String(repeating: "é", count: 60), peer: Self.peer, boot: BootNonce(5), port: 24391)
        #expect(announcement.instanceName.utf8.count <= 63)
        #expect(announcement.strings.first == Array("txtvers=1".utf8))
        let record = TXTRecord(strings: announcement.strings)
        #expect(record.peer == Self.peer)
        #expect(record.boot == BootNonce(5))
        #expect(record.protocolVersion == ProtocolLimits.version)
        #expect(record.version == ProtocolLimits.appVersion)
        #expect(announcement.strings.reduce(0) { $0 + $1.count + 1 } <= 200)
    }
}
