import DaemonTestSupport
import HexlistModel
import HexlistPage
import HexlistSystem
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import HexlistAPI
@testable import HexlistDaemon
@testable import HexlistJSON

@Suite("The page's listener", .timeLimit(.minutes(5))) struct WebPageTests {
    /// Sends one request on its own connection and reads until it is closed. A `Host` in `headers` replaces the default one.
    /// - Parameter endsEarly: return after the response head, because a stream does not end.
    private func ask(
        _ port: Int, _ line: String, _ headers: [String] = [], body: String = "", endsEarly: Bool = false
    ) async throws -> RawHTTPReply {
        let host = headers.contains { $0.hasPrefix("Host:") } ? [] : ["Host: 127.0.0.1:\(port)"]
        let fields = host + ["Connection: close", "Content-Length: \(body.utf8.count)"] + headers
        return try await RawHTTP.ask(port, line, fields: fields, body: body, until: endsEarly ? .head : .closed)
    }

    private func begin(_ daemon: TestDaemon) async throws -> (port: Int, token: String, session: PageSession, secret: String) {
        let invitation = try await daemon.client.openPage()
        let secret = String(invitation.url.suffix(64))
        let reply = try await ask(invitation.port, "POST /session", body: #"{"secret":"\#(secret)"}"#)
        #expect(reply.status == 200)
        let session = try PageSession(jsonBytes: Array(reply.body.utf8))
        return (invitation.port, "Authorization: Bearer \(session.token)", session, secret)
    }

    @Test("a secret opens the page once; the reload secret opens it once more") func secrets() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (port, token, session, secret) = try await begin(daemons[0])
            func exchange(_ secret: String) async throws -> Int {
                try await ask(port, "POST /session", body: #"{"secret":"\#(secret)"}"#).status
            }
            #expect(try await exchange(secret) == 403)
            #expect(try await exchange(String(repeating: "0", count: 64)) == 403)
            #expect(try await exchange(session.reload) == 200)
            #expect(try await exchange(session.reload) == 403)
            #expect(try await ask(port, "GET /v1/web", [token]).status == 200)
            // The page uses this request to check that its listener is alive.
            let stream = try await ask(port, "GET /v1/web", [token, "Accept: text/event-stream"], endsEarly: true)
            #expect(session.proof.utf8.count == 64 && stream.head.contains("hexlist-proof: \(session.proof)"))
            // A further page is opened on the same port, because the listener is still running.
            #expect(try await daemons[0].client.openPage().port == port)
        }
    }

    @Test("the page and its files have headers that keep other pages out") func files() async throws {
        try await TestDaemon.with("ada") { daemons in
            let port = try await daemons[0].client.openPage().port
            for file in PageFile.all {
                let reply = try await ask(port, "GET \(file.path)")
                #expect(reply.status == 200 && reply.body.utf8.count == file.bytes.count)
                #expect(
                    reply.head.contains(
                        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                            + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"))
                for header in [
                    "referrer-policy: no-referrer", "x-content-type-options: nosniff", "cross-origin-resource-policy: same-origin",
                    "cache-control: no-store", "content-type: \(file.mediaType)",
                ] { #expect(reply.head.contains(header)) }
                #expect(!reply.head.contains("access-control"))
            }
            // The page's scripts create no markup from text, and load nothing from other origins.
            for file in PageFile.all {
                let text = String(decoding: file.bytes, as: UTF8.self)
                for word in ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "style=", "onclick=\""] {
                    #expect(!text.contains(word), "\(file.path): \(word)")
                }
                #expect(!text.contains(/(?:src|href)="(?!\/)/), "\(file.path)")
            }
        }
    }

    @Test("requests from other pages, with other names and from other users are refused") func foreign() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (port, token, _, _) = try await begin(daemons[0])
            let own = "127.0.0.1:\(port)"
            let api: [(headers: [String], status: Int)] = [
                ([token], 200), ([token, "Origin: http://\(own)", "Sec-Fetch-Site: same-origin"], 200),
                ([], 403), (["Authorization: Bearer \(String(repeating: "0", count: 64))"], 403), ([token, token], 403),
                ([token.replacing("Bearer", with: "Basic")], 403), ([token, "Host: evil.example"], 403),
                ([token, "Host: evil.example:\(port)"], 403), ([token, "Host: localhost:\(port)"], 403), ([token, "Host: 127.0.0.1"], 403),
                ([token, "Host: 127.0.0.1:\(port + 1)"], 403), ([token, "Origin: null"], 403),
                ([token, "Origin: http://evil.example"], 403),
                ([token, "Origin: http://127.0.0.1:\(port + 1)"], 403), ([token, "Origin: https://\(own)"], 403),
                ([token, "Sec-Fetch-Site: same-site"], 403), ([token, "Sec-Fetch-Site: cross-site"], 403),
                ([token, "Sec-Fetch-Site: none"], 403), ([token, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"], 403),
                ([token, "Accept: text/event-stream", "Origin: http://evil.example"], 403),
            ]
            for (headers, status) in api {
                #expect(
                    try await ask(port, "GET /v1/web", headers).status == status, "\(headers)")
            }
            let document = ["Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"]
            let page: [(headers: [String], status: Int)] = [
                (["Sec-Fetch-Site: none"] + document, 200), (["Sec-Fetch-Site: cross-site"] + document, 200),
                (["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"], 403),
                (["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: document"], 403),
                (["Sec-Fetch-Site: same-site"] + document, 403), (["Host: evil.example:\(port)"], 403),
            ]
            for (headers, status) in page { #expect(try await ask(port, "GET /", headers).status == status, "\(headers)") }
            #expect(try await ask(port, "GET /main.js", ["Sec-Fetch-Site: cross-site"] + document).status == 403)
            #expect(try await ask(port, "OPTIONS /v1/web", ["Origin: http://evil.example"]).status == 403)
            #expect(try await ask(port, "POST /session", ["Origin: http://evil.example"], body: "{}").status == 403)
            #expect(try await ask(port, "POST /", [token]).status == 405)
        }
    }

    @Test("the page may use its operations, but not read paths or change identity, roster or configuration") func operations() async throws
    {
        try await TestDaemon.with("ada") { daemons in
            let (port, token, _, _) = try await begin(daemons[0])
            var allowed: Set<String> = []
            let router = LocalServer.router(daemons[0].api)
            for route in router.routes {
                let path = "\(route.path)".replacing(/\{[a-z]+\}/, with: "1")
                let reply = try await ask(port, "\(route.method.rawValue) \(path)", [token])
                if !reply.body.contains("The page cannot do this.") { allowed.insert("\(route.method.rawValue) \(route.path)") }
            }
            for word in [
                "config", "identity/keep", "identity/rotate", "roster", "doctor", "backup", "offers", "DELETE /v1/transfers", "shares",
                "cache",
                "status", "metrics", "healthz", "events", "/v1/links", "POST /v1/web", "outbox/retry", "outbox/cancel",
                "DELETE /v1/hexes ", "hexes/delete", "DELETE /v1/groups",
            ] { #expect(!allowed.contains { ($0 + " ").contains(word) }, "\(word)") }
            for one in ["GET /v1/hexes", "POST /v1/sends", "POST /v1/uploads", "GET /v1/web"] { #expect(allowed.contains(one)) }
            #expect(try await ask(port, "GET //v1/roster", [token]).status == 403)
            // A path that the router takes for /v1/transfers does not skip the check of the destination.
            for path in ["/v1/transfers/", "//v1/transfers", "/v1//transfers"] {
                #expect(try await ask(port, "POST \(path)", [token], body: #"{"hex":1,"to":"/tmp"}"#).status == 403, "\(path)")
            }
            #expect(try await ask(port, "GET /v1/%72oster", [token]).status == 403)
            let stream = ["Content-Type: application/x-ndjson"]
            #expect(try await ask(port, "POST /v1/sends?to=x", [token] + stream, body: "{}\n").status == 403)
            #expect(try await ask(port, "GET /v1/peers", [token, "Accept: text/event-stream"]).status == 403)
            #expect(try await ask(port, "PATCH /v1/peers/x", [token], body: #"{"notify":false}"#).status == 404)
            // Files go into the download folder only.
            for body in [
                #"{"hex":1,"to":"/tmp"}"#, #"{"hex":1,"keep":true}"#, #"{"hex":1,"cache":true}"#, #"{"hex":1,"umask":0}"#,
                #"{"service":"shares","path":"a","to":"/tmp"}"#, #"{"service":"shares","path":"a","umask":0}"#,
            ] { #expect(try await ask(port, "POST /v1/transfers", [token], body: body).status == 403, "\(body)") }
            #expect(try await ask(port, "POST /v1/transfers", [token], body: #"{"hex":1,"links":[1]}"#).status == 404)
            // A reload of the configuration changes the folder at once.
            var settings = Settings(name: "ada")
            settings.node.files.downloads = "\(daemons[0].api.stateFolder)/other"
            _ = daemons[0].configuration.took(settings)
            #expect(try await ask(port, "POST /v1/transfers", [token], body: #"{"hex":1,"links":[1]}"#).status == 404)
            #expect(HexlistPaths.isFolder("\(daemons[0].api.stateFolder)/other"))
            // The page may turn on automatic downloads.
            #expect(
                try await ask(port, "PATCH /v1/peers/x", [token], body: #"{"fetchLimit":1000,"fetchTo":"downloads"}"#).status == 404)
            #expect(try await ask(port, "POST /v1/transfers", [token], body: #"{"service":"bob","path":"a"}"#).status == 404)
            let revoking = try await ask(port, "POST /v1/services/shares/links", [token], body: #"{"paths":["a"],"revoke":true}"#)
            #expect(revoking.status == 403)
            let overview = try await ask(port, "GET /v1/web", [token]).body
            #expect(!overview.contains("/") && overview.hasPrefix(#"{"version":"#))
        }
    }

    @Test("a page survives a restart of its listener, and only with its own keys") func restart() async throws {
        try await TestDaemon.with("ada") { daemons in
            let api = daemons[0].api
            let (port, token, session, secret) = try await begin(daemons[0])
            let file = SavedPagesFile(stateFolder: api.stateFolder)
            let saved = try #require(file.read())
            #expect(saved.port == port && saved.proof == session.proof && saved.pages.count == 1)
            let text = try SmallFile.read(file.path, limit: 64 << 10)
            for key in [session.token, session.reload, secret] { #expect(!text.contains(key)) }
            // Another daemon with this state, on another port: the situation after a restart.
            try file.write(SavedPages(port: try await freePort(), proof: saved.proof, pages: saved.pages))
            let restored = PageListener()
            async let _: Void = restored.run(api)  // cancelled and awaited at the end of this scope
            let again = try await restored.invite().port
            #expect(again == file.read()?.port && again != port)
            #expect(try await ask(again, "GET /v1/web", [token]).status == 200)
            let stream = try await ask(again, "GET /v1/web", [token, "Accept: text/event-stream"], endsEarly: true)
            #expect(stream.head.contains("hexlist-proof: \(session.proof)"))
            #expect(try await ask(again, "GET /v1/web", ["Authorization: Bearer \(saved.pages[0].token)"]).status == 403)
            // Secrets from before the restart may have been read by a program that served the port meanwhile.
            for old in [session.reload, secret] {
                #expect(try await ask(again, "POST /session", body: #"{"secret":"\#(old)"}"#).status == 403)
            }
            let renewed = try PageSecret(jsonBytes: Array(try await ask(again, "POST /session/reload", [token]).body.utf8)).secret
            #expect(try await ask(again, "POST /session", body: #"{"secret":"\#(renewed)"}"#).status == 200)
        }
    }

    /// Returns a port that is free at the time of the call.
    private func freePort() async throws -> Int {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton).bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(channel.localAddress?.port)
        try await channel.close()
        return port
    }

    @Test("an uploaded file is offered to the given peers and to no others") func uploads() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            try await daemons[0].awaitPeers(1)
            let (port, token, _, _) = try await begin(daemons[0])
            let upload = "POST /v1/uploads?name=talk.pdf&to=\(daemons[1].uuid)"
            let kind = "Content-Type: application/octet-stream"
            let reply = try await ask(port, upload, [token, kind], body: "talk")
            #expect(reply.status == 200)
            let offer = try OfferResult(jsonBytes: Array(reply.body.utf8))
            #expect(offer.size == 4 && offer.hex.text.contains("talk.pdf") && offer.hex.text.contains("hexlist:"))
            for (line, headers, status) in [
                (upload, [kind], 403), (upload, [token, kind, "Origin: http://evil.example"], 403),
                (upload, [token, kind, "Sec-Fetch-Site: same-site"], 403), (upload, [token], 400),
                (upload, [token, "Content-Type: application/x-ndjson"], 403), ("POST /v1/uploads?name=a", [token, kind], 400),
                ("POST /v1/uploads?name=a&to=nobody", [token, kind], 404), (upload + "&path=/etc/passwd", [token, kind], 400),
            ] { #expect(try await ask(port, line, headers, body: "talk").status == status, "\(line) \(headers)") }
        }
    }

    @Test("the page offers the files of a draft that the command line made, and no other files") func drafts() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            try await daemons[0].awaitPeers(1)
            let (port, token, _, _) = try await begin(daemons[0])
            try await TemporaryFolder.with { folder in
                try folder.write("talk", to: "talk.txt")
                let draft = try await daemons[0].client.addDraft(["\(folder.path)/talk.txt"])
                #expect(draft.names == ["talk.txt"])
                let found = try await ask(port, "GET /v1/drafts/\(draft.id)", [token])
                #expect(found.status == 200 && !found.body.contains(folder.path), "\(found.body)")
                let to = #"{"to":["\#(daemons[1].uuid)"]}"#
                let offered = try await ask(port, "POST /v1/drafts/\(draft.id)/offer", [token], body: to)
                #expect(offered.status == 200 && offered.body.contains("talk.txt") && offered.body.contains("hexlist:"), "\(offered.body)")
                for (line, headers, body, status) in [
                    ("POST /v1/drafts", [token], #"{"paths":["/etc/passwd"]}"#, 403),
                    ("GET /v1/drafts/\(String(repeating: "0", count: 32))", [token], "", 404),
                    ("GET /v1/drafts/\(draft.id)", [], "", 403),
                    ("POST /v1/drafts/\(draft.id)/offer", [token], #"{"paths":["/etc/passwd"],"to":["x"]}"#, 400),
                    ("POST /v1/drafts/\(draft.id)/offer", [token], #"{"to":["nobody"]}"#, 404),
                ] { #expect(try await ask(port, line, headers, body: body).status == status, "\(line)") }
            }
        }
    }

    @Test("the page invites guests, but offers them no files by their paths") func invitations() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (port, token, _, _) = try await begin(daemons[0])
            let invited = try await ask(port, "POST /v1/invitations", [token], body: #"{"address":"127.0.0.1"}"#)
            #expect(invited.status == 200 && invited.body.contains("<svg"), "\(invited.body)")
            let id = try Invitation(jsonBytes: Array(invited.body.utf8)).id
            for (line, headers, body, status) in [
                ("POST /v1/invitations", [token], #"{"address":"127.0.0.1","paths":["/etc/passwd"]}"#, 403),
                ("POST /v1/invitations", [], #"{"address":"127.0.0.1"}"#, 403), ("GET /v1/invitations/\(id)", [], "", 403),
                ("GET /v1/invitations/\(id)", [token, "Accept: text/event-stream"], "", 403),
                ("GET /v1/invitations/\(id)", [token], "", 200), ("DELETE /v1/invitations/\(id)", [token], "", 200),
                ("DELETE /v1/invitations/\(id)", [token], "", 404),
            ] { #expect(try await ask(port, line, headers, body: body).status == status, "\(line)") }
            #expect(try await daemons[0].client.invitations().isEmpty)
        }
    }

    @Test("the listener proves itself without a token, and renews the reload secret of a token") func proof() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (port, token, session, _) = try await begin(daemons[0])
            // The answer of the listener to a challenge. The browser tests check that pages accept it.
            let nonce = String(repeating: "0a", count: 32)
            let answered = try await ask(port, "GET /proof?nonce=\(nonce)")
            #expect(answered.status == 200 && !answered.body.contains(session.proof), "\(answered.body)")
            #expect(try await ask(port, "GET /proof?nonce=\(nonce)").body == answered.body)
            #expect(try await ask(port, "GET /proof?nonce=\(nonce.reversed().map(String.init).joined())").body != answered.body)
            for line in ["GET /proof", "GET /proof?nonce=1", "POST /proof?nonce=\(nonce)"] {
                #expect(try await ask(port, line).status == 400)
            }
            #expect(try await ask(port, "POST /session/reload").status == 403)
            let renewed = try await ask(port, "POST /session/reload", [token])
            let secret = try PageSecret(jsonBytes: Array(renewed.body.utf8)).secret
            #expect(try await ask(port, "POST /session", body: #"{"secret":"\#(session.reload)"}"#).status == 403)
            #expect(try await ask(port, "POST /session", body: #"{"secret":"\#(secret)"}"#).status == 200)
        }
    }

    @Test("the start at login is turned off for the environment of the daemon") func autostart() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (port, token, _, _) = try await begin(daemons[0])
            let entry = AutostartEntry(configurationHome: daemons[0].api.stateFolder)
            try entry.write(program: "/usr/bin/hexlistd")
            for changed in [1, 0] {
                #expect(try await ask(port, "DELETE /v1/autostart", [token]).body == #"{"changed":\#(changed)}"#)
                #expect(!entry.exists)
            }
        }
    }

    @Test("drafts are bounded in number and time") func draftBounds() {
        var table = DraftTable()
        let now = ContinuousClock.now
        for number in 0..<17 { _ = table.add(["/files/\(number)"], id: "id\(number)", now: now, time: .now) }
        #expect(table.find("id0", now: now) == nil)
        #expect(table.find("id16", now: now)?.paths == ["/files/16"])
        #expect(table.find("id16", now: now + DraftTable.lifetime) == nil)
    }

    @Test("bodies and heads have the local API's bounds") func bounds() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (port, token, _, _) = try await begin(daemons[0])
            #expect(
                try await ask(port, "POST /v1/mine", [token], body: String(repeating: "x", count: LocalAPI.bodyBytes + 1)).status == 413)
            #expect(try await ask(port, "GET /", ["X: \(String(repeating: "x", count: 20_000))"]).status == 431)
        }
    }

    @Test("bookmarks are imported from a file and exported as one") func library() async throws {
        try await TestDaemon.with("ada") { daemons in
            let (port, token, _, _) = try await begin(daemons[0])
            let bookmarks = """
                <!DOCTYPE NETSCAPE-Bookmark-file-1><DL><p><DT><H3>Trips</H3><DL><p>
                <DT><A HREF="https://example.org/harbour" ADD_DATE="1500000000">Harbour</A><DD>Seen from the pier
                <DT><A HREF="no address">Nothing</A></DL><p></DL><p>
                """
            func add(_ name: String, _ file: String) async throws -> RawHTTPReply {
                try await ask(port, "POST /v1/import?file=\(name)", [token, "Content-Type: application/octet-stream"], body: file)
            }
            let first = try ImportResult(jsonBytes: Array(try await add("b.html", bookmarks).body.utf8))
            #expect(first == ImportResult(added: 1, addedLinks: 1, skipped: 1))
            #expect(
                try ImportResult(jsonBytes: Array(try await add("b.html", bookmarks).body.utf8)) == ImportResult(unchanged: 1, skipped: 1))
            #expect(try await add("empty.txt", "no links here").status == 400)
            #expect(try await add("picture.png", "\u{0}\u{1}").status == 400)
            let exported = try await ask(port, "POST /v1/export?format=html", [token], body: #"{"all":true,"location":"mine"}"#).body
            #expect(
                exported.contains("<H3>Trips</H3>") && exported.contains(#"ADD_DATE="1500000000""#) && exported.contains(">Harbour</A>"),
                "\(exported)")
            #expect(exported.contains("Seen from the pier"))
            #expect(try await ask(port, "POST /v1/export?format=xbel", [token], body: #"{"all":true}"#).status == 400)
            let code = try IdentityQRCode(jsonBytes: Array(try await ask(port, "GET /v1/identity/code", [token]).body.utf8))
            let fingerprint = try await daemons[0].client.status().fingerprint
            #expect(try PeerURI(code.uri).fingerprint == fingerprint && code.svg.hasPrefix("<svg "))
        }
    }
}
