import Foundation
import HexlistLocalSend
import HexlistModel
import Synchronization
import TestSupport
import Testing

@testable import HexlistNode

/// The strict LocalSend device of Tests/Faults/localsend/phone.py on loopback, without multicast.
final class StrictPhone: Sendable {
    /// An event of the program.
    struct Event: Decodable {
        var event: String
        var port: Int?
        var fingerprint: String?
        var text: String?
        var name: String?
        var sha256: String?
        var path: String?
        var certificate: String?
        var given: String?
    }

    static let program = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Faults/localsend/phone.py").path

    /// The reason why the program cannot run on this machine; `nil` if it can.
    static let missing: String? = {
        let python = FileManager.default.isExecutableFile(atPath: "/usr/bin/python3")
        let openssl = FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl")
        return python && openssl ? nil : "python3 or openssl is not installed"
    }()

    private let child: ChildProcess
    private let input = Pipe()
    /// The pipe of the program's output. It is kept, because the program could not print after it was closed.
    private let output = Pipe()
    private let events = PhoneEvents()
    let fingerprint: Fingerprint
    let port: Int

    var peer: PeerID { fingerprint.peerID }

    /// Starts the program, whose identity and received files are in `folder`.
    init(in folder: TemporaryFolder, name: String = "phone", _ arguments: [String] = []) async throws {
        child = try ChildProcess(
            "/usr/bin/python3",
            ["-I", Self.program, "serve", "--identity", "\(folder.path)/\(name).pem", "--folder", "\(folder.path)/\(name)"] + arguments,
            input: input.fileHandleForReading.fileDescriptor, output: output.fileHandleForWriting.fileDescriptor,
            errors: FileHandle.standardError.fileDescriptor)
        try output.fileHandleForWriting.close()
        try input.fileHandleForReading.close()
        let (ready, first) = AsyncStream.makeStream(of: Event.self)
        let events = events
        output.fileHandleForReading.readabilityHandler = { handle in
            let data = handle.availableData
            if data.isEmpty {
                handle.readabilityHandler = nil
                return first.finish()
            }
            for event in events.append(data) where event.event == "ready" { first.yield(event) }
        }
        var iterator = ready.makeAsyncIterator()
        let event = try #require(await iterator.next())
        port = try #require(event.port)
        fingerprint = try #require(event.fingerprint.flatMap { Fingerprint(localSend: $0) })
    }

    /// The events with this name so far.
    func all(_ name: String) -> [Event] { events.all.filter { $0.event == name } }

    /// The names of all events so far, for error messages.
    var names: [String] { events.all.map(\.event) }

    func command(_ line: String) throws { try input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8)) }

    func stop() {
        child.signal(SIGTERM)
        child.waitForEnd()
    }

    /// Makes the device known to a node, as if it had registered itself, and trusts it.
    func introduce(to test: TestNode, as fingerprint: Fingerprint? = nil) async throws {
        let (port, fingerprint) = (port, fingerprint ?? self.fingerprint)
        let prove = { @Sendable (node: isolated Node) in
            guard let address = IPAddress("127.0.0.1") else { return }
            let info = DeviceInfo(alias: "Pixel 9", fingerprint: fingerprint, port: port, scheme: .https)
            node.devices.apply(.proved(DeviceProof(fingerprint: fingerprint, address: address), info: info), node)
        }
        await test.node.perform { prove($0) }
        if await test.node.perform({ $0.registry.devices[fingerprint.peerID]?.trust }) != .trusted {
            _ = try await test.node.peers.setTrust(fingerprint.peerID, .trusted)
        }
    }
}

/// Splits the output of the program into events.
private final class PhoneEvents: Sendable {
    private let state = Mutex<(rest: Data, events: [StrictPhone.Event])>((Data(), []))

    var all: [StrictPhone.Event] { state.withLock { $0.events } }

    func append(_ data: Data) -> [StrictPhone.Event] {
        state.withLock { state in
            state.rest += data
            var new: [StrictPhone.Event] = []
            while let end = state.rest.firstIndex(of: UInt8(ascii: "\n")) {
                let line = state.rest[..<end]
                state.rest = Data(state.rest[(end + 1)...])
                if let event = try? JSONDecoder().decode(StrictPhone.Event.self, from: line) { new.append(event) }
            }
            state.events += new
            return new
        }
    }
}
