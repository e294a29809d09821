import DaemonTestSupport
import HexlistAPI
import HexlistClient
import HexlistModel
import Testing

@testable import HexlistDaemon

@Suite("Export and import by the local API", .timeLimit(.minutes(5)))
struct TransferTests {
    private func lines(_ texts: [String]) -> [UInt8] { texts.flatMap { Array($0.utf8) + [0x0A] } }

    private func exported(_ client: HexlistClient, _ selection: HexSelection) async throws -> [String] {
        var lines: [String] = []
        try await client.export(selection) { lines.append(String(decoding: $0, as: UTF8.self)) }
        return lines
    }

    @Test("what is imported is exported as it came, in its order; again it adds nothing")
    func roundTrip() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0].client, daemons[1].client)
            let hexes = [
                ##"{"senderUUID":"","senderName":"","hexDescription":"one","hexColor":"#112233","links":[{"url":"https://example.org","linkDescription":"a","service":"Unknown","note":"kept"}],"x":{"y":[1]}}"##,
                #"{"senderUUID":"U","senderName":"N","hexDescription":"two","hexColor":"","links":[],"children":[{"senderUUID":"","senderName":"","hexDescription":"in","hexColor":"","links":[{"url":"b:c","linkDescription":"","service":"Unknown"}]}]}"#,
                ##"{"senderUUID":"","senderName":"","hexDescription":"one","hexColor":"#112233","links":[{"url":"https://example.org","linkDescription":"a","service":"Unknown","note":"kept"}],"x":{"y":[1]}}"##,
            ]
            #expect(try await ada.importHexes(lines(hexes)) == ImportResult(added: 3))
            #expect(try await ada.importHexes(lines(hexes)) == ImportResult(unchanged: 3))
            #expect(try await ada.importHexes(lines([hexes[0]])) == ImportResult(unchanged: 1))
            let out = try await exported(ada, .list(location: "mine"))
            #expect(out.count == 3 && out[0].contains("\"one\"") && out[1].contains("\"children\"") && out[1].contains("\"b:c\""))
            #expect(try await bob.importHexes(lines(out)) == ImportResult(added: 3))
            #expect(try await exported(bob, .list(location: "mine")) == out)
            let mine = try await ada.hexes(.init(location: "mine"), limit: 9).items
            #expect(mine.map(\.description) == ["one", "two", "one"])
            #expect(try await exported(ada, .ids([mine[1].id])) == [out[1]])
            #expect(try await exported(ada, .list(location: "inbox")).isEmpty)
            await #expect { try await exported(ada, .ids([9_999])) } throws: { ($0 as? HexlistError)?.code == .notFound }
            await #expect(throws: HexlistError.self) { try await exported(ada, .list(from: "nobody")) }
        }
    }

    @Test("a line that is wrong is refused with its number, and the others are imported")
    func refusals() async throws {
        try await TestDaemon.with("ada") { daemons in
            let ada = daemons[0].client
            let many = "{\"links\":[" + [String](repeating: "\"a:b\"", count: ProtocolLimits.links + 1).joined(separator: ",") + "]}"
            let result = try await ada.importHexes(
                lines([#"{"links":["a:b"]}"#, "", "nonsense", many, "[]", #"{"hexDescription":"empty"}"#]))
            #expect(result.added == 2 && result.refused.map(\.line) == [3, 4, 5])
            #expect(result.refused[1].code == "tooManyLinks")
            let bad = try await ada.importHexes(lines([String](repeating: "x", count: LocalAPI.importRefusals + 7)))
            #expect(bad.refused.count == LocalAPI.importRefusals && bad.untold == 7)
        }
    }

    @Test("text that a terminal would obey is escaped in what is exported")
    func escaped() async throws {
        try await TestDaemon.with("ada") { daemons in
            let ada = daemons[0].client
            let hostile = "{\"hexDescription\":\"a\\u001b[2J\u{202E}\u{9B}\",\"links\":[],\"x\":\"\u{2028}\"}"
            #expect(try await ada.importHexes(lines([hostile])).added == 1)
            let out = try #require(try await exported(ada, .list(location: "mine")).first)
            #expect(out.unicodeScalars.allSatisfy(TerminalText.isShown) && out.contains("\\u202e") && out.contains("\\u2028"))
            #expect(try await ada.importHexes(lines([out])) == ImportResult(unchanged: 1))
        }
    }

    @Test("what waits in memory for its transaction is bounded by what it takes there")
    func bounded() throws {
        var reader = ImportReader()
        let line = Array("{}\n".utf8)
        let most = LocalAPI.importWeight / 512
        #expect(throws: HexlistError.self) {
            for _ in 0...most { try line.withUnsafeBytes { try reader.feed($0) } }
        }
        #expect(reader.hexes.count <= most)
    }
}
