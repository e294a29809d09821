import Foundation
import Testing

/// The program of Examples/embedded-peer, built from the products of this package, against the real hexlistd.
@Suite("Examples/embedded-peer", .timeLimit(.minutes(Patience.test)), .ifBuilt)
struct EmbeddedPeerTests {
    /// The program, with a folder for its identity, keys and hexes.
    private struct Peer {
        let folder: TemporaryFolder
        let port: Int

        /// Runs the program until `test` has returned, then ends its input.
        /// - Returns: its exit status.
        func run(_ link: String, _ test: (RunningCommand, Pipe) async throws -> Void) async throws -> Int32 {
            let input = Pipe()
            let program = try RunningCommand(
                ["\(Checkout.programs)/embedded-peer", folder.path, "127.0.0.1", "\(port)", link],
                input: input.fileHandleForReading.fileDescriptor)
            do {
                try await test(program, input)
            } catch {
                await program.stop()
                throw error
            }
            try input.fileHandleForWriting.close()
            return await program.status()
        }
    }

    @Test("it pairs with hexlistd, sends and receives a hex, and is still trusted after a restart")
    func embeddedPeer() async throws {
        try await LocalDaemon.with { daemon in
            try await daemon.running {
                let status = try JSONDecoder().decode(StatusRow.self, from: Data(try await daemon.hexlist("status", "--json").out.utf8))
                let folder = try TemporaryFolder()
                defer { folder.remove() }
                let peer = Peer(folder: folder, port: status.port)
                let pairing = try RunningCommand([Checkout.hexlist, "pair", "--json"], environment: daemon.environment)
                _ = try await pairing.first { $0.hasPrefix("Accepting requests") ? $0 : nil }
                let ended = try await peer.run("https://example.org/first") { program, input in
                    let uuid = try await program.first { $0.contains(" on port ") ? String($0.prefix(36)) : nil }
                    let digits = try await program.first { $0.hasPrefix("digits: ") ? String($0.dropFirst(8)) : nil }
                    let shown = try await pairing.first { JSONLines.member("state", of: $0) == #""comparing""# ? $0 : nil }
                    #expect(JSONLines.member("digits", of: shown) == "\"\(digits)\"")
                    try input.fileHandleForWriting.write(contentsOf: Data("\(digits)\n".utf8))
                    let confirmed = try await daemon.hexlist("pair", "--confirm", uuid, digits)
                    #expect(confirmed.status == 0, "\(confirmed)")
                    _ = try await program.first { $0 == "sent: stored" ? $0 : nil }

                    let sent = try await daemon.hexlist("send", "https://example.org/back", "--to", uuid)
                    #expect(sent.status == 0, "\(sent)")
                    // The daemon has the receipt, so the file exists.
                    let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix(status.uuid) }
                    #expect(files.count == 1)
                    #expect(try files.first.map { try folder.text($0) }?.contains("https://example.org/back") == true)
                }
                #expect(ended == 0)
                let again = try await peer.run("https://example.org/second") { program, _ in
                    _ = try await program.first { $0 == "sent: stored" ? $0 : nil }
                }
                #expect(again == 0)
                let inbox = try JSONLines.decode(try await daemon.hexlist("inbox", "--json").out, as: HexRow.self)
                #expect(inbox.count == 2)
            }
        }
    }
}
