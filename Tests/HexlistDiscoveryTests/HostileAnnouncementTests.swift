import HexlistModel
import HostileTexts
import TestSupport
import Testing

@testable import HexlistDiscovery

/// Hostile announcements from any machine on the link: arbitrary bytes cause no trap, bounded memory, and a printable list.
@Suite("Hostile announcements")
struct HostileAnnouncementTests {
    private static let own = PeerID(UUIDBytes(high: 1, low: 1))

    private static func bytes(_ most: Int, _ generator: inout SeededGenerator) -> [UInt8] {
        (0..<Int.random(in: 0...most, using: &generator)).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }

    @Test("TXT records and instance names of random bytes", .offPool) func random() {
        var generator = SeededGenerator(seed: 1)
        let keys = ["id=", "v=", "p=", "boot=", "txtvers=", "ID=", "=", ""].map { Array($0.utf8) }
        let own = "5E3C0000-0000-8000-8000-000000000000"
        for round in 0..<(LongTests.areWanted ? 100_000 : 10_000) {
            var strings: [[UInt8]] = []
            for _ in 0..<Int.random(in: 0...6, using: &generator) {
                strings.append((keys.randomElement(using: &generator) ?? []) + Self.bytes(40, &generator))
            }
            if round % 3 == 0 {  // nearly valid
                var id = Array("id=\(own)".utf8)
                id[Int.random(in: id.indices, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
                strings.append(id)
            }
            let record = TXTRecord(strings: strings)
            #expect((record.version ?? "").utf8.count <= DirectoryLimits.versionBytes)
            if let peer = record.peer { #expect(peer.uuid != .nil && peer.uuid != .max) }
            let name = String(decoding: Self.bytes(63, &generator), as: UTF8.self)
            #expect(PeerName.display(instance: name).utf8.count <= name.utf8.count)
            #expect(TerminalText.clean(PeerName.display(instance: name)).unicodeScalars.allSatisfy(TerminalText.isShown))
        }
    }

    @Test(
        "a UUID with extra characters is invalid",
        arguments: [
            "5E3C0000-0000-8000-8000-000000000000\u{0}", "5E3C0000-0000-8000-8000-000000000000\u{0}evil",
            " 5E3C0000-0000-8000-8000-000000000000",
            "5E3C0000-0000-8000-8000-00000000000\u{0}", "{5E3C0000-0000-8000-8000-000000000000}", "5E3C0000-0000-8000-8000-000000000000\n",
            "5E3C0000000080008000000000000000", "５E3C0000-0000-8000-8000-000000000000", "00000000-0000-0000-0000-000000000000",
            "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "",
        ]) func uuid(text: String)
    {
        #expect(TXTRecord(strings: [Array("id=\(text)".utf8)]).peer == nil)
    }

    @Test("versions compare by bytes, though `String` calls them equal") func version() {
        let endpoint = Endpoint(host: "192.0.2.1", port: 24391, via: .mdns)
        let claims = ["\u{E9}", "e\u{301}", nil].map {
            DirectoryRecord.AnnouncedPeer(endpoint: endpoint, refusal: nil, peer: Self.own, version: $0, boot: nil)
        }
        #expect(claims[0] == claims[0] && claims[0] != claims[1] && claims[0] != claims[2] && claims[2] == claims[2])
    }

    @Test("60 kB of TXT: the first 400 bytes are read and the rest is dropped") func long() {
        let strings = [Array("id=5E3C0000-0000-8000-8000-000000000000".utf8)] + (0..<300).map { _ in [UInt8](repeating: 0x61, count: 200) }
        #expect(TXTRecord(strings: strings).peer != nil)
        #expect(TXTRecord.readable(strings).reduce(0) { $0 + $1.count + 1 } <= 400)
        #expect(TXTRecord(strings: Array(strings.reversed())).peer == nil)
    }

    @Test("hostile text as name, host, version and failure: the list is bounded and printable") func listing() throws {
        var directory = PeerDirectory(own: Self.own, boot: BootNonce(1), now: .now)
        var shown = 0
        for (index, text) in HostileTexts.inContext.enumerated() {
            let name = PeerName.cut(text, bytes: 63)  // the longest text that fits a DNS label
            let record = Record(
                key: InstanceKey(name: name, type: "_hexlist._tcp", domain: "local"), interface: Int32(index % 3), ipv6: index % 2 == 0)
            _ = directory.handle(.discovery(.appeared(record, interfaceName: text)), now: .now)
            let peer = PeerID(UUIDBytes(high: UInt64(index) << 16 | 0x8000, low: 1 << 63))
            let txt = [Array("id=\(peer)".utf8), Array("v=\(text)".utf8), Array("boot=\(text)".utf8), Array(text.utf8)]
            _ = directory.handle(
                .discovery(
                    .resolved(record, Resolution(host: text, address: index % 4 == 0 ? text : "192.168.1.9", port: 24391, txt: txt))),
                now: .now)
            _ = directory.handle(.discovery(.resolveFailed(record, text)), now: .now)
        }
        for row in directory.listing() {
            shown += 1
            #expect(row.name.utf8.count <= DirectoryLimits.nameBytes && (row.version ?? "").utf8.count <= DirectoryLimits.versionBytes)
            #expect(row.why.utf8.count <= 2_048)
            for text in [row.name, row.why, row.version ?? ""] + row.endpoints.map(\.endpoint.description) {
                #expect(TerminalText.clean(text).unicodeScalars.allSatisfy(TerminalText.isShown))
            }
        }
        #expect(shown > 1_000)
    }

    @Test("64 announcements in a peer's name displace its own; once one is withdrawn or it resolves again, it counts again")
    func surplus() throws {
        var stage = Stage()
        let peer = Stage.peer(1)
        let ownOne = stage.announce(peer)
        stage.end(.noAnswer)
        let forged = (0..<64).map { stage.announce(peer, name: "forged \($0)", address: "192.168.7.\($0 + 100)") }
        func dialled(_ stage: Stage) -> Bool { stage.directory.endpoints(of: peer).contains { $0.host == "192.168.7.20" } }
        #expect(!dialled(stage))
        stage.resolve(ownOne, Stage.txt(peer))
        #expect(!dialled(stage))
        stage.tell(.discovery(.withdrawn(forged[40])))
        #expect(dialled(stage))
    }
}
