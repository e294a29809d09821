import Crypto
import Foundation
import HexlistAPI
import HexlistFiles
import HexlistJSON
import HexlistLocalSend
import HexlistModel
import HexlistStore
import HexlistTransport
import Logging
import NIOPosix
import TestSupport
import Testing

@testable import HexlistNode
@testable import HexlistTransfers

/// A device: a transport with its own certificate that sends requests to a node's port for devices, over real TLS.
private struct Phone {
    let transport: PeerTransport
    let fingerprint: Fingerprint
    var name = "Pixel 9"

    init(_ identity: Identity? = nil, name: String = "Pixel 9") throws {
        let identity = try identity ?? Identity.ephemeral()
        transport = try PeerTransport(identity: identity)
        fingerprint = try #require(identity.certificateFingerprint)
        self.name = name
    }

    var peer: PeerID { fingerprint.peerID }
    var info: DeviceInfo { DeviceInfo(alias: name, fingerprint: fingerprint, port: 53_317, scheme: .https) }

    /// - Parameter expecting: the pinned certificate; `nil` for that of the node.
    func post(_ path: String, _ body: [UInt8], to test: TestNode, expecting: Fingerprint? = nil) async throws -> DeviceResponse {
        let port = try #require(await test.node.status().localSend.port)
        let address = try #require(IPAddress("127.0.0.1"))
        let own = try #require(test.node.identity.certificateFingerprint)
        return try await transport.postToDevice(
            at: address, port: port, expecting: expecting ?? own, path: path, body: body, limit: 4_096, timeout: .minutes(2)
        ).get()
    }

    func register(_ info: DeviceInfo? = nil, at test: TestNode) async throws -> DeviceResponse {
        try await post("/api/localsend/v2/register", (info ?? self.info).registration, to: test)
    }

    struct Session {
        var id: String
        var tokens: [String: String]
    }

    /// - Returns: `nil` if the files are refused.
    func begin(_ files: [DeviceFile], at test: TestNode) async throws -> Session? {
        let response = try await post("/api/localsend/v2/prepare-upload", PrepareUpload(info: info, files: files).bytes, to: test)
        guard response.status == 200 else { return nil }
        let object = try JSONObject(JSONValue(parsing: response.body))
        let tokens = try #require(object["files"]?.members).reduce(into: [:]) { $0[$1.name] = $1.value.string }
        return Session(id: try object.value("sessionId"), tokens: tokens)
    }

    func upload(_ file: String, _ content: [UInt8], _ session: Session, to test: TestNode) async throws -> DeviceResponse {
        let path = "/api/localsend/v2/upload?sessionId=\(session.id)&fileId=\(file)&token=\(session.tokens[file] ?? "")"
        return try await post(path, content, to: test)
    }

    func send(_ text: String, to test: TestNode) async throws -> Int {
        let file = DeviceFile(id: "1", fileName: "text.txt", size: Int64(text.utf8.count), fileType: "text/plain", preview: text)
        return try await post("/api/localsend/v2/prepare-upload", PrepareUpload(info: info, files: [file]).bytes, to: test).status
    }
}

extension Node {
    fileprivate func inbox() async throws -> [HexSummary] {
        try await store.read { try $0.hexPage(HexFilter(location: .inbox), limit: 10).items }
    }
}

private func makeNode(_ configure: (inout NodeConfiguration) -> Void = { _ in }) async throws -> TestNode {
    try await TestNode("ada", on: nil) {
        var localSend = NodeConfiguration.LocalSend()
        localSend.port = 0
        $0.localSend = localSend
        configure(&$0)
    }
}

@Suite("LocalSend devices", .serialized, .timeLimit(.minutes(5)))
struct DeviceTests {
    @Test("a device that registers is listed, and gets this machine's description") func register() async throws {
        let test = try await makeNode()
        let phone = try Phone()
        let response = try await phone.register(at: test)
        #expect(response.status == 200)
        let info = try DeviceInfo(parsing: response.body)
        #expect(info.alias == "ada" && info.fingerprint == test.node.identity.certificateFingerprint && info.port == nil)
        let view = try #require(try await test.node.peers.all().first { $0.uuid == phone.peer })
        #expect(view.kind?.known == .localsend && view.state == .verified && view.trust == .stranger && view.name == "Pixel 9")
        #expect(view.fingerprint == phone.fingerprint && view.endpoints.first?.port == 53_317)
        try await test.until { node in
            let events = try await node.store.read { try $0.eventPage(since: 0, limit: 10).items }
            return events.contains { $0.type == .peerUp && $0.peer == phone.peer }
        }
        try await test.stop()
    }

    @Test("a device that claims the certificate of another one changes nothing about it") func claim() async throws {
        let test = try await makeNode()
        let (phone, mallory) = (try Phone(), try Phone(name: "Mallory"))
        _ = try await phone.register(at: test)
        var claim = mallory.info
        claim.fingerprint = phone.fingerprint
        #expect(try await mallory.register(claim, at: test).status == 200)
        let peers = try await test.node.peers.all().filter { $0.kind != nil }
        #expect(peers.map(\.uuid) == [phone.peer] && peers.map(\.name) == ["Pixel 9"])
        try await test.stop()
    }

    @Test(
        "texts go where the trust says",
        arguments: [
            (Trust.stranger, StrangerHexPolicy.held, 204, "held"), (.stranger, .trusted, 403, nil), (.stranger, .everyone, 204, "inbox"),
            (.trusted, .trusted, 204, "inbox"), (.blocked, .everyone, 403, nil),
        ] as [(Trust, StrangerHexPolicy, Int, String?)])
    func texts(trust: Trust, policy: StrangerHexPolicy, status: Int, location: String?) async throws {
        let test = try await makeNode { $0.receiveFrom = policy }
        let phone = try Phone()
        _ = try await phone.register(at: test)
        if trust != .stranger { #expect(try await test.node.peers.setTrust(phone.peer, trust).trust.known == trust) }
        #expect(try await phone.send("Read https://example.org/a tonight", to: test) == status)
        let hexes = try await test.node.store.read { reader in
            (try reader.hexPage(HexFilter(location: .inbox), limit: 10).items.map { ("inbox", $0) })
                + (try reader.hexPage(HexFilter(location: .held), limit: 10).items.map { ("held", $0) })
        }
        #expect(hexes.map(\.0) == [location].compactMap(\.self))
        if let hex = hexes.first?.1 {
            #expect(hex.peer == phone.peer && hex.linkCount == 1)
            let content = try await test.node.store.read { try $0.hex(hex.id) }
            #expect(content?.content.links.map { content?.content.string($0.url) } == ["https://example.org/a"])
        }
        try await test.stop()
    }

    @Test("trust in a device does not count for a Hexlist peer with the same fingerprint, and devices cannot be paired with")
    func kinds() async throws {
        let test = try await makeNode()
        let phone = try Phone()
        _ = try await phone.register(at: test)
        _ = try await test.node.peers.setTrust(phone.peer, .trusted)
        await test.node.perform { node in
            #expect(node.registry[phone.peer] == nil && node.registry.trust(of: phone.fingerprint) == .stranger)
            #expect(node.registry.devices[phone.peer]?.trust == .trusted)
        }
        await #expect(throws: HexlistError.self) { try await test.node.pairing.request(with: phone.peer) }
        // The device is still known after a restart, and forgotten on demand.
        try await test.stop(removing: false)
        let again = try await TestNode("ada", on: nil, folder: test.folder)
        let view = try #require(try await again.node.peers.all().first { $0.uuid == phone.peer })
        #expect(view.state == .away && view.trust == .trusted && view.kind?.known == .localsend && view.alias == "Pixel 9")
        try await again.node.peers.forget(phone.peer)
        #expect(try await again.node.peers.all().isEmpty)
        try await again.stop()
    }

    @Test("no request is sent to a server with another certificate") func pin() async throws {
        let test = try await makeNode()
        let phone = try Phone()
        let other = try Phone()
        await #expect(throws: DeviceRequestFault.otherCertificate(try #require(test.node.identity.certificateFingerprint))) {
            _ = try await phone.post("/api/localsend/v2/register", phone.info.registration, to: test, expecting: other.fingerprint)
        }
        #expect(try await test.node.peers.all().isEmpty)
        try await test.stop()
    }

    @Test(
        "invalid requests",
        arguments: [
            ("/api/localsend/v2/register", "{", 400), ("/api/localsend/v2/register", "[]", 400), ("/api/localsend/v2/info", "", 405),
            ("/api/localsend/v2/prepare-upload", "{\"info\":{\"alias\":\"a\"},\"files\":{}}", 400), ("/api/localsend/v3/register", "", 404),
            ("/api/localsend/v1/register", "{}", 404), ("/", "", 404), ("/v1/status", "", 404),
        ]) func invalid(path: String, body: String, status: Int) async throws
    {
        let test = try await makeNode()
        #expect(try await Phone().post(path, Array(body.utf8), to: test).status == status)
        try await test.stop()
    }

    @Test(
        "bodies over their limits are refused, and the node goes on",
        arguments: [
            ("/api/localsend/v2/register", LocalSendLimits.infoBytes + 1),
            ("/api/localsend/v2/prepare-upload", LocalSendLimits.prepareBytes + 1),
        ]) func large(path: String, bytes: Int) async throws
    {
        let test = try await makeNode()
        let phone = try Phone()
        #expect(try await phone.post(path, [UInt8](repeating: 32, count: bytes), to: test).status == 413)
        #expect(try await phone.register(at: test).status == 200)
        try await test.stop()
    }

    @Test("a device on the machine of a known Hexlist peer is a duplicate") func duplicate() async throws {
        let test = try await makeNode()
        let identity = try Identity.ephemeral()
        try await test.node.store.setTrust(
            .trusted,
            of: PeerContact(
                peer: identity.peerID, fingerprint: identity.fingerprint, name: "bob", version: nil, boot: nil,
                seenAt: test.node.clocks.milliseconds), name: nil, at: test.node.clocks.milliseconds)
        _ = try await test.node.peers.all()
        let phone = try Phone(identity, name: "bob's LocalSend")
        _ = try await phone.register(at: test)
        let devices = try await test.node.peers.all().filter { $0.kind != nil }
        #expect(devices.map(\.state) == [.ghost] && devices.map(\.reason) == ["duplicate"])
        #expect(devices.first?.why?.contains("bob") == true)
        try await test.stop()
    }

    @Test("a hidden node opens no port for devices; a change of `announce` opens and closes it") func hidden() async throws {
        let test = try await makeNode { $0.announce = false }
        #expect(await test.node.status().localSend.state.known == .off)
        var configuration = await test.node.configuration
        configuration.announce = true
        await test.node.reconfigure(configuration)
        let phone = try Phone()
        #expect(try await phone.register(at: test).status == 200)
        let port = try #require(await test.node.status().localSend.port)
        configuration.announce = false
        await test.node.reconfigure(configuration)
        #expect(await test.node.status().localSend.port == nil)
        let address = try #require(IPAddress("127.0.0.1"))
        let request = phone.transport.postToDevice(
            at: address, port: port, expecting: phone.fingerprint, path: "/", body: [], limit: 1, timeout: .seconds(5))
        let fault = try await request.map { _ in DeviceRequestFault?.none }.recover { $0 as? DeviceRequestFault }.get()
        let isRefused = if case .unreachable? = fault { true } else { false }
        #expect(isRefused, "the port is still open")
        try await test.stop()
    }

    @Test("files of a trusted device become one hex, and are kept with it") func files() async throws {
        let test = try await makeNode()
        let phone = try Phone()
        _ = try await phone.register(at: test)
        _ = try await test.node.peers.setTrust(phone.peer, .trusted)
        let contents = [Array("one".utf8), [UInt8](repeating: 7, count: 300_000), []]
        let names = ["photos/../../a.jpg", "photos/b.jpg", "note.txt"]
        let files = zip(contents, names).enumerated().map { index, file in
            DeviceFile(
                id: "f\(index)", fileName: file.1, size: Int64(file.0.count), fileType: "image/jpeg",
                sha256: Array(SHA256.hash(data: file.0)), modified: "2026-11-26T01:02:03Z")
        }
        let session = try #require(try await phone.begin(files, at: test))
        for (file, content) in zip(files, contents) {
            #expect(try await phone.upload(file.id, content, session, to: test).status == 200)
        }
        try await test.until { try await !$0.inbox().isEmpty }
        let hex = try #require(try await test.node.inbox().first)
        #expect(hex.peer == phone.peer && hex.description == "3 files" && hex.linkCount == 1 && hex.hexesInside == 1)
        let detail = try #require(try await test.node.store.read { try $0.hex(hex.id) })
        let links = (detail.content.links + detail.content.childLinks).map {
            (detail.content.string($0.url), detail.content.string($0.linkDescription), detail.content.string($0.extra))
        }
        #expect(links.map(\.1).sorted() == ["a.jpg", "b.jpg", "note.txt"])
        for (link, _, extra) in links {
            #expect(FileLink(link)?.peer == phone.peer && extra.contains("\"modified\":\"2026-11-26T01:02:03.000Z\""))
        }
        for content in contents {
            let (file, row) = try #require(test.transfers.pool.open(Array(SHA256.hash(data: content)), from: phone.peer))
            #expect(file.size == Int64(content.count) && row.place == .kept)
        }
        #expect(try await test.node.store.read { try $0.arrivals() }.isEmpty)
        #expect(try FileManager.default.contentsOfDirectory(atPath: test.folder.appending(path: "arrivals").path).isEmpty)
        // The files are deleted with the hex.
        _ = try await test.node.store.change([hex.id], .delete, at: test.node.clocks.milliseconds)
        try await eventually("the files are deleted") {
            contents.allSatisfy { test.transfers.pool.open(Array(SHA256.hash(data: $0))) == nil }
        }
        try await test.stop()
    }

    @Test("uploads that are refused write no file") func refusedUploads() async throws {
        let test = try await makeNode()
        let (phone, mallory) = (try Phone(), try Phone(name: "Mallory"))
        for one in [phone, mallory] { _ = try await one.register(at: test) }
        let file = DeviceFile(
            id: "f", fileName: "a", size: 4, fileType: "image/png", sha256: Array(SHA256.hash(data: Array("four".utf8))))
        _ = try await test.node.peers.setTrust(phone.peer, .trusted)
        var session = try #require(try await phone.begin([file], at: test))
        #expect(try await phone.begin([file], at: test) == nil, "one session for each device")
        #expect(try await mallory.upload("f", Array("four".utf8), session, to: test).status == 403, "another certificate")
        var other = session
        other.tokens["f"] = session.id
        #expect(try await phone.upload("f", Array("four".utf8), other, to: test).status == 403, "another token")
        #expect(try await phone.upload("f", Array("fours".utf8), session, to: test).status == 500, "too long")
        #expect(try await phone.upload("f", Array("foul".utf8), session, to: test).status == 422, "another digest")
        #expect(try await phone.upload("f", Array("for".utf8), session, to: test).status == 500, "too short")
        #expect(try await phone.upload("f", Array("four".utf8), session, to: test).status == 403, "three attempts")
        #expect(try await test.node.inbox().isEmpty)
        session = try #require(try await phone.begin([file], at: test))
        #expect(try await phone.post("/api/localsend/v2/cancel?sessionId=\(session.id)", [], to: test).status == 200)
        #expect(try await phone.upload("f", Array("four".utf8), session, to: test).status == 403, "cancelled")
        let huge = DeviceFile(id: "f", fileName: "a", size: 1 << 60, fileType: "image/png")
        #expect(try await phone.begin([huge], at: test) == nil, "no space")
        try await test.stop()
    }

    /// Waits for the request of a device, and returns it.
    private func request(_ test: TestNode) async throws -> UploadRequestView {
        try await test.until { await !$0.uploadRequests.all().isEmpty }
        return try #require(await test.node.uploadRequests.all().first)
    }

    @Test(
        "files of a stranger wait for the user; accepted, they arrive in the inbox, also with `receiveFrom: held`",
        arguments: [false, true])
    func acceptedFiles(trusting: Bool) async throws {
        let test = try await makeNode()
        let phone = try Phone()
        let content = Array("content".utf8)
        let files = ["a.txt", "b/../c.txt"].map {
            DeviceFile(id: $0, fileName: $0, size: Int64(content.count), fileType: "text/plain")
        }
        async let answer = phone.begin(files, at: test)
        let asked = try await request(test)
        #expect(asked.peer == phone.peer && asked.files == 2 && asked.size == 14 && asked.names == ["a.txt", "b/c.txt"])
        #expect(asked.label.text().contains("stranger"))
        #expect(!FileManager.default.fileExists(atPath: test.folder.appending(path: "arrivals").path))
        try await test.until { node in
            let events = try await node.store.read { try $0.eventPage(since: 0, limit: 10).items }
            return events.contains { $0.type == .deviceAsked && $0.peer == phone.peer && $0.data?.contains("\"bytes\":\"14\"") == true }
        }
        _ = try await test.node.uploadRequests.accept(asked.id, trusting: trusting)
        let session = try #require(try await answer)
        #expect(await test.node.uploadRequests.all().isEmpty)
        for file in files { #expect(try await phone.upload(file.id, content, session, to: test).status == 200) }
        try await test.until { try await !$0.inbox().isEmpty }
        #expect(try await test.node.inbox().map(\.peer) == [phone.peer])
        let view = try #require(try await test.node.peers.all().first { $0.uuid == phone.peer })
        #expect(view.trust == (trusting ? .trusted : .stranger))
        await #expect(throws: HexlistError.self) { try await test.node.uploadRequests.accept(asked.id, trusting: false) }
        try await test.stop()
    }

    @Test("the user's no, a block, the device's own end, and a closed connection end a request without a file", arguments: 0..<4)
    func unacceptedFiles(end: Int) async throws {
        let test = try await makeNode()
        let phone = try Phone()
        let file = DeviceFile(id: "f", fileName: "a", size: 1, fileType: "image/png")
        let body = PrepareUpload(info: phone.info, files: [file]).bytes
        let answer = Task { try await phone.post("/api/localsend/v2/prepare-upload", body, to: test) }
        let asked = try await request(test)
        #expect(try await phone.post("/api/localsend/v2/prepare-upload", body, to: test).status == 409, "one of each device")
        switch end {
        case 0: _ = try await test.node.uploadRequests.refuse(asked.id)
        case 1: _ = try await test.node.peers.setTrust(phone.peer, .blocked)
        case 2: #expect(try await phone.post("/api/localsend/v2/cancel", [], to: test).status == 200)
        default: await phone.transport.shutdown()
        }
        if end < 3 { #expect(try await answer.value.status == 403) } else { _ = await answer.result }
        try await eventually("no request is left") { await test.node.uploadRequests.all().isEmpty }
        await #expect(throws: HexlistError.self) { try await test.node.uploadRequests.refuse(asked.id) }
        #expect(!FileManager.default.fileExists(atPath: test.folder.appending(path: "arrivals").path))
        try await test.stop()
    }

    @Test("a request is accepted when its device becomes trusted, and refused when the node stops") func trustWhileAsked() async throws {
        let test = try await makeNode()
        let (phone, other) = (try Phone(), try Phone(name: "iPad"))
        let file = DeviceFile(id: "f", fileName: "a", size: 1, fileType: "image/png")
        async let answer = phone.begin([file], at: test)
        _ = try await request(test)
        _ = try await test.node.peers.setTrust(phone.peer, .trusted)
        #expect(try await answer != nil)
        let body = PrepareUpload(info: other.info, files: [file]).bytes
        let second = Task { try await other.post("/api/localsend/v2/prepare-upload", body, to: test) }
        _ = try await request(test)
        try await test.stop()
        let status = try? await second.value.status
        #expect(status == nil || status == 403)
    }

    @Test("requests of a stranger are limited, those of a trusted device are not") func requestLimit() async throws {
        let test = try await makeNode()
        let (phone, mallory) = (try Phone(), try Phone(name: "Mallory"))
        _ = try await phone.register(at: test)
        _ = try await test.node.peers.setTrust(phone.peer, .trusted)
        await test.node.perform { $0.devices.requests.limit = SourceRateLimit(perSecond: 0, perSource: 0) }
        #expect(try await mallory.register(at: test).status == 429)
        for _ in 0..<3 { #expect(try await phone.register(at: test).status == 200) }
        try await test.stop()
    }

    @Test("files of strangers are refused at once with `receiveFrom: trusted`") func onlyTrusted() async throws {
        let test = try await makeNode { $0.receiveFrom = .trusted }
        let file = DeviceFile(id: "f", fileName: "a", size: 1, fileType: "image/png")
        #expect(try await Phone().begin([file], at: test) == nil)
        try await test.stop()
    }

    @Test("files of a session that a crash left open are stored by the next start") func recovery() async throws {
        let test = try await makeNode()
        let phone = try Phone()
        _ = try await phone.register(at: test)
        _ = try await test.node.peers.setTrust(phone.peer, .trusted)
        let content = Array("content".utf8)
        let file = DeviceFile(id: "f", fileName: "a.txt", size: Int64(content.count), fileType: "text/plain")
        let second = DeviceFile(id: "g", fileName: "b.txt", size: 1, fileType: "text/plain")
        let session = try #require(try await phone.begin([file, second], at: test))
        #expect(try await phone.upload("f", content, session, to: test).status == 200)
        // A copy of the state with the store's WAL, as after a kill.
        let copy = FileManager.default.temporaryDirectory.appending(path: "hexlist-node-\(UUID().uuidString.prefix(8))")
        try FileManager.default.copyItem(at: test.folder, to: copy)
        try await test.stop()
        let again = try await TestNode("ada", on: nil, folder: copy)
        #expect(try await again.node.inbox().map(\.description) == ["a.txt"])
        #expect(again.transfers.pool.open(Array(SHA256.hash(data: content)), from: phone.peer) != nil)
        #expect(try await again.node.store.read { try $0.arrivals() }.isEmpty)
        try await again.stop()
    }

    @Test(
        "hostile texts are stored, and take no longer than usual",
        arguments: [
            String(repeating: "\u{301}", count: 30_000), String(repeating: "http://", count: 9_000),
            String(repeating: "[](", count: 20_000),
            String(repeating: "https://a.b/ ", count: 5_000), String(repeating: "\r\n", count: 30_000),
            String(repeating: "\u{1F1E6}", count: 16_000), String(repeating: "(", count: 60_000) + "https://a.b/" + "javascript:alert(1)",
            "a\u{0}b\u{202E}c",
        ]) func hostile(text: String) async throws
    {
        let test = try await makeNode()
        let phone = try Phone()
        #expect(try await phone.send(text, to: test) == 204)
        try await test.stop()
    }
}
