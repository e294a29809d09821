import DaemonTestSupport
import HexlistAPI
import HexlistModel
import NIOCore
import NIOPosix
import Testing

@testable import HexlistDaemon
@testable import HexlistStore

/// Requests from other clients: `curl --unix-socket`, scripts, malformed input.
@Suite("The local API with raw requests", .timeLimit(.minutes(5)))
struct RawAPITests {
    @Test("replies are JSON and carry the version")
    func version() async throws {
        try await TestDaemon.with("ada") { daemons in
            let status = try await ask(daemons[0], request("GET /v1/status"))
            #expect(status.status == 200)
            #expect(status.head.lowercased().contains("hexlist-version: 1 \(ProtocolLimits.appVersion)"))
            #expect(status.head.lowercased().contains("content-type: application/json"))
            #expect(status.head.contains(/\r\n(?i)date: [A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT/))
            #expect(status.body.hasPrefix(#"{"version":"#))
            #expect(try await ask(daemons[0], request("GET /healthz")).body == "ok\n")
            let peers = try await ask(daemons[0], request("GET /v1/peers?all=true"))
            #expect(peers.body.hasSuffix(#","next":null}"#))
        }
    }

    @Test("errors have one JSON form and the matching status")
    func mistakes() async throws {
        let long = String(repeating: "x", count: LocalAPI.bodyBytes + 1)
        let table: [(line: String, headers: String, body: String, status: Int, code: String, word: String)] = [
            ("GET /v1/nothing", "", "", 404, "notFound", "GET /v1/nothing"),
            ("GET /", "", "", 404, "notFound", "GET /"),
            ("POST /v1/status", "", "", 405, "methodNotAllowed", "POST"),
            ("PUT /v1/hexes/7", "", "", 405, "methodNotAllowed", "PUT"),
            ("GET /v1/hexes/accept", "", "", 405, "methodNotAllowed", "GET"),
            ("GET /v1/status?verbose=1", "", "", 400, "badRequest", "verbose"),
            ("GET /v1/hexes?limt=3", "", "", 400, "badRequest", "limt"),
            ("GET /v1/hexes?limit=0", "", "", 400, "badRequest", "limit"),
            ("GET /v1/hexes?limit=1&limit=2", "", "", 400, "badRequest", "twice"),
            ("GET /v1/hexes?limit=", "", "", 400, "badRequest", "limit"),
            ("GET /v1/hexes?location=attic", "", "", 400, "badRequest", "attic"),
            ("GET /v1/hexes?unread=maybe", "", "", 400, "badRequest", "maybe"),
            ("GET /v1/hexes?after=x", "", "", 400, "badRequest", "after"),
            ("GET /v1/hexes?from=nobody", "", "", 404, "notFound", "nobody"),
            ("GET /v1/hexes?from=%zz", "", "", 400, "badRequest", "percent"),
            ("GET /v1/hexes/99", "", "", 404, "notFound", "99"),
            ("GET /v1/hexes/-1", "", "", 400, "badRequest", "-1"),
            ("GET /v1/hexes/99999999999999999999", "", "", 400, "badRequest", "99999999999999999999"),
            ("PATCH /v1/hexes/1", "", #"{"unread":1}"#, 400, "badRequest", "unread"),
            ("PATCH /v1/hexes", "", #"{"unread":false}"#, 400, "badRequest", "ids"),
            ("PATCH /v1/hexes", "", #"{"ids":[1],"all":true,"unread":false}"#, 400, "badRequest", "all"),
            ("POST /v1/hexes/accept", "", "", 400, "badRequest", "no body"),
            ("POST /v1/hexes/accept", "", "{", 400, "badRequest", "byte"),
            ("POST /v1/hexes/accept", "", #"{"ids":[7]}"#, 404, "notFound", "7"),
            ("POST /v1/hexes/accept", "", #"{"all":true,"location":"inbox"}"#, 400, "badRequest", "held"),
            ("POST /v1/hexes/accept", "", #"{"all":true,"newest":0}"#, 404, "notFound", "hex 0."),
            ("POST /v1/hexes/delete", "", #"{}"#, 400, "badRequest", "`from`"),
            ("POST /v1/hexes/delete", "", #"{"ranges":[[4]]}"#, 400, "badRequest", "[3,40]"),
            ("POST /v1/hexes/delete", "", #"{"ids":[7.0]}"#, 404, "notFound", "hex 7."),
            ("POST /v1/hexes/delete", "", #"{"ids":[9007199254740993.0,1e300]}"#, 400, "badRequest", "integer"),
            ("POST /v1/pairings/x/confirm", "", #"{"digits":"123456","id":7.5}"#, 400, "badRequest", "integer"),
            ("POST /v1/hexes/delete", "", #"{"ranges":[[0,3]]}"#, 400, "badRequest", "[3,40]"),
            ("POST /v1/hexes/delete", "", #"{"ids":[1],"from":"x"}"#, 400, "badRequest", "together"),
            ("POST /v1/hexes/delete", "", #"{"from":"x","all":true}"#, 400, "badRequest", "together"),
            ("POST /v1/hexes/delete", "", #"{"ids":[1],"location":"held"}"#, 400, "badRequest", "location"),
            ("POST /v1/hexes/delete", "", #"{"from":"nobody"}"#, 404, "notFound", "nobody"),
            ("POST /v1/hexes/delete", "", #"{"all":true,"location":"attic"}"#, 400, "badRequest", "attic"),
            ("PATCH /v1/hexes", "", #"{"from":"x","unread":true}"#, 400, "badRequest", "not unread"),
            ("POST /v1/hexes/delete", "", #"{"all":true,"location":null}"#, 400, "badRequest", "location"),
            ("POST /v1/peers/nobody/trust", "", "{}", 404, "notFound", "nobody"),
            ("GET /v1/events?last=1000001", "", "", 400, "badRequest", "last"),
            ("GET /v1/events?type=hex.recieved", "", "", 400, "badRequest", "hex.recieved"),
            ("GET /v1/peers/%ff", "", "", 400, "badRequest", "UTF-8"),
            ("GET /v1/peers/nobody", "", "", 404, "notFound", "nobody"),
            ("POST /v1/peers/nobody/befriend", "", "", 404, "notFound", "befriend"),
            ("POST /v1/sends?to=nobody", "", #"{"links":["u"]}"#, 404, "notFound", "nobody"),
            ("POST /v1/sends", "", #"{"links":["u"]}"#, 400, "badRequest", "recipient"),
            ("POST /v1/sends?to=x", "", "", 400, "badRequest", "no hex"),
            ("POST /v1/sends?to=x", "", "not json", 400, "badRequest", "malformed"),
            ("POST /v1/sends?to=x&wait=forever", "", "{}", 400, "badRequest", "forever"),
            ("POST /v1/sends?to=x&timeout=-1", "", "{}", 400, "badRequest", "timeout"),
            ("POST /v1/sends?to=x", "", long, 413, "tooLarge", "longer"),
            ("POST /v1/sends?to=x", "Content-Type: application/x-ndjson\r\n", "{}", 404, "notFound", "no peer"),
            ("POST /v1/sends?to=x&key=k", "Content-Type: application/x-ndjson\r\n", "{}", 400, "badRequest", "`key`"),
            ("GET /v1/events?since=-1", "", "", 400, "badRequest", "since"),
            ("GET /v1/outbox?state=lost", "", "", 400, "badRequest", "lost"),
            ("POST /v1/outbox/7/retry", "", "", 404, "notFound", "7"),
            ("POST /v1/outbox/7/cancel", "", "", 404, "notFound", "7"),
        ]
        try await TestDaemon.with("ada") { daemons in
            for row in table {
                let reply = try await ask(daemons[0], request(row.line, headers: row.headers, body: row.body))
                #expect(reply.status == row.status, "\(row.line): \(reply)")
                let error = try ErrorJSON(jsonBytes: Array(reply.body.utf8))
                #expect(error.code == row.code, "\(row.line): \(error)")
                #expect(error.message.contains(row.word), "\(row.line): \(error)")
            }
        }
    }

    @Test("a wrong method gets 405 with the allowed methods")
    func allow() async throws {
        try await TestDaemon.with("ada") { daemons in
            for (line, allowed) in [
                ("PUT /v1/hexes", "DELETE, GET, PATCH"), ("GET /v1/hexes/delete", "POST"), ("PUT /v1/hexes/7", "DELETE, GET, PATCH"),
                ("GET /v1/peers/x/trust", "POST"), ("PUT /healthz", "GET"),
            ] {
                let reply = try await ask(daemons[0], request(line))
                #expect(reply.status == 405 && reply.head.lowercased().contains("\r\nallow: \(allowed.lowercased())\r\n"), "\(reply)")
            }
        }
    }

    @Test("a reconnecting reader continues after its last event; an invalid Last-Event-ID is ignored")
    func lastEventID() async throws {
        try await TestDaemon.with("ada") { daemons in
            try await daemons[0].node.store.write { for _ in 1...3 { try $0.appendEvent(.peerUp, at: 0) } }
            for (id, first) in [("2", 3), ("x", 1), ("-1", 1), ("9223372036854775807", 1)] {
                let reply = try await ask(daemons[0], request("GET /v1/events?last=3", headers: "Last-Event-ID: \(id)\r\n"))
                #expect(reply.status == 200 && reply.body.hasPrefix(#"{"items":[{"number":\#(first),"#), "\(id): \(reply)")
            }
        }
    }

    @Test("headers are bounded; a connection over the bounds affects no other connection")
    func bounds() async throws {
        try await TestDaemon.with("ada") { daemons in
            let many = (0..<100).map { "X-\($0): 1\r\n" }.joined()
            let long = "X-Long: \(String(repeating: "a", count: 20_000))\r\n"
            for headers in [many, long] {
                let reply = try await ask(daemons[0], request("GET /v1/status", headers: headers))
                #expect((400..<500).contains(reply.status), "\(reply)")
            }
            for garbage in ["\u{16}\u{3}\u{1}", "GET\r\n\r\n", "\0\0\0\u{5}{}{}{"] {
                _ = try await ask(daemons[0], garbage + "\r\n\r\n")
            }
            #expect(try await ask(daemons[0], request("GET /v1/status")).status == 200)
        }
    }

    @Test("an event stream sends existing events, and ends with the daemon")
    func stream() async throws {
        try await TestDaemon.with("ada") { daemons in
            async let reply = ask(daemons[0], request("GET /v1/peers", headers: "Accept: text/event-stream\r\n"))
            try await daemons[0].awaitPeers(0)
            await daemons[0].node.stop()
            let text = try await reply
            #expect(text.status == 200)
            #expect(text.head.lowercased().contains("content-type: text/event-stream"))
            #expect(text.body.contains("event: peers\ndata: {\"items\":[],\"next\":null}\n\n"))
        }
    }
}
