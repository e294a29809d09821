import Foundation
import Testing

extension TwoMachines {
    /// What people are told to type runs as it stands.
    @Suite("Examples")
    struct Examples {
        @Test("the walk-through ends with five hexes in bob's inbox")
        func walkThrough() async throws {
            let output = try await run("Examples/two-machines.sh")
            #expect(output.out.hasSuffix("\n"))
            #expect(output.out.contains("3 queued, 0 invalid, 0 failed"))
            let inbox = output.out.split(separator: "\n").suffix(5)
            #expect(inbox.map { $0.prefix { $0 != " " } } == ["5", "4", "3", "2", "1"], "\(output)")
        }

        @Test("the demo shows the hex in bob's store")
        func demo() async throws {
            let output = try await run("Scripts/demo")
            #expect(output.out.contains("inbox|Reading list|https://www.sqlite.org/wal.html|Write-Ahead Logging"), "\(output)")
        }

        private func run(_ program: String) async throws -> Command.Output {
            let output = try await Command.run(["\(Checkout.root)/\(program)"], environment: ["HEXLIST_BIN": Checkout.programs])
            #expect(output.status == 0, "\(output)")
            return output
        }
    }
}
