import Foundation
import HexlistAPI
import HexlistModel
import HexlistStore
import HexlistWire
import TestSupport
import Testing

@testable import HexlistNode

/// Sending to the strict LocalSend device, over real TLS, with a real store.
@Suite(
    "Sending to LocalSend devices", .serialized, .timeLimit(.minutes(5)),
    .enabled(if: StrictPhone.missing == nil, "python3 or openssl is not installed"))
struct LocalSendCourierTests {
    private static func node() async throws -> TestNode {
        try await TestNode("ada", on: nil) {
            var localSend = NodeConfiguration.LocalSend()
            localSend.port = 0
            $0.localSend = localSend
        }
    }

    private func with(_ arguments: [String] = [], _ body: (TestNode, StrictPhone, TemporaryFolder) async throws -> Void) async throws {
        try await TemporaryFolder.with { folder in
            let phone = try await StrictPhone(in: folder, arguments)
            defer { phone.stop() }
            let test = try await Self.node()
            try await phone.introduce(to: test)
            try await body(test, phone, folder)
            try await test.stop()
        }
    }

    private func hex(_ description: String, _ urls: String...) -> HexContent {
        var hex = HexContent()
        hex.hexDescription = hex.add(description)
        for url in urls {
            hex.links.append(LinkContent(url: hex.add(url), linkDescription: .empty, service: hex.add("Unknown")))
        }
        return hex
    }

    /// Adds a row for the device.
    /// - Returns: its id.
    private func send(_ hex: HexContent, from test: TestNode, to peer: PeerID) async throws -> Int64 {
        try await test.node.outbox.send(SendRequest(content: .hex(hex), peers: [peer]), until: .now)[0].outboxID
    }

    /// Waits until a row has the expected state. On a loaded machine a dial can take longer than its time limit; then the device counts as
    /// away until it announces itself again, as the app does.
    @discardableResult
    private func row(
        _ id: Int64, of test: TestNode, _ phone: StrictPhone, line: Int = #line, until holds: (OutboxView) -> Bool
    ) async throws -> OutboxView {
        var latest: OutboxView?
        return try await eventualValue(line: line, "row \(id) (\(latest?.waitingFor?.text ?? "")), events: \(phone.names)") {
            let row = try await test.node.outbox.row(id)
            latest = row
            if row.waitingFor?.known == .peer { try await phone.introduce(to: test) }
            return holds(row) ? row : nil
        }
    }

    private func isDelivered(_ row: OutboxView) -> Bool { row.code == "delivered" }

    @Test("hexes arrive as texts, in order, and are reported as delivered") func texts() async throws {
        try await with { test, phone, _ in
            for content in [hex("", "https://example.org/a"), hex("Read", "https://example.org/b"), hex("Only a text")] {
                let row = try await row(send(content, from: test, to: phone.peer), of: test, phone, until: isDelivered)
                #expect(row.state == .stored && row.message == nil)
            }
            let texts = phone.all("text")
            #expect(texts.map(\.text) == ["https://example.org/a", "Read\n\nhttps://example.org/b", "Only a text"])
            let own = test.node.identity.certificateFingerprint.map { Hexadecimal.encode($0.bytes).uppercased() }
            #expect(texts.allSatisfy { $0.certificate == own })
        }
    }

    @Test("a row that waits for an answer holds no slot, says so, and is delivered after the answer") func answer() async throws {
        try await with(["--answer", "ask"]) { test, phone, _ in
            let first = try await send(hex("a"), from: test, to: phone.peer)
            try await row(first, of: test, phone) { $0.waitingFor?.known == .answer && phone.all("asked").count == 1 }
            let second = try await send(hex("b"), from: test, to: phone.peer)
            #expect(try await test.node.outbox.row(second).waitingFor?.known == .answer)
            try phone.command("accept")
            try await row(first, of: test, phone, until: isDelivered)
            try await row(second, of: test, phone) { _ in phone.all("asked").count == 2 }
            try phone.command("decline")
            try await row(second, of: test, phone) { $0.state == .rejected && $0.code == "declined" }
        }
    }

    @Test("a cancelled row is withdrawn from the device") func cancel() async throws {
        try await with(["--answer", "ask"]) { test, phone, _ in
            let first = try await send(hex("a"), from: test, to: phone.peer)
            try await row(first, of: test, phone) { _ in phone.all("asked").count == 1 }
            _ = try await test.node.outbox.cancel(first)
            try await eventually { phone.all("aborted").count == 1 }
            let next = try await send(hex("b"), from: test, to: phone.peer)
            try await row(next, of: test, phone) { _ in phone.all("asked").count == 2 }
            try phone.command("accept")
            try await row(next, of: test, phone, until: isDelivered)
            #expect(try await test.node.outbox.row(first).state == .cancelled)
        }
    }

    @Test("a PIN is asked for, tried once, and deleted if it is wrong") func pin() async throws {
        try await with(["--pin", "123"]) { test, phone, _ in
            let id = try await send(hex("a"), from: test, to: phone.peer)
            try await row(id, of: test, phone) { $0.state == .queued && $0.waitingFor?.known == .pin }
            _ = try await test.node.peers.change(phone.peer, PeerChange(pin: "9"))
            try await row(id, of: test, phone) { _ in phone.all("pin").contains { $0.given == "9" } }
            try await eventually { try await test.node.store.read { try $0.pin(of: phone.peer) } == nil }
            try await row(id, of: test, phone) { $0.waitingFor?.known == .pin }
            _ = try await test.node.peers.change(phone.peer, PeerChange(pin: "123"))
            try await row(id, of: test, phone, until: isDelivered)
            #expect(phone.all("pin").count { $0.given == "9" } == 1)
            #expect(try await test.node.store.read { try $0.pin(of: phone.peer) } == "123")
        }
    }

    @Test("files are read in place and arrive under their folders") func files() async throws {
        try await with { test, phone, folder in
            let source = URL(fileURLWithPath: folder.path).appending(path: "Photos")
            try FileManager.default.createDirectory(at: source.appending(path: "May"), withIntermediateDirectories: true)
            var random = SeededGenerator(seed: 8)
            let bytes = Data(random.bytes(8_000_000))
            try bytes.write(to: source.appending(path: "a.jpg"))
            try Data().write(to: source.appending(path: "May/empty.txt"))
            let offer = try await test.transfers.offers.offer([source.path], for: .peers([phone.peer]), protecting: []) { _ in }
            var decoder = WrapperDecoder()
            let content = try decoder.decodeHex(Array(offer.hex.text.utf8), acceptsLocalNames: false).get().content
            try await row(send(content, from: test, to: phone.peer), of: test, phone, until: isDelivered)
            let files = phone.all("file")
            #expect(files.compactMap(\.name).sorted() == ["Photos/May/empty.txt", "Photos/a.jpg"])
            let path = try #require(files.first { $0.name == "Photos/a.jpg" }?.path)
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == bytes)

            try Data("changed".utf8).write(to: source.appending(path: "a.jpg"))
            let again = try await row(send(content, from: test, to: phone.peer), of: test, phone) { $0.state == .failed }
            #expect(again.code == "device" && again.message?.contains("a.jpg") == true, "\(again.message ?? "")")
        }
    }

    @Test("a device with another certificate at the address of a trusted one gets nothing") func impostor() async throws {
        try await with { test, _, folder in
            let mallory = try await StrictPhone(in: folder, name: "mallory")
            defer { mallory.stop() }
            let trusted = try #require(Fingerprint(bytes: [UInt8](repeating: 9, count: 32)))
            try await mallory.introduce(to: test, as: trusted)
            let id = try await send(hex("secret"), from: test, to: trusted.peerID)
            let row = try await eventualValue("the row of the impostor") {
                let row = try await test.node.outbox.row(id)
                if row.lastError?.contains("nothing was sent") ?? false { return row }
                try await mallory.introduce(to: test, as: trusted)
                return nil
            }
            #expect(row.state == .queued && mallory.all("asked").isEmpty && mallory.all("text").isEmpty)
            #expect(try await test.node.peers.all().contains { $0.reason == "impostor" })
        }
    }

    @Test("rows wait for a device that is away, and are sent in order when it is back") func away() async throws {
        try await with { test, phone, _ in
            try phone.command("close")
            try await eventually { phone.all("closed").count == 1 }
            var rows: [Int64] = []
            for number in 0..<3 { rows.append(try await send(hex("\(number)"), from: test, to: phone.peer)) }
            try await test.until { try await $0.outbox.row(rows[0]).waitingFor?.known == .peer }
            try phone.command("open")
            try await eventually { phone.all("ready").count == 2 }
            try await phone.introduce(to: test)
            try await row(rows[2], of: test, phone, until: isDelivered)
            #expect(phone.all("text").map(\.text) == ["0", "1", "2"])
        }
    }

    @Test("a stranger's device is not sent to") func refusals() async throws {
        try await with { test, phone, _ in
            _ = try await test.node.peers.setTrust(phone.peer, .stranger)
            await #expect(throws: HexlistError.self) { _ = try await self.send(self.hex("a"), from: test, to: phone.peer) }
        }
    }
}
