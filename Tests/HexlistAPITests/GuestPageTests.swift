import DaemonTestSupport
import Foundation
import HexlistClient
import HexlistModel
import HexlistPage
import TestSupport
import Testing

@testable import HexlistAPI
@testable import HexlistDaemon
@testable import HexlistJSON

/// Guests on the peer port: the page, uploads, hexes and refusals, over real connections.
@Suite("The guest page", .timeLimit(.minutes(5))) struct GuestPageTests {
    /// Sends one request on its own connection and reads until it is closed. A `Host` in `headers` replaces the default one; `Origin` is added to
    /// `POST` and `DELETE` unless it is in `headers`.
    /// - Parameter length: the announced length of the body, if it differs from the real one. The connection is then closed after the body.
    private func ask(
        _ port: Int, _ line: String, _ headers: [String] = [], body: String = "", length: Int? = nil
    ) async throws -> RawHTTPReply {
        let has = { (name: String) in headers.contains { $0.hasPrefix("\(name):") } }
        var fields = has("Host") ? [] : ["Host: 127.0.0.1:\(port)"]
        if line.hasPrefix("POST") || line.hasPrefix("DELETE"), !has("Origin") { fields.append("Origin: http://127.0.0.1:\(port)") }
        fields += ["Connection: close", "Content-Length: \(length ?? body.utf8.count)"] + headers.filter { $0 != "Origin:" }
        return try await RawHTTP.ask(
            port, line, fields: fields, body: body, until: length == nil ? .closed : .none, mayReset: true)
    }

    private func invite(_ daemon: TestDaemon, _ request: InvitationRequest = InvitationRequest()) async throws -> (
        invitation: Invitation, port: Int, key: String
    ) {
        var request = request
        request.address = "127.0.0.1"
        let invitation = try await daemon.client.invite(request)
        return (invitation, await daemon.node.status().port, String(invitation.url.suffix(22)))
    }

    private func join(_ port: Int, _ key: String, headers: [String] = []) async throws -> RawHTTPReply {
        try await ask(port, "POST /g/join", headers, body: #"{"key":"\#(key)"}"#)
    }

    private func token(_ port: Int, _ key: String) async throws -> String {
        "Authorization: Bearer \(try await join(port, key).member("token"))"
    }

    private static let send = "0123456789abcdef0123456789abcdef"

    @Test("without an invitation the port speaks no HTTP; with one it serves the page, until the end") func port() async throws {
        try await TestDaemon.with("ada") { daemons in
            let port = await daemons[0].node.status().port
            #expect(try await ask(port, "GET /").head.isEmpty)
            let (invitation, _, key) = try await invite(daemons[0])
            #expect(invitation.url == "http://127.0.0.1:\(port)/#\(key)" && invitation.qr.hasPrefix("<svg"))
            for file in PageFile.guest {
                let reply = try await ask(port, "GET \(file.path)")
                #expect(reply.status == 200 && Array(reply.body.utf8) == file.bytes)
                #expect(reply.head.contains("content-security-policy: default-src 'none'; script-src 'self'"))
                #expect(reply.head.contains("referrer-policy: no-referrer") && reply.head.contains("cache-control: no-store"))
                #expect(!reply.head.contains("access-control"))
                #expect(try await ask(port, "HEAD \(file.path)").body.isEmpty)
            }
            #expect(PageFile.guest.filter { $0.path != "/icon.svg" }.reduce(0) { $0 + $1.bytes.count } <= 10_000)
            let token = try await token(port, key)
            #expect(try await daemons[0].client.invitations().map(\.id) == [invitation.id])
            #expect(try await daemons[0].client.endInvitation(invitation.id).ended == ForwardCompatibleEnum(.user))
            #expect(try await daemons[0].client.invitations().isEmpty)
            #expect(try await ask(port, "GET /").head.isEmpty)
            let (second, _, _) = try await invite(daemons[0])
            #expect(try await ask(port, "POST /g/files", [token], body: #"{"name":"a","size":1}"#).status == 410)
            #expect(try await join(port, key).status == 410)
            _ = try await daemons[0].client.endInvitation(second.id)
        }
    }

    @Test("a file that ends where received bytes are written to the disk is complete") func fullBuffer() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (_, port, key) = try await invite(daemons[0])
            let token = try await token(port, key)
            let size = 512 << 10
            let id = try await ask(port, "POST /g/files", [token], body: #"{"name":"a","size":\#(size)}"#).member("id")
            let sent = try await ask(
                port, "POST /g/files/\(id)?at=0", [token, "Content-Type: \(LocalAPI.uploadType)"], body: String(repeating: "x", count: size)
            )
            #expect(try sent.status == 200 && sent.member("at") == "\(size)")
            let hex = #"{"id":"\#(Self.send)","files":["\#(id)"]}"#
            #expect(try await ask(port, "POST /g/hexes", [token], body: hex).status == 200)
        }
    }

    @Test("a text and a file in pieces become a hex in the inbox, with the file on this machine") func flow() async throws {
        try await TestDaemon.with("ada") { daemons in
            let client = daemons[0].client
            let (invitation, port, key) = try await invite(daemons[0])
            let joined = try await join(port, key, headers: ["User-Agent: Mozilla/5.0 (iPhone; CPU iPhone OS 14_0)"])
            #expect(try joined.status == 200 && joined.member("name") == "ada")
            let token = "Authorization: Bearer \(try joined.member("token"))"
            let announced = try await ask(
                port, "POST /g/files", [token], body: #"{"name":"../Föhr.txt","size":9,"modified":1700000000000}"#)
            let id = try announced.member("id")
            func piece(_ at: Int, _ text: String, length: Int? = nil) async throws -> RawHTTPReply {
                try await ask(
                    port, "POST /g/files/\(id)?at=\(at)", [token, "Content-Type: \(LocalAPI.uploadType)"], body: text, length: length)
            }
            #expect(try await piece(0, "abc").member("at") == "3")
            _ = try await piece(3, "def", length: 6)  // the connection is cut: what arrived may count
            let end = try await ask(port, "GET /g/files/\(id)", [token]).member("at")
            let at = try #require(Int(end))
            #expect((3...6).contains(at))
            let gap = try await piece(at + 1, "e")
            #expect(try gap.status == 409 && gap.member("at") == "\(at)")
            #expect(try await piece(at, "defghijkl").status == 413)
            let hex = #"{"id":"\#(Self.send)","name":"An\u0007na \"x\" (trusted)","text":"Look: https://example.org/a","files":["\#(id)"]}"#
            #expect(try await ask(port, "POST /g/hexes", [token], body: hex).status == 409)
            // A reload announces the file again, and resumes.
            let again = try await ask(port, "POST /g/files", [token], body: #"{"name":"../Föhr.txt","size":9,"modified":1700000000000}"#)
            #expect(try again.member("id") == id && again.member("at") == "\(at)")
            #expect(try await piece(at, String("defghi".dropFirst(at - 3))).member("at") == "9")
            #expect(try await ask(port, "POST /g/hexes", [token], body: hex).status == 200)
            #expect(try await ask(port, "POST /g/hexes", [token], body: hex).status == 200)  // a repeated request

            let listed = try await client.hexes(.init(), limit: 10).items
            let summary = try #require(listed.first)
            #expect(listed.count == 1 && summary.unread)
            #expect(summary.label?.text() == #""An�na x (trusted)" 127.0.0.1 (guest)"#)
            let full = try await client.hex(summary.id)
            let links = try #require(full.links)
            #expect(links.count == 2 && links[0].url == "https://example.org/a" && links[1].linkDescription == "_Föhr.txt")
            let guest = try #require(summary.peerUUID)
            #expect(links[1].url.hasPrefix("hexlist://\(guest)/\(id)/"))

            let seen = try #require(daemons[0].api.guests.invitation(invitation.id))
            #expect(seen.guests.map(\.device) == ["iPhone"] && seen.hexes.map(\.hex) == [summary.id] && seen.hexes[0].size == 9)

            try await TemporaryFolder.with { folder in
                let start = try await client.fetch(TransferRequest(hex: summary.id, to: folder.path))
                try await client.watchTransfers(try #require(start.first)...(try #require(start.last))) { !$0.isQuiet }
                #expect(try String(contentsOfFile: "\(folder.path)/_Föhr.txt", encoding: .utf8) == "abcdefghi")
            }
            let kept = try await client.cacheSummary()
            #expect(kept.kept == 1 && kept.keptBytes == 9)
        }
    }

    @Test("a guest is no peer: it is not listed, trusted, named or sent to; deleting from it deletes everything") func guests() async throws
    {
        try await TestDaemon.with("ada") { daemons in
            let client = daemons[0].client
            let (_, port, key) = try await invite(daemons[0])
            let token = try await token(port, key)
            for number in 0..<2 {
                let id = "\(number)" + Self.send.dropFirst()
                #expect(
                    try await ask(port, "POST /g/hexes", [token], body: #"{"id":"\#(id)","name":"Anna","text":"Hello \#(number)"}"#).status
                        == 200)
            }
            let hexes = try await client.hexes(.init(), limit: 10).items
            let guest = try #require(hexes.first?.peerUUID)
            #expect(hexes.count == 2 && hexes.allSatisfy { $0.peerUUID == guest && $0.trust?.text == "guest" })
            #expect(try await client.peers(all: true).allSatisfy { $0.reason == "self" })
            for name in [guest.shortID, #""Anna" 127.0.0.1"#] {
                do {
                    _ = try await client.trust(name, fingerprint: nil)
                    Issue.record("a guest was trusted")
                } catch let error as HexlistError {
                    #expect(error.code == .badRequest && error.message.contains("A guest has no key"))
                }
                await #expect(throws: HexlistError.self) { try await client.rename(name, alias: "anna") }
                await #expect(throws: HexlistError.self) { try await daemons[0].send(["https://example.org"], to: [name]) }
            }
            await #expect(throws: HexlistError.self) { try await daemons[0].send(["https://example.org"], to: [guest.description]) }
            _ = try await client.delete(.list(from: #""anna" 127.0.0.1"#))
            #expect(try await client.hexes(.init(), limit: 10).items.isEmpty)
        }
    }

    @Test("with `held` a guest's hex waits in the requests; with `once` the first one ends the invitation") func options() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (invitation, port, key) = try await invite(daemons[0], InvitationRequest(once: true, held: true))
            let token = try await token(port, key)
            let hex = #"{"id":"\#(Self.send)","text":"Hello"}"#
            #expect(try await ask(port, "POST /g/hexes", [token], body: hex).status == 200)
            let held = try await daemons[0].client.hexes(.init(location: "held"), limit: 10).items
            #expect(held.map { $0.label?.text() } == ["127.0.0.1 (guest)"])
            #expect(daemons[0].api.guests.invitation(invitation.id)?.ended == ForwardCompatibleEnum(.once))
            #expect(try await ask(port, "GET /").head.isEmpty)
        }
    }

    @Test("guests read the hex and the files of their invitation, and nothing else") func reading() async throws {
        try await TestDaemon.with("ada") { daemons in
            try await TemporaryFolder.with { folder in
                let path = "\(folder.path)/notes <b>.txt"
                try "0123456789".write(toFile: path, atomically: true, encoding: .utf8)
                let mine =
                    #"{"hexDescription":"For <i>you</i>","links":["javascript:alert(1)",{"url":"https://example.org/x","linkDescription":"Map"}]}"#
                let hex = try await daemons[0].client.addMine(Array(mine.utf8), into: nil).id
                let (_, port, key) = try await invite(daemons[0], InvitationRequest(hexes: [hex], paths: [path]))
                let joined = try GuestMessage.Joined(jsonBytes: Array(try await join(port, key).body.utf8))
                #expect(joined.hexes.count == 2 && joined.hexes[0].description == "For <i>you</i>")
                #expect(
                    joined.hexes[0].links.map(\.url) == [nil, "https://example.org/x"] && joined.hexes[0].links[1].host == "example.org")
                let file = try #require(joined.hexes[1].files.first)
                #expect(file.name == "notes <b>.txt" && file.size == 10)
                let whole = try await ask(port, "GET \(file.href)")
                #expect(whole.status == 200 && whole.body == "0123456789")
                #expect(whole.head.contains("content-disposition: attachment; filename*=utf-8''notes%20%3cb%3e.txt"))
                #expect(whole.head.contains("content-type: application/octet-stream"))
                let part = try await ask(port, "GET \(file.href)", ["Range: bytes=2-4"])
                #expect(part.status == 206 && part.body == "234" && part.head.contains("content-range: bytes 2-4/10"))
                #expect(try await ask(port, "GET \(file.href)", ["Range: bytes=10-"]).status == 416)
                let ticket = file.href.split(separator: "/")[2]
                for wrong in ["", "x", String(ticket.dropLast()) + "~", "..%2f..%2fetc%2fpasswd", String(repeating: "A", count: 22)] {
                    #expect(try await ask(port, "GET /g/d/\(wrong)/notes.txt").status == 404)
                }
                // The file is replaced, so the reply is 404.
                try "other text".write(toFile: path, atomically: true, encoding: .utf8)
                #expect(try await ask(port, "GET \(file.href)").status == 404)
                for id in [0, -1, 77] as [Int64] {
                    await #expect(throws: HexlistError.self) { try await invite(daemons[0], InvitationRequest(hexes: [id])) }
                }
                await #expect(throws: HexlistError.self) {
                    try await invite(daemons[0], InvitationRequest(paths: [daemons[0].api.stateFolder + "/identity.pem"]))
                }
            }
        }
    }

    @Test("requests of other sites, with another host, token or key are refused and change nothing") func attacks() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (_, port, key) = try await invite(daemons[0])
            let token = try await token(port, key)
            let text = #"{"id":"\#(Self.send)","text":"Hello"}"#
            let announcement = #"{"name":"a","size":5}"#
            let file = try await ask(port, "POST /g/files", [token], body: announcement).member("id")
            let other = try await self.token(port, key)  // another guest from the same address
            let attempts: [(line: String, headers: [String], body: String, status: Int)] = [
                ("POST /g/hexes", [token, "Host: evil.example:\(port)"], text, 403),
                ("POST /g/hexes", [token, "Host: localhost:\(port)"], text, 403),
                ("POST /g/hexes", [token, "Host: 127.0.0.1"], text, 403),
                ("POST /g/hexes", [token, "Origin: http://evil.example"], text, 403),
                ("POST /g/hexes", [token, "Origin: null"], text, 403),
                ("POST /g/hexes", [token, "Origin:"], text, 403),
                ("POST /g/hexes", [token, "Origin: https://127.0.0.1:\(port)"], text, 403),
                ("POST /g/hexes", [token, "Sec-Fetch-Site: cross-site"], text, 403),
                ("POST /g/hexes", [token, "Sec-Fetch-Site: same-site"], text, 403),
                ("OPTIONS /g/hexes", ["Origin: http://127.0.0.1:\(port)"], "", 405),
                ("PUT /g/hexes", [token], text, 405),
                ("GET /g/hexes", [token], "", 405),
                ("POST /g/hexes", [], text, 403),
                ("POST /g/hexes", ["Authorization: Bearer AAAAAAAAAAAAAAAAAAAAAA"], text, 403),
                ("POST /g/hexes", ["Authorization: Bearer \(key)"], text, 403),
                ("POST /g/hexes", [token, token], text, 403),
                ("POST /g/hexes", [token], #"{"id":"\#(Self.send)","text":"  "}"#, 400),
                ("POST /g/hexes", [token], #"{"id":"x","text":"Hello"}"#, 400),
                ("POST /g/hexes", [token], "[", 400),
                ("POST /g/hexes", [token], #"{"id":"\#(Self.send)","text":"a","files":["\#(file)"]}"#, 409),
                ("POST /g/hexes", [token], #"{"id":"\#(Self.send)","text":"\#(String(repeating: "a", count: 65_537))"}"#, 413),
                ("POST /g/files/\(file)?at=0", [other], "hello", 404),
                ("GET /g/files/\(file)", [other], "", 404),
                ("DELETE /g/files/\(file)", [other], "", 404),
                ("POST /g/files/\(file)?at=0", [token], "longer than announced", 413),
                ("POST /g/files/\(file)?at=1", [token], "a", 409),
                ("POST /g/files/\(file)?at=-1", [token], "a", 400),
                ("POST /g/files/\(file)", [token], "a", 400),
                ("POST /g/files", [token], #"{"name":"a","size":5368709120}"#, 413),
                ("POST /g/files", [token], #"{"name":"a","size":-1}"#, 413),
                ("GET /v1/status", [token], "", 404), ("GET /v1/status", [], "", 403),
                ("GET /index.html", [], "", 403), ("GET /guest.html", [], "", 403),
                ("GET /g/d/x/y", [], "", 404),
                ("POST /g/join", [], #"{"key":""}"#, 403),
                ("POST /g/join", [], #"{"key":"\#(key.dropLast())"}"#, 403),
            ]
            for (line, headers, body, status) in attempts {
                let reply = try await ask(port, line, headers, body: body)
                #expect(reply.status == status, "\(line) \(headers) \(body.prefix(60))")
                #expect(!reply.head.contains("access-control"))
            }
            #expect(try await daemons[0].client.hexes(.init(), limit: 10).items.isEmpty)
            // After three more wrong keys the address is blocked: even the right key is refused.
            for _ in 0..<3 { #expect(try await join(port, "AAAAAAAAAAAAAAAAAAAAAA").status == 403) }
            #expect(try await join(port, key).status == 429)
            #expect(try await ask(port, "POST /g/hexes", [token], body: text).status == 200)
        }
    }

    @Test("key, token and tickets are neither in the store nor in an event") func secrets() async throws {
        try await TestDaemon.with("ada") { daemons in
            try await TemporaryFolder.with { folder in
                try "x".write(toFile: "\(folder.path)/a.txt", atomically: true, encoding: .utf8)
                let (_, port, key) = try await invite(daemons[0], InvitationRequest(paths: ["\(folder.path)/a.txt"]))
                let joined = try GuestMessage.Joined(jsonBytes: Array(try await join(port, key).body.utf8))
                let ticket = String(joined.hexes[0].files[0].href.split(separator: "/")[2])
                let hex = #"{"id":"\#(Self.send)","name":"Anna","text":"Hello"}"#
                #expect(try await ask(port, "POST /g/hexes", ["Authorization: Bearer \(joined.token)"], body: hex).status == 200)
                let state = daemons[0].api.stateFolder
                var texts = ""
                for name in try FileManager.default.subpathsOfDirectory(atPath: state) {
                    texts += (try? Data(contentsOf: URL(filePath: "\(state)/\(name)"))).map { String(decoding: $0, as: UTF8.self) } ?? ""
                }
                #expect(texts.contains("Hello"))
                for secret in [key, joined.token, ticket] { #expect(!texts.contains(secret)) }
            }
        }
    }
}

extension RawHTTPReply {
    fileprivate func member(_ name: String) throws -> String {
        let value = try JSONValue(parsing: body).members?.first { $0.nameBytes.elementsEqual(name.utf8) }?.value
        return value?.string ?? value?.integer.map { "\($0)" } ?? ""
    }
}
