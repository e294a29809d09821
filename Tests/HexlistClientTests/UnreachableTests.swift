import HexlistClient
import HexlistModel
import TestSupport
import Testing

@Suite("The client without a daemon", .timeLimit(.minutes(5)))
struct UnreachableTests {
    @Test("the message says how to start the daemon")
    func unreachable() async throws {
        try await TemporaryFolder.with { folder in
            for path in ["\(folder.path)/control.sock", "\(folder.path)/with a space/é"] {
                let client = HexlistClient(socketPath: path)
                let error = try await #require(throws: HexlistError.self) { try await client.status() }
                #expect(error.code == .daemonUnreachable)
                #expect(error.message == "hexlistd is not running (nothing listens on \(path)).")
                #expect(error.hint == "Start it with `hexlistd`.")
            }
        }
    }
}
