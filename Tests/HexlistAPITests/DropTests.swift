import DaemonTestSupport
import Foundation
import HexlistClient
import HexlistModel
import TestSupport
import Testing

@testable import HexlistAPI
@testable import HexlistDaemon

/// Shortcuts on the peer port: texts, forms, files, repeated requests and refusals, over real connections.
@Suite("Drop tokens", .timeLimit(.minutes(5))) struct DropTests {
    /// A request of a shortcut, on its own connection.
    private func post(
        _ port: Int, _ path: String, _ body: String, _ headers: [String] = ["Content-Type: text/plain"], length: Int? = nil,
        method: String = "POST"
    ) async throws -> RawHTTPReply {
        let host = headers.contains { $0.hasPrefix("Host:") } ? [] : ["Host: 127.0.0.1:\(port)"]
        let fields = host + ["Connection: close", "Content-Length: \(length ?? body.utf8.count)"] + headers
        return try await RawHTTP.ask(port, "\(method) \(path)", fields: fields, body: body, mayReset: true)
    }

    private func add(_ daemon: TestDaemon, _ name: String = "iPhone") async throws -> (drop: DropTokenView, port: Int, path: String) {
        let drop = try await daemon.client.addDrop(DropTokenRequest(name: name, address: "127.0.0.1"))
        let (port, url) = (await daemon.node.status().port, try #require(drop.url))
        let start = "http://127.0.0.1:\(port)"
        #expect(url.hasPrefix("\(start)/drop/") && url.utf8.count == start.utf8.count + "/drop/".utf8.count + GuestKey.length)
        return (drop, port, String(url.dropFirst(start.count)))
    }

    @Test("while there is a token the port speaks HTTP, and the status says so; the token is shown once") func port() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (client, port) = (daemons[0].client, await daemons[0].node.status().port)
            #expect(try await post(port, "/drop/x", "a").head.isEmpty)
            #expect(try await client.status().drops == 0)
            let (drop, _, path) = try await add(daemons[0])
            #expect(drop.name == "iPhone" && drop.usedAt == nil && drop.qr?.hasPrefix("<svg") == true)
            #expect(try await client.status().drops == 1)
            let listed = try await client.drops()
            #expect(listed.map(\.uuid) == [drop.uuid] && listed[0].url == nil && listed[0].qr == nil && listed[0].urls == nil)
            #expect(try daemons[0].api.store.readSync { try $0.dropTokens() }.map(\.sha256) == [GuestKey.hash(String(path.suffix(22)))])
            await #expect(throws: HexlistError.self) { try await client.addDrop(DropTokenRequest(name: "iphone", address: "127.0.0.1")) }
            for name in ["", " ", "a\u{7}", String(repeating: "x", count: 41)] {
                await #expect(throws: HexlistError.self) { try await client.addDrop(DropTokenRequest(name: name, address: "127.0.0.1")) }
            }
            // A drop token does not open the page for guests.
            #expect(try await post(port, "/", "", method: "GET").status == 410)
            #expect(try await client.removeDrop("IPHONE").uuid == drop.uuid)
            await #expect(throws: HexlistError.self) { try await client.removeDrop("iPhone") }
            #expect(try await post(port, path, "a").head.isEmpty)
            #expect(try await client.drops().isEmpty)
        }
    }

    @Test("texts, forms and JSON become hexes in the inbox: addresses are links, the rest is the description") func texts() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (drop, port, path) = try await add(daemons[0])
            let client = daemons[0].client
            let cases: [(body: String, type: String, description: String, links: [String])] = [
                ("https://example.org/a", "text/plain", "", ["https://example.org/a"]),
                ("Look at\nhttps://example.org/b", "text/plain; charset=utf-8", "Look at", ["https://example.org/b"]),
                (#"{"title":"Über","url":"https://example.org/c"}"#, "application/json", "Über", ["https://example.org/c"]),
                ("text=Hello+there", "application/x-www-form-urlencoded", "Hello there", []),
                ("https://example.org/?a=1&b=2", "application/x-www-form-urlencoded", "", ["https://example.org/?a=1&b=2"]),
                (
                    "--x\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nFrom a form\r\n--x--\r\n",
                    "multipart/form-data; boundary=x", "From a form", []
                ),
            ]
            for each in cases {
                let reply = try await post(port, path, each.body, ["Content-Type: \(each.type)"])
                #expect(reply.status == 200 && reply.body == "ada has it.\n", "\(each) \(reply)")
                #expect(reply.head.contains("content-type: text/plain; charset=utf-8"))
                let newest = try #require(try await client.hexes(.init(), limit: 1).items.first)
                #expect(newest.unread && newest.label?.text() == "iPhone (drop)" && newest.peerUUID == drop.uuid)
                let hex = try await client.hex(newest.id)
                #expect(hex.description == each.description && (hex.links ?? []).map(\.url) == each.links)
            }
            #expect(try await client.drops()[0].usedAt != nil)
            #expect(try await client.peers(all: true).allSatisfy { $0.reason == "self" })
            do {
                _ = try await client.trust("iPhone", fingerprint: nil)
                Issue.record("a drop token was trusted")
            } catch let error as HexlistError {
                #expect(error.message == "A drop token has no key, so it cannot be trusted, named or sent to.")
            }
        }
    }

    @Test("files arrive raw or in a form, byte for byte, with clean names") func files() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (drop, port, path) = try await add(daemons[0])
            let client = daemons[0].client
            let big = String(repeating: "0123456789abcde\n", count: 90_000)  // 1.4 MB, which are stored in several writes
            let form =
                "--x\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nTwo\r\n--x\r\nContent-Disposition: form-data; name=\"a\"; "
                + "filename=\"../Föhr.txt\"\r\nContent-Type: text/plain\r\n\r\n\(big)\r\n--x\r\nContent-Disposition: form-data; "
                + "name=\"b\"; filename=\"empty.bin\"\r\n\r\n\r\n--x--\r\n"
            let cases: [(body: String, type: String, path: String, description: String, files: [(name: String, content: String)])] = [
                (form, "multipart/form-data; boundary=x", path, "Two", [("_Föhr.txt", big), ("empty.bin", "")]),
                (big, "image/jpeg", path, "file.jpg", [("file.jpg", big)]),
                ("PDF", "application/x-own", path + "?name=F%C3%B6hr%2F1.pdf", "Föhr_1.pdf", [("Föhr_1.pdf", "PDF")]),
                ("two", "application/x-own", path + "?a=1&name=b.txt&c=d", "b.txt", [("b.txt", "two")]),
            ]
            for each in cases {
                #expect(try await post(port, each.path, each.body, ["Content-Type: \(each.type)"]).status == 200)
                let newest = try #require(try await client.hexes(.init(), limit: 1).items.first)
                let links = try #require(try await client.hex(newest.id).links)
                #expect(newest.description == each.description && links.map(\.linkDescription) == each.files.map(\.name))
                #expect(links.allSatisfy { $0.url.hasPrefix("hexlist://\(drop.uuid)/") })
                try await TemporaryFolder.with { folder in
                    let start = try await client.fetch(TransferRequest(hex: newest.id, to: folder.path))
                    try await client.watchTransfers(try #require(start.first)...(try #require(start.last))) { !$0.isQuiet }
                    for file in each.files {
                        #expect(try String(contentsOfFile: "\(folder.path)/\(file.name)", encoding: .utf8) == file.content)
                    }
                }
            }
            let kept = try await client.cacheSummary().kept
            #expect(kept == 4)  // equal contents are one file
            #expect(daemons[0].node.transfers.guestFiles.folder.sessions().isEmpty)
        }
    }

    @Test("a repeated request is the same hex: by its key, or by its content within two minutes") func repeated() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (_, port, path) = try await add(daemons[0])
            let (_, _, other) = try await add(daemons[0], "iPad")
            let client = daemons[0].client
            func send(_ path: String, _ text: String, key: String? = nil) async throws -> String {
                let reply = try await post(port, path, text, ["Content-Type: text/plain"] + (key.map { ["Idempotency-Key: \($0)"] } ?? []))
                return reply.status == 200 ? reply.body : "\(reply.status)"
            }
            let (new, known) = ("ada has it.\n", "ada has it already.\n")
            let sends: [(path: String, text: String, key: String?, reply: String)] = [
                (path, "one", "k1", new), (path, "one", "k1", known), (path, "other text", "k1", known), (path, "one", "k2", new),
                (other, "one", "k1", new), (path, "two", nil, new), (path, "two", nil, known), (path, "three", nil, new),
            ]
            for each in sends { #expect(try await send(each.path, each.text, key: each.key) == each.reply, "\(each)") }
            #expect(try await send(path, "two", key: String(repeating: "k", count: 129)) == "400")
            #expect(try await client.hexes(.init(), limit: 100).items.count == 5)
            // The same request several times at once, as from a client that did not wait for a slow reply and repeated the request.
            let replies = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<6 { group.addTask { try await send(path, "at once", key: "k3") } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(replies.count { $0 == new } == 1 && replies.count { $0 == known } == 5)
            // A repeated file leaves no second copy.
            let picture = ["Content-Type: image/png", "Idempotency-Key: k4"]
            for reply in [new, known] { #expect(try await post(port, path, "PNG", picture).body == reply) }
            #expect(try await client.cacheSummary().kept == 1)
            #expect(daemons[0].node.transfers.guestFiles.folder.sessions().isEmpty)
        }
    }

    @Test("refused requests store nothing and leave no file") func refusals() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (_, port, path) = try await add(daemons[0])
            let text = ["Content-Type: text/plain"]
            let multipart = "Content-Type: multipart/form-data; boundary=x"
            let head = "--x\r\nContent-Disposition: form-data; name=a; filename=a\r\n\r\n"
            let cases: [(status: Int, path: String, headers: [String], body: String, length: Int?)] = [
                (403, "/drop/", text, "a", nil), (403, "/drop/" + String(repeating: "A", count: 22), text, "a", nil),
                (403, path + "/", text, "a", nil), (403, path.lowercased() + "x", text, "a", nil),
                (403, path, text + ["Origin: http://127.0.0.1:\(port)"], "a", nil), (403, path, text + ["Origin: null"], "a", nil),
                (403, path, text + ["Sec-Fetch-Site: cross-site"], "a", nil), (403, path, text + ["Host: evil.example:\(port)"], "a", nil),
                (400, path, text, "", nil), (400, path, text, " \n", nil), (400, path, ["Content-Type: application/json"], "[", nil),
                (400, path, ["Content-Type: application/json"], "{}", nil), (400, path, [multipart], head + "unfinished", nil),
                (400, path, ["Content-Type: multipart/form-data"], head, nil),
                (413, path, text, String(repeating: "x", count: 65_537), nil),
                (413, path, ["Content-Type: application/json"], #"{"text":"\#(String(repeating: "x", count: 65_537))"}"#, nil),
                (413, path, [multipart], String(repeating: head + "\r\n", count: 21) + "--x--", nil),
                (413, path, ["Content-Type: image/png"], "PNG", 34 << 20),
            ]
            for each in cases {
                let reply = try await post(port, each.path, each.body, each.headers, length: each.length)
                #expect(reply.status == each.status, "\(each.path) \(each.headers) \(reply.head)")
                #expect(reply.head.contains("connection: close"))
                #expect(!reply.head.contains("access-control"))
            }
            for method in ["GET", "PUT", "DELETE"] { #expect(try await post(port, path, "", method: method).status == 405) }
            #expect(try await daemons[0].client.hexes(.init(), limit: 1).items.isEmpty)
            try await eventually { daemons[0].node.transfers.guestFiles.folder.sessions().isEmpty }
            #expect(try await post(port, path, "a").status == 200)
        }
    }

    @Test("a refusal ends its connection") func end() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (_, port, _) = try await add(daemons[0])
            let host = "Host: 127.0.0.1:\(port)"
            // The client does not ask for the end of the connection, and sends a second request.
            let second = "POST /drop/wrong HTTP/1.1\r\n\(host)\r\nContent-Length: 1\r\n\r\nb"
            let refused = try await RawHTTP.ask(
                port, "POST /drop/wrong", fields: [host, "Content-Length: 1"], body: "a" + second, mayReset: true)
            #expect(refused.status == 403 && !refused.body.contains("HTTP/1.1"))
        }
    }

    @Test("an upload ends when its token is removed") func removed() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (_, port, path) = try await add(daemons[0])
            _ = try await add(daemons[0], "iPad")
            let folder = daemons[0].node.transfers.guestFiles.folder
            let reply = try await RawHTTP.ask(
                port, "POST \(path)", fields: ["Host: 127.0.0.1:\(port)", "Content-Type: image/png", "Content-Length: 3000000"],
                body: String(repeating: "x", count: 1_000_000),
                rest: {
                    try await eventually { !folder.sessions().isEmpty }
                    _ = try await daemons[0].client.removeDrop("iPhone")
                    return "more"
                }, until: .head)
            #expect(reply.status == 403 && reply.body.contains("was removed"))
            try await eventually { folder.sessions().isEmpty }
        }
    }

    @Test("a request too many is refused; other tokens work, also after many wrong ones") func rate() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (_, port, path) = try await add(daemons[0])
            let (_, _, other) = try await add(daemons[0], "iPad")
            for _ in 0..<(DropTokenAdmission.wrongTokensInHour + 60) { _ = try await post(port, "/drop/wrong", "a") }
            #expect(try await post(port, "/drop/wrong", "a").status == 429)
            for number in 0..<DropTokenAdmission.requestsInHour { #expect(try await post(port, path, "text \(number)").status == 200) }
            let refused = try await post(port, path, "one too many")
            #expect(refused.status == 429 && refused.body.contains("60 requests in an hour are the maximum"))
            #expect(try await post(port, other, "text").status == 200)
        }
    }
}
