import DaemonTestSupport
import Foundation
import HexlistAPI
import HexlistClient
import HexlistModel
import Hummingbird
import NIOCore
import NIOPosix
import TestSupport
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

    @Test("imported hexes are exported unchanged and in their order; a second import adds nothing")
    func roundTrip() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0].client, daemons[1].client)
            let hexes = [
                ##"{"senderUUID":"","senderName":"","hexDescription":"one","hexColor":"#112233","links":[{"url":"https://example.org","linkDescription":"a","service":"Unknown","note":"kept"}],"x":{"y":[1]}}"##,
                #"{"senderUUID":"U","senderName":"N","hexDescription":"two","hexColor":"","links":[],"children":[{"senderUUID":"","senderName":"","hexDescription":"in","hexColor":"","links":[{"url":"b:c","linkDescription":"","service":"Unknown"}]}]}"#,
                ##"{"senderUUID":"","senderName":"","hexDescription":"one","hexColor":"#112233","links":[{"url":"https://example.org","linkDescription":"a","service":"Unknown","note":"kept"}],"x":{"y":[1]}}"##,
            ]
            #expect(try await ada.importHexes(lines(hexes)) == ImportResult(added: 3, addedInside: 1, addedLinks: 3))
            #expect(try await ada.importHexes(lines(hexes)) == ImportResult(unchanged: 3))
            #expect(try await ada.importHexes(lines([hexes[0]])) == ImportResult(unchanged: 1))
            let out = try await exported(ada, .list(location: "mine"))
            #expect(out.count == 3 && out[0].contains("\"one\"") && out[1].contains("\"children\"") && out[1].contains("\"b:c\""))
            #expect(try await bob.importHexes(lines(out)) == ImportResult(added: 3, addedInside: 1, addedLinks: 3))
            #expect(try await exported(bob, .list(location: "mine")) == out)
            let mine = try await ada.hexes(.init(location: "mine"), limit: 9).items
            #expect(mine.map(\.description) == ["one", "two", "one"])
            #expect(try await exported(ada, .ids([mine[1].id])) == [out[1]])
            #expect(try await exported(ada, .list(location: "inbox")).isEmpty)
            await #expect { try await exported(ada, .ids([9_999])) } throws: { ($0 as? HexlistError)?.code == .notFound }
            await #expect(throws: HexlistError.self) { try await exported(ada, .list(from: "nobody")) }
        }
    }

    @Test("order of members, escapes and white space do not matter for equality with an existing hex; the spelling of a number does")
    func memberOrder() async throws {
        try await TestDaemon.with("ada") { daemons in
            let ada = daemons[0].client
            let hex = #"{"hexDescription":"a","links":[{"url":"b:c","s":"no","t":{"x":"\u00e9","y":[1,{"p":1,"q":2}]}}],"n":1,"m":2}"#
            let same = #"{"m": 2, "n": 1, "links":[{"t":{"y":[1,{"q":2,"p":1}],"x":"é"},"url":"b:c","s":"no"}],"hexDescription":"a"}"#
            #expect(try await ada.importHexes(lines([hex])) == ImportResult(added: 1, addedLinks: 1))
            let stored = try await exported(ada, .list(location: "mine"))
            #expect(try await ada.importHexes(lines([same])) == ImportResult(unchanged: 1))
            #expect(try await exported(ada, .list(location: "mine")) == stored)
            let other = same.replacing(#""n": 1"#, with: #""n": 1.0"#)
            #expect(try await ada.importHexes(lines([other])) == ImportResult(added: 1, addedLinks: 1))
        }
    }

    @Test("a file is imported into a hex of My Hexlist once; if the hex would get too large, nothing is imported")
    func into() async throws {
        try await TestDaemon.with("ada") { daemons in
            let ada = daemons[0].client
            let folder = try await ada.addMine(Array(#"{"description":"folder","links":["a:b"]}"#.utf8), into: nil).id
            let hexes = [
                #"{"hexDescription":"one","links":["x:1"]}"#,
                #"{"hexDescription":"two","links":[],"children":[{"hexDescription":"in","links":["x:2","x:3"]}]}"#,
            ]
            #expect(try await ada.importHexes(lines(hexes), into: folder) == ImportResult(added: 2, addedInside: 1, addedLinks: 3))
            #expect(try await ada.importHexes(lines(hexes), into: folder) == ImportResult(unchanged: 2))
            let whole = try await ada.hex(folder)
            #expect(whole.children?.map(\.description) == ["one", "two"] && whole.hexesInside == 3 && whole.linksInside == 3)
            #expect(try await ada.hexes(.init(location: "mine"), limit: 9).items.map(\.id) == [folder])
            #expect(try await ada.importHexes(lines(hexes)) == ImportResult(added: 2, addedInside: 1, addedLinks: 3))
            let many = "{\"links\":[" + [String](repeating: "\"a:b\"", count: ProtocolLimits.links).joined(separator: ",") + "]}"
            let deep = (1...ProtocolLimits.levels - 1).reduce("{}") { inner, _ in "{\"children\":[\(inner)]}" }
            for hex in [many, deep] {
                await #expect { try await ada.importHexes(lines(["{}", hex]), into: folder) } throws: {
                    ($0 as? HexlistError)?.code == .badRequest
                }
            }
            await #expect { try await ada.importHexes(lines(hexes), into: 9_999) } throws: { ($0 as? HexlistError)?.code == .notFound }
            #expect(try await ada.hex(folder) == whole)
        }
    }

    @Test("an import reports its progress, and at the end the result or the error")
    func progress() async throws {
        try await TestDaemon.with("ada") { daemons in
            let ada = daemons[0].client
            let hexes = (0..<2_000).map { #"{"hexDescription":"\#($0)","links":["x:\#($0)"]}"# }
            var steps: [ImportProgress] = []
            #expect(try await ada.importHexes(lines(hexes)) { steps.append($0) } == ImportResult(added: 2_000, addedLinks: 2_000))
            #expect(!steps.isEmpty && steps.allSatisfy { $0.total == 2_000 && (1...2_000).contains($0.done) })
            #expect(zip(steps, steps.dropFirst()).allSatisfy { $0.done < $1.done })
            await #expect { try await ada.importHexes(lines(hexes), into: 99_999) { _ in } } throws: {
                ($0 as? HexlistError)?.code == .notFound
            }
            let folder = #"{"hexDescription":"7","links":["x:7","x:new"],"children":[{"hexDescription":"in","links":["x:in"]}]}"#
            let merged = try await ada.importHexes(lines([folder]), merging: true) { _ in }
            #expect(merged == ImportResult(extended: 1, newHexes: 1, newLinks: 2))
            #expect(try await ada.importHexes(lines([folder]), merging: true) == ImportResult(unchanged: 1))
            let found = try #require(try await named("7", ada))
            #expect(found.linkCount == 2 && found.hexesInside == 1)
        }
    }

    private func named(_ description: String, _ client: HexlistClient) async throws -> HexJSON? {
        var found: HexJSON?
        var after: String?
        repeat {
            let page = try await client.hexes(.init(location: "mine"), limit: 1_000, after: after)
            found = found ?? page.items.first { $0.description == description }
            after = page.next
        } while found == nil && after != nil
        return found
    }

    @Test("the hexes that a search finds are exported, newest first; one inside another found hex is exported once")
    func found() async throws {
        try await TestDaemon.with("ada") { daemons in
            let ada = daemons[0].client
            let hexes = [
                #"{"hexDescription":"river old","links":["x:1"]}"#,
                #"{"hexDescription":"top","links":[],"children":[{"hexDescription":"river in","links":["x:2"]}]}"#,
                #"{"hexDescription":"river both","links":[],"children":[{"hexDescription":"a","links":[],"children":[{"hexDescription":"river deep","links":[]}]}]}"#,
                #"{"hexDescription":"sea","links":["x:4"]}"#,
            ]
            for hex in hexes { _ = try await ada.importHexes(lines([hex])) }
            func found(_ text: String, location: String? = nil) async throws -> [String] {
                var lines: [String] = []
                try await ada.export(.search(text, location: location)) { lines.append(String(decoding: $0, as: UTF8.self)) }
                return lines
            }
            let rivers = try await found("river", location: "mine")
            #expect(rivers.count == 3 && rivers[0].contains("river both") && rivers[0].contains("river deep"))
            #expect(rivers[1].contains("river in") && !rivers[1].contains("top") && rivers[2].contains("river old"))
            #expect(try await found("sea").count == 1)
            #expect(try await found("nowhere").isEmpty)
            #expect(try await found("river", location: "inbox").isEmpty)
            for bad in ["", "host:"] {
                await #expect { try await found(bad) } throws: { ($0 as? HexlistError)?.code == .badRequest }
            }
            await #expect { try await found("sea", location: "nowhere") } throws: { ($0 as? HexlistError)?.code == .badRequest }
        }
    }

    @Test("an invalid line is refused with its number, and the others are imported")
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

    @Test("characters that a terminal would obey are escaped in an export")
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

    @Test("one import or roster runs at a time; the others wait with their bodies unread, then run")
    func oneAtATime() async throws {
        try await TestDaemon.with("ada") { daemons in
            let ada = daemons[0]
            var running: RequestSlots.Slot? = try await ada.api.importSlot()  // like a running import
            try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<3 {
                    group.addTask { [lines = lines([#"{"hexDescription":"\#(number)","links":["x:1"]}"#])] in
                        try await ada.client.importHexes(lines).added
                    }
                    group.addTask { [lines = lines([#"{"hexDescription":"p\#(number)","links":["x:1"]}"#])] in
                        try await ada.client.importHexes(lines) { _ in }.added
                    }
                }
                group.addTask { try await ada.client.importRoster([]).changed }
                try await eventually { ada.api.imports.waiting == 7 }
                #expect(try await ada.client.status().inbox == 0, "other requests are answered")
                #expect(running != nil)
                running = nil
                #expect(try await group.reduce(0, +) == 6)
            }
            #expect(ada.api.imports.waiting == 0)
        }
    }

    @Test("an import whose body stops arriving ends, and the next one runs")
    func stalled() async throws {
        let body = RequestBody(asyncSequence: AsyncStream<ByteBuffer> { $0.yield(ByteBuffer(string: "{}\n")) })  // a body that never ends
        let reader = try ImportReader(folder: NSTemporaryDirectory(), diskReserve: 0)
        await #expect { try await RequestInput.read(body, into: reader, pause: .milliseconds(20)) { try $0.feed($1) } } throws: {
            ($0 as? HexlistError)?.code == .badRequest
        }
    }

    @Test("an import whose body arrives very slowly ends, and the next one runs")
    func trickle() async throws {
        let body = RequestBody(asyncSequence: AsyncStream(unfolding: { ByteBuffer(string: "\n") }))  // no pauses and no end
        let reader = try ImportReader(folder: NSTemporaryDirectory(), diskReserve: 0)
        await #expect {
            try await RequestInput.read(body, into: reader, pause: .seconds(60), limit: .milliseconds(20)) { try $0.feed($1) }
        } throws: {
            ($0 as? HexlistError)?.message.contains("did not end within") == true
        }
    }

    @Test(
        "a caller that closes its connection while its import or roster waits gives up its turn, and nothing of it is imported",
        arguments: ["/v1/import", "/v1/import?progress=true", "/v1/roster"], [1, 40_000])
    func leaves(path: String, lines count: Int) async throws {
        try await TestDaemon.with("ada") { daemons in
            let ada = daemons[0]
            var running: RequestSlots.Slot? = try await ada.api.importSlot()  // like a running import
            let body = String(repeating: #"{"hexDescription":"of the one that left","links":["x:1"]}"# + "\n", count: count)
            let caller = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(unixDomainSocketPath: ada.socket).get()
            // The write is not awaited, because the daemon does not read the body yet.
            caller.writeAndFlush(ByteBuffer(string: request("POST \(path)", body: body)), promise: nil)
            try await eventually { ada.api.imports.waiting == 1 }
            try await caller.close()
            try await eventually { ada.api.imports.waiting == 0 }
            #expect(running != nil)
            running = nil
            #expect(try await ada.client.importHexes(lines([#"{"hexDescription":"next","links":["x:1"]}"#])).added == 1)
            #expect(try await ada.client.hexes(.init(location: "mine"), limit: 9).items.map(\.description) == ["next"])
        }
    }

    @Test("a caller that closes its connection in the middle of its body gives back the slot")
    func leavesInBody() async throws {
        try await TestDaemon.with("ada") { daemons in
            let ada = daemons[0]
            let caller = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(unixDomainSocketPath: ada.socket).get()
            let whole = request("POST /v1/import", headers: "Content-Type: \(LocalAPI.bulkType)\r\n", body: "{\"links\":[\"x:1\"]}\n{}\n")
            try await caller.writeAndFlush(ByteBuffer(string: String(whole.dropLast(3))))
            try await eventually { !ada.api.imports.isFree }
            try await caller.close()
            try await eventually { ada.api.imports.isFree }
            #expect(try await ada.client.hexes(.init(location: "mine"), limit: 9).items.isEmpty)
        }
    }

    @Test("a caller that only shuts down its sending side gets its reply after the wait")
    func halfClosed() async throws {
        try await TestDaemon.with("ada") { daemons in
            let ada = daemons[0]
            var running: RequestSlots.Slot? = try await ada.api.importSlot()  // like a running import
            let caller = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(unixDomainSocketPath: ada.socket) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
                            wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
                    }
                }
            let reply = try await caller.executeThenClose { inbound, outbound in
                try await outbound.write(ByteBuffer(string: request("POST /v1/import", body: "{\"links\":[\"x:1\"]}\n")))
                outbound.finish()
                try await eventually { ada.api.imports.waiting == 1 }
                #expect(running != nil)
                running = nil
                var reply = ByteBuffer()
                for try await part in inbound { reply.writeImmutableBuffer(part) }
                return String(buffer: reply)
            }
            #expect(reply.contains("\"added\":1"), "\(reply)")
        }
    }

    @Test("an import is limited, counting 512 bytes for each hex")
    func bounded() throws {
        var reader = try ImportReader(folder: NSTemporaryDirectory(), diskReserve: 0)
        let line = Array("{}\n".utf8)
        let most = LocalAPI.importWeight / 512
        #expect {
            for _ in 0...most { try line.withUnsafeBytes { try reader.feed($0) } }
        } throws: {
            ($0 as? HexlistError)?.code == .tooLarge
        }
        #expect(try reader.finish().entries.count <= most)
    }

    @Test("hexes are read back unchanged from the temporary file, which has no name", arguments: [3, 1_000, 1 << 20])
    func spooled(pieceBytes: Int) async throws {
        try await TemporaryFolder.with { folder in
            let texts = (0..<40).map { "\($0) " + String(repeating: "x", count: $0 * 1_500) }
            let lines = texts.map { "{\"hexDescription\":\"\($0)\",\"links\":[\"a:\\u0062\"]}" }
            let body = Array("\n\(lines.joined(separator: "\r\n"))\nwrong\n{\"hexDescription\":\"last\"}".utf8)
            var reader = try ImportReader(folder: folder.path, diskReserve: 0)
            for start in stride(from: 0, to: body.count, by: pieceBytes) {
                try body[start..<min(start + pieceBytes, body.count)].withUnsafeBytes { try reader.feed($0) }
            }
            let spooled = try reader.finish()
            #expect(spooled.entries.count == 41 && spooled.refused.map(\.line) == [42] && spooled.unlisted == 0)
            for index in [40, 0, 39, 17, 17] {
                let hex = try spooled.hex(index)
                #expect(hex.string(hex.hexDescription) == (texts + ["last"])[index])
                #expect(hex.links.map { hex.string($0.url) } == (index == 40 ? [] : ["a:b"]))
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
        }
    }

    @Test("the temporary file leaves the disk's reserve free, and its errors are reported")
    func spoolRoom() throws {
        let folder = NSTemporaryDirectory()
        var reader = try ImportReader(folder: folder, diskReserve: .max)
        try Array("{}".utf8).withUnsafeBytes { try reader.feed($0) }
        #expect { try reader.finish() } throws: { ($0 as? HexlistError)?.code == .storageFull }
        #expect { try ImportReader(folder: folder + "/missing", diskReserve: 0) } throws: {
            ($0 as? HexlistError)?.message.contains("No such file") == true
        }
    }
}
