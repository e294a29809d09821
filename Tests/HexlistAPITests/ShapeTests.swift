import HexlistAPI
import HexlistJSON
import HexlistModel
import Testing

/// The JSON of the local API is a contract: scripts parse these bytes.
@Suite("JSON of the local API")
struct ShapeTests {
    private static let uuid = PeerID(UUIDBytes(high: 0x5E3C_1234_0000_8000, low: 0x8000_0000_0000_000A))
    private static let message = MessageID(uuid.uuid)
    // swift-format-ignore: NeverForceUnwrap
    private static let fingerprint = Fingerprint(bytes: [UInt8](repeating: 0xAB, count: 32))!
    private static let moment = Timestamp(milliseconds: 1_933_135_628_009)

    private func check<Shape: JSONShape & Equatable>(_ shape: Shape, _ json: String) throws {
        #expect(shape.jsonText == json)
        #expect(try Shape(jsonBytes: Array(json.utf8)) == shape)
    }

    @Test func peer() throws {
        try check(
            PeerView(uuid: Self.uuid, name: "Ada", state: .verified, trust: .stranger),
            #"{"uuid":"5E3C1234-0000-8000-8000-00000000000A","name":"Ada","state":"verified","trust":"stranger","endpoints":[],"unread":0}"#
        )
        try check(
            PeerView(
                uuid: nil, name: "x", alias: "y", state: .ghost, reason: "invalid", why: "no id", trust: .blocked,
                fingerprint: Self.fingerprint,
                version: "1.0.0", boot: BootNonce(0x0123_4567_89AB_CDEF),
                endpoints: [
                    EndpointView(host: "fe80::1%eth0", port: 24_391, interface: "eth0", via: "mdns", lastOK: Self.moment),
                    EndpointView(host: "10.0.0.1", port: 1, via: "static"),
                ], lastSeen: Self.moment, unread: 3),
            #"{"name":"x","alias":"y","state":"ghost","reason":"invalid","why":"no id","trust":"blocked","fingerprint":"\#(Self.fingerprint)","#
                + #""version":"1.0.0","#
                + #""boot":"0123456789abcdef","endpoints":[{"host":"fe80::1%eth0","port":24391,"interface":"eth0","via":"mdns","#
                + #""lastOK":"2031-04-05T06:07:08.009Z"},{"host":"10.0.0.1","port":1,"via":"static"}],"#
                + #""lastSeen":"2031-04-05T06:07:08.009Z","unread":3}"#)
    }

    @Test func doctor() throws {
        try check(
            DoctorReport(steps: [
                DoctorStep("port", .ok, "It answers."),
                DoctorStep("firewall", .failed, "Closed.", advice: ["sudo nft …", "or"], code: "x"),
            ]),
            #"{"ok":false,"steps":[{"step":"port","state":"ok","message":"It answers."},"#
                + #"{"step":"firewall","state":"failed","message":"Closed.","advice":["sudo nft …","or"],"code":"x"}]}"#)
        #expect(DoctorReport(steps: [DoctorStep("a", .warning, "x")]).isFine)
    }

    @Test func hex() throws {
        var hex = HexJSON(
            id: 7, location: "inbox", senderUUID: Self.uuid.description, senderName: "Ada", peerUUID: Self.uuid, description: "a/b \"c\"\n",
            color: "red",
            linkCount: 1, unread: true, receivedAt: Self.moment, messageID: Self.message)
        let head =
            #"{"id":7,"location":"inbox","senderUUID":"\#(Self.uuid)","senderName":"Ada","peerUUID":"\#(Self.uuid)","#
            + #""description":"a/b \"c\"\n","color":"red","linkCount":1,"unread":true,"receivedAt":"2031-04-05T06:07:08.009Z","#
            + #""messageID":"\#(Self.uuid)""#
        try check(hex, head + "}")
        hex.links = [LinkJSON(url: "https://example.org/a?b=c", linkDescription: "é", service: "Dropbox")]
        hex.extra = try JSONValue(parsing: #"{"hex":{"tags": [1.0, "\u00e9"],"tags":{}},"links":{"0":{"w":12e0}}}"#)
        try check(
            hex,
            head + #","links":[{"url":"https://example.org/a?b=c","linkDescription":"é","service":"Dropbox"}],"#
                + #""extra":{"hex":{"tags": [1.0, "\u00e9"],"tags":{}},"links":{"0":{"w":12e0}}}}"#)
    }

    @Test func send() throws {
        try check(
            SendOutcome(outboxID: 4, messageID: Self.message, peer: Self.uuid, state: .rejected, code: "blocked", message: "no"),
            #"{"outboxID":4,"messageID":"\#(Self.uuid)","peer":"\#(Self.uuid)","state":"rejected","code":"blocked","message":"no"}"#)
    }

    @Test func outbox() throws {
        try check(
            OutboxView(
                outboxID: 4, messageID: Self.message, peer: Self.uuid, state: .queued, attempts: 2, waitingFor: .peer,
                nextAttemptAt: Self.moment,
                lastError: "gone", createdAt: Self.moment, bytes: 99),
            #"{"outboxID":4,"messageID":"\#(Self.uuid)","peer":"\#(Self.uuid)","state":"queued","attempts":2,"waitingFor":"peer","#
                + #""nextAttemptAt":"2031-04-05T06:07:08.009Z","lastError":"gone","createdAt":"2031-04-05T06:07:08.009Z","bytes":99}"#)
    }

    @Test("reasons why a row waits, its subject, and reasons of a refusal") func reasons() throws {
        try check(
            SendOutcome(
                outboxID: 4, messageID: Self.message, peer: Self.uuid, state: .queued, earlier: true, waitingFor: .retry,
                nextAttemptAt: Self.moment, message: "full"),
            #"{"outboxID":4,"messageID":"\#(Self.uuid)","peer":"\#(Self.uuid)","state":"queued","earlier":true,"waitingFor":"retry","#
                + #""nextAttemptAt":"2031-04-05T06:07:08.009Z","message":"full"}"#)
        try check(
            OutboxView(
                outboxID: 4, messageID: Self.message, peer: Self.uuid, subject: "to read", state: .rejected, attempts: 2, code: "blocked",
                message: "no", createdAt: Self.moment, bytes: 9),
            #"{"outboxID":4,"messageID":"\#(Self.uuid)","peer":"\#(Self.uuid)","subject":"to read","state":"rejected","attempts":2,"#
                + #""code":"blocked","message":"no","createdAt":"2031-04-05T06:07:08.009Z","bytes":9}"#)
        try check(
            BulkSummary(lines: 2, accepted: 2, stored: 2, earlier: 1),
            #"{"lines":2,"invalid":0,"accepted":2,"stored":2,"held":0,"rejected":0,"failed":0,"queued":0,"earlier":1,"seconds":0.0}"#)
        try check(
            HexJSON(
                id: 7, location: "inbox", senderUUID: Self.uuid.description, senderName: "Ada", senderAlias: "ada", peerUUID: Self.uuid,
                description: "",
                color: "", linkCount: 0, unread: true, receivedAt: Self.moment),
            #"{"id":7,"location":"inbox","senderUUID":"\#(Self.uuid)","senderName":"Ada","senderAlias":"ada","peerUUID":"\#(Self.uuid)","#
                + #""description":"","color":"","linkCount":0,"unread":true,"receivedAt":"2031-04-05T06:07:08.009Z"}"#)
    }

    @Test func event() throws {
        try check(
            EventJSON(
                number: 12, at: Self.moment, type: "hex.received", peer: Self.uuid, hex: 7, data: try JSONValue(parsing: #"{"a": 1}"#)),
            #"{"number":12,"at":"2031-04-05T06:07:08.009Z","type":"hex.received","peer":"\#(Self.uuid)","hex":7,"data":{"a": 1}}"#)
    }

    @Test("each row with a peer has the peer's name, alias and trust") func tags() throws {
        let tag = PeerSummary(name: "Robert", alias: "Bob", trust: .blocked)
        try check(
            SendOutcome(outboxID: 4, messageID: Self.message, peer: Self.uuid, tag: tag, state: .queued),
            #"{"outboxID":4,"messageID":"\#(Self.uuid)","peer":"\#(Self.uuid)","name":"Robert","alias":"Bob","trust":"blocked","state":"queued"}"#
        )
        try check(
            OutboxView(
                outboxID: 4, messageID: Self.message, peer: Self.uuid, tag: tag, state: .queued, attempts: 2, createdAt: Self.moment,
                bytes: 9),
            #"{"outboxID":4,"messageID":"\#(Self.uuid)","peer":"\#(Self.uuid)","name":"Robert","alias":"Bob","trust":"blocked","#
                + #""state":"queued","attempts":2,"createdAt":"2031-04-05T06:07:08.009Z","bytes":9}"#)
        try check(
            EventJSON(number: 12, at: Self.moment, type: "peer.down", peer: Self.uuid, tag: PeerSummary(trust: .stranger)),
            #"{"number":12,"at":"2031-04-05T06:07:08.009Z","type":"peer.down","peer":"\#(Self.uuid)","trust":"stranger"}"#)
        try check(
            HexJSON(
                id: 7, location: "held", senderUUID: "", senderName: "Bob", peerUUID: Self.uuid, tag: tag, description: "", color: "",
                linkCount: 0, unread: true, receivedAt: Self.moment),
            #"{"id":7,"location":"held","senderUUID":"","senderName":"Bob","peerUUID":"\#(Self.uuid)","peerName":"Robert","peerAlias":"Bob","#
                + #""trust":"blocked","description":"","color":"","linkCount":0,"unread":true,"receivedAt":"2031-04-05T06:07:08.009Z"}"#)
        try check(
            PairingView(id: 1, peer: Self.uuid, name: "Bob", alias: "Bob", trust: .blocked, isOwn: false, state: .waiting),
            #"{"id":1,"peer":"\#(Self.uuid)","name":"Bob","alias":"Bob","trust":"blocked","role":"asked","state":"waiting"}"#)
        #expect(PeerDisplayName(Self.uuid, tag).text() == "Bob (blocked)")
        #expect(PeerDisplayName(Self.uuid, nil).text() == "5E3C1234")
    }

    @Test func status() throws {
        var outbox: [OutboxState: Int] = [:]
        for state in OutboxState.allCases { outbox[state] = state == .queued ? 2 : 0 }
        try check(
            StatusJSON(
                version: "1.0.0", uuid: Self.uuid, name: "Ada", fingerprint: Self.fingerprint, pid: 1, port: 2, uptimeSeconds: 3,
                avahi: DiscoveryStatus(state: .unavailable, message: "start it"), peers: 4, ghosts: 5, unread: 6, held: 7, outbox: outbox,
                storeBytes: 8, stateFolder: "/s"),
            #"{"version":"1.0.0","uuid":"\#(Self.uuid)","name":"Ada","announce":true,"fingerprint":"\#(Self.fingerprint)","#
                + #""pid":1,"port":2,"uptimeSeconds":3,"#
                + #""avahi":{"state":"unavailable","message":"start it"},"identity":{"state":"own"},"peers":4,"ghosts":5,"unread":6,"held":7,"outbox":{"queued":2,"#
                + #""sending":0,"stored":0,"held":0,"rejected":0,"expired":0,"cancelled":0,"failed":0},"storeBytes":8,"stateFolder":"/s"}"#)
    }

    @Test func configuration() throws {
        try check(
            ConfigurationJSON(
                file: "/c", fault: "f", hint: "h",
                items: [
                    SettingJSON(key: "port", value: "1", source: .file, line: 2, variable: "HEXLIST_PORT", waiting: "3"),
                    SettingJSON(key: "name", value: "a", source: .default, variable: "HEXLIST_NAME"),
                ]),
            #"{"file":"/c","fault":"f","hint":"h","items":[{"key":"port","value":"1","source":"file","line":2,"variable":"HEXLIST_PORT","#
                + #""waiting":"3"},{"key":"name","value":"a","source":"default","variable":"HEXLIST_NAME"}]}"#)
        try check(
            HookFault(hook: "peer.up", message: "m", at: Timestamp(milliseconds: 0)),
            #"{"hook":"peer.up","message":"m","at":"1970-01-01T00:00:00.000Z"}"#)
        try check(
            PairingOverview(openUntil: Timestamp(milliseconds: 0), triesLeft: 2, items: []),
            #"{"openUntil":"1970-01-01T00:00:00.000Z","triesLeft":2,"items":[]}"#)
    }

    @Test func pagesAndErrors() throws {
        try check(Page(items: [HexSelection.ids([1, 2])]), #"{"items":[{"ids":[1,2]}],"next":null}"#)
        try check(Page(items: [HexSelection](), next: "9"), #"{"items":[],"next":"9"}"#)
        try check(ErrorJSON(code: "notFound", message: "m", hint: "h"), #"{"error":{"code":"notFound","message":"m","hint":"h"}}"#)
        try check(ErrorJSON(code: "internal", message: "m"), #"{"error":{"code":"internal","message":"m"}}"#)
        #expect(ErrorJSON(code: "ofTheFuture", message: "m").hexlistError == HexlistError(.internal, "m"))
        let error = HexlistError(.gone, "m", hint: "h")
        #expect(ErrorJSON(error).hexlistError == error)
    }

    @Test func requests() throws {
        try check(PeerChange(alias: .set(nil)), #"{"alias":null}"#)
        try check(PeerChange(alias: .set("a")), #"{"alias":"a"}"#)
        try check(PeerChange(receive: .held, notify: false), #"{"receive":"held","notify":false}"#)
        try check(PeerChange(alias: .set("a"), receive: .inbox), #"{"alias":"a","receive":"inbox"}"#)
        try check(GroupPeersRequest(peers: ["ada", "@x"]), #"{"peers":["ada","@x"]}"#)
        try check(TrustRequest(fingerprint: "AB"), #"{"fingerprint":"AB"}"#)
        try check(TrustRequest(fingerprint: "AB", name: "Bob"), #"{"fingerprint":"AB","name":"Bob"}"#)
        try check(UnreadPatch(hexes: .ids([3]), unread: false), #"{"ids":[3],"unread":false}"#)
        try check(UnreadPatch(hexes: .all, unread: false), #"{"all":true,"unread":false}"#)
        try check(UnreadPatch(hexes: .list(from: "bob"), unread: false), #"{"from":"bob","unread":false}"#)
        try check(HexSelection.ids([1], ranges: [3...40, 50...50]), #"{"ids":[1],"ranges":[[3,40],[50,50]]}"#)
        try check(HexSelection.ids([], ranges: [3...40]), #"{"ranges":[[3,40]]}"#)
        try check(HexSelection.ids([]), #"{"ids":[]}"#)
        try check(HexSelection.list(location: "held"), #"{"all":true,"location":"held"}"#)
        try check(UnreadPatch(unread: true), #"{"unread":true}"#)
    }

    @Test(
        "an unknown member is ignored; a missing required member is an error",
        arguments: [
            (#"{"changed":1,"more":{"a":[]}}"#, true), (#"{"changed":"1"}"#, false), (#"{"changed":1.5}"#, false), (#"{}"#, false),
            (#"[]"#, false),
            (#"{"changed":null}"#, false), (#"{"changed":2,"changed":1}"#, true), (#"{"changed":99999999999999999999}"#, false),
        ])
    func tolerance(json: String, isRead: Bool) {
        #expect((try? ChangeCountJSON(jsonBytes: Array(json.utf8))) == (isRead ? ChangeCountJSON(changed: 1) : nil))
    }

    @Test(
        "an unknown member of a request is the caller's error",
        arguments: [
            #"{"alias":"a","trust":1}"#, #"{"Alias":"a"}"#, #"{}"#, #"{"receive":"all"}"#, #"{"receive":null}"#, #"{"notify":"off"}"#,
        ])
    func strictness(json: String) {
        #expect(throws: JSONFault.self) { try PeerChange(jsonBytes: Array(json.utf8)) }
    }
}
