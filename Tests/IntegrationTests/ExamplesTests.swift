import Foundation
import Testing

extension TwoMachines {
    /// Commands from the documents run unchanged.
    @Suite("Examples")
    struct Examples {
        @Test("the walk-through ends with five hexes in bob's inbox")
        func walkThrough() async throws {
            let output = try await run("Examples/two-machines.sh")
            #expect(output.out.hasSuffix("\n"))
            #expect(output.out.contains("3 hexes: 3 queued"))
            let inbox = output.out.split(separator: "\n").suffix(5)
            #expect(inbox.map { $0.prefix { $0 != " " } } == ["5", "4", "3", "2", "1"], "\(output)")
        }

        @Test("the tour matches the programs' output") func tour() async throws { _ = try await run("Scripts/tour", "--check") }

        @Test("the demo shows the hex in bob's store")
        func demo() async throws {
            let output = try await run("Scripts/demo")
            #expect(output.out.contains("inbox|Reading list|https://www.sqlite.org/wal.html|Write-Ahead Logging"), "\(output)")
        }

        @Test(
            "the hook of the page shows the sender, whatever characters are in name and text",
            .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/jq")))
        func hook() async throws {
            let page = try String(contentsOfFile: "\(Checkout.root)/Docs/Hooks.md", encoding: .utf8)
            let block = try #require(page.components(separatedBy: "```sh\n").dropFirst().first { $0.contains("notify-send") })
            let script = try #require(block.components(separatedBy: "```").first)
            let functions = """
                notify-send() { printf '[%s][%s]' "$2" "$3"; }

                """
            func told(_ peer: String) async throws -> String {
                let subject = #""hex":7,"subject":"<b>hi\u202e\u0085""#
                let event = #"{"number":1,\#(subject),"peer":"0C6F1B22-0000-8000-8000-000000000001",\#(peer)}"#
                let output = try await Command.run(["/bin/bash", "-c", functions + script], input: Array(event.utf8))
                #expect(output.status == 0, "\(output)")
                return output.out
            }
            let text = "[&lt;b&gt;hi  ]"
            #expect(try await told(#""alias":"Bob","trust":"trusted","name":"x""#) == "[Bob]" + text)
            #expect(
                try await told(#""name":"Bob\u202e\u2066\u200b\u2028\n","trust":"stranger""#) == "[Bob      0C6F1B22 (stranger)]" + text)
            let long = String(repeating: "B", count: 250)
            #expect(
                try await told(#""name":"\#(long)","trust":"stranger""#) == "[\(long.prefix(40)) 0C6F1B22 (stranger)]" + text)
        }

        private func run(_ program: String, _ arguments: String...) async throws -> Command.Output {
            let output = try await Command.run(["\(Checkout.root)/\(program)"] + arguments, environment: ["HEXLIST_BIN": Checkout.programs])
            #expect(output.status == 0, "\(output)")
            return output
        }
    }
}
