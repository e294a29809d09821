import Foundation
import HexlistModel
import Testing

extension TwoMachines {
    /// A sender that knows the frames and nothing else (Examples/foreign-sender.py).
    @Suite("A foreign program")
    struct ForeignProgram {
        private static let program = "\(Checkout.root)/Examples/foreign-sender.py"

        /// The first line the program prints.
        private struct Identity: Decodable {
            var uuid: String
        }

        /// A frame as the original app made it: no messageID, no sequence, nobody answers it.
        private static let original =
            #"{"versionID":"1.4.2","operationType":"Store","jmObjectType":"Hex","jmObject":{"senderUUID":"6F9619FF-8B86-4011-B42D-00CF4FC964FF","#
            + ##""senderName":"Ada L.","hexDescription":"reading list","hexColor":"#3366CC","##
            + #""links":[{"url":"https://example.org/a","linkDescription":"A","service":"Dropbox"}],"mood":"sunny"}}"#

        @Test("a frame with no Hello, over TLS, is held under its key; trusting the key moves it")
        func withoutHello() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await lab.start("h1")
                let port = try await lab.status("h1").port
                let sent = try await lab.run(["exec", "h2", Self.program, try await lab.path("address", on: "h1"), "\(port)"])
                let uuid = try #require(try JSONLines.decode(String(sent.out.prefix { $0 != "\n" }), as: Identity.self).first).uuid
                #expect(PeerID(uuid) != nil)
                // It says `sequence`, so it is told what became of its frame.
                #expect(sent.out.contains("\"held\""))

                let held: [HexRow] = try await lab.rows("h1", "inbox", "--held")
                #expect(held.map(\.description) == ["Where names come from"])
                #expect(held.map(\.peerUUID) == [uuid])
                #expect(held.map(\.senderName) == ["A foreign program"])
                #expect(held.map(\.linkCount) == [2])
                try await lab.hexlist("h1", "peer", "trust", uuid)
                let inbox: [HexRow] = try await lab.rows("h1", "inbox")
                #expect(inbox.map(\.description) == ["Where names come from"])
            }
        }

        @Test("the original app's own frame, over TLS, is held too")
        func originalFrameOnTLS() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await lab.start("h1")
                try await send("h2", to: "h1", [], lab)
                try await lab.awaitEvent("h1", "hex.held")
                try await expectTheOriginalHex(lab)
            }
        }

        @Test("with `transport: tls+plain` a bare TCP frame of the original app is held")
        func plain() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await lab.configure("h1", "name: h1\ntransport: tls+plain\n")
                try await lab.start("h1")
                try await send("h2", to: "h1", ["--plain"], lab)
                try await lab.awaitEvent("h1", "hex.held")
                let hex = try await expectTheOriginalHex(lab)
                // Taken one by one: an address is nobody to trust.
                try await lab.hexlist("h1", "accept", "\(hex.id)")
                let inbox: [HexRow] = try await lab.rows("h1", "inbox")
                #expect(inbox.map(\.description) == ["reading list"])
            }
        }

        @Test("with `transport: tls`, the default, bare TCP is closed and nothing is kept")
        func plainIsRefused() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await lab.start("h1")
                try await send("h2", to: "h1", ["--plain"], lab)
                try await send("h2", to: "h1", [], lab)
                // The second one's hex is there, so the first one's would be.
                try await lab.awaitEvent("h1", "hex.held")
                #expect(try await lab.status("h1").held == 1)
            }
        }

        @Test("garbage costs its sender the connection and nobody else anything")
        func garbage() async throws {
            try await Lab.with("h1", "h2") { lab in
                try await lab.configure("h1", "name: h1\ntransport: tls+plain\n")
                let uuid = try await lab.startAndMeet()
                try await lab.hexlist("h1", "peer", "trust", uuid.other)
                let before = try await lab.status("h1").pid
                for arguments in [[], ["--plain"]] {
                    let lines = ["{", "\u{FEFF}[]", String(repeating: "[", count: 4_000), "null", #"{"operationType":7}"#].joined(
                        separator: "\n")
                    try await send("h2", to: "h1", arguments, frames: lines, lab)
                }
                let port = try await lab.status("h1").port
                let address = try await lab.path("address", on: "h1")
                // A length of nearly 4 GiB, an HTTP request, and nothing at all.
                for bytes in ["\\377\\377\\377\\377", "GET / HTTP/1.1\\r\\n\\r\\n", ""] {
                    let script = "exec 3<>/dev/tcp/\(address)/\(port) && printf '\(bytes)' >&3; exec 3>&-"
                    try await lab.run(["exec", "h2", "bash", "-c", script], expecting: nil)
                }
                #expect(try await lab.status("h1").pid == before)
                #expect(try await lab.status("h1").held == 0)
                try await lab.hexlist("h2", "send", "--to", uuid.one, "https://example.org/still-here")
            }
        }

        private func send(_ from: String, to host: String, _ arguments: [String], frames: String = original, _ lab: Lab) async throws {
            let address = try await lab.path("address", on: host)
            let port = try await lab.status(host).port
            // Its exit status is its own affair: the other side may close before all is written.
            try await lab.run(
                ["exec", from, Self.program, address, "\(port)", "--frames"] + arguments, input: Array("\(frames)\n".utf8), expecting: nil)
        }

        @discardableResult
        private func expectTheOriginalHex(_ lab: Lab) async throws -> HexRow {
            let held: [HexRow] = try await lab.rows("h1", "inbox", "--held")
            #expect(held.count == 1)
            let shown = try await lab.show("h1", try #require(held.first).id)
            #expect(shown.row.description == "reading list")
            #expect(shown.row.senderName == "Ada L.")
            #expect(shown.row.senderUUID == "6F9619FF-8B86-4011-B42D-00CF4FC964FF")
            #expect(shown.row.links == [LinkRow(url: "https://example.org/a", linkDescription: "A", service: "Dropbox")])
            #expect(shown.json.contains(#""mood":"sunny""#))
            return shown.row
        }
    }
}
