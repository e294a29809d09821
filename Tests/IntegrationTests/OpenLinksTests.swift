import Foundation
import Testing

/// Links that a daemon opens in the browser as soon as they arrive.
@Suite(
    "Links opened on arrival", .serialized, .timeLimit(.minutes(Patience.test)),
    .enabled(if: Checkout.hasPrograms, "needs hexlistd and hexlist: build first"))
struct OpenLinksTests {
    @Test("at most the chosen number of links of a trusted peer, and a notification names them") func open() async throws {
        let programs = try TemporaryFolder()
        defer { programs.remove() }
        for name in ["gdbus", "notify-send"] {
            let script = "#!/bin/sh\n(printf '[%s]' \"$0\" \"$@\"; echo) >>'\(programs.path)/calls'\n"
            try programs.write(script, to: name)
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: "\(programs.path)/\(name)")
        }
        func calls() -> [String] {
            ((try? String(contentsOfFile: "\(programs.path)/calls", encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
        }
        try await TwoDaemons.with(bobsEnvironment: ["PATH": "\(programs.path):/usr/bin:/bin"]) { two in
            let adas: [StatusRow] = try JSONLines.decode(try await two.ada.hexlist("status", "--json").out)
            let ada = try #require(adas.first).uuid
            for wrong in ["7", "-1", "x"] {
                let refused = try await two.bob.hexlist("peer", "set", ada, "--open=\(wrong)")
                #expect(refused.status == 2, "\(refused)")
            }
            let set = try await two.bob.hexlist("peer", "set", ada, "--open", "2")
            #expect(set.status == 0 && set.out.contains("open 2 links of a hex in the browser."), "\(set)")
            #expect(try await two.bob.hexlist("peer", "show", ada).out.contains("2 links of a hex in the browser"))
            let sent = try await two.send("https://one.example/", "ftp://files.example/", "https://two.example/x", "https://three.example/")
            #expect(sent.status == 0, "\(sent)")
            try await Patience.until(or: "the links are opened") { calls().count == 3 }
            let seen = calls()
            let method = "[org.freedesktop.portal.OpenURI.OpenURI]"
            #expect(seen.prefix(2).allSatisfy { $0.contains("/gdbus]") && $0.contains(method) }, "\(seen)")
            #expect(seen[0].contains("['https://one.example/']") && seen[1].contains("['https://two.example/x']"), "\(seen)")
            #expect(seen[2].contains("/notify-send]") && seen[2].contains("[Opened one.example and two.example]"), "\(seen)")
            let off = try await two.bob.hexlist("peer", "set", ada, "--open", "0")
            #expect(off.out.contains("open none."), "\(off)")
            #expect(try await !two.bob.hexlist("peer", "show", ada).out.contains("in the browser"))
        }
    }
}
