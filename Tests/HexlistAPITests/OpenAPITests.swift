import DaemonTestSupport
import Foundation
import HexlistModel
import Testing
import Yams

@testable import HexlistAPI
@testable import HexlistDaemon
@testable import HexlistJSON

/// Compares Docs/openapi.yaml with the code: operations with the router, members with the `JSONShape` conformances, allowed strings with
/// the enumerations.
@Suite("Docs/openapi.yaml", .timeLimit(.minutes(5))) struct OpenAPITests {
    // MARK: Operations

    @Test("the page has exactly the operations of the router") func operations() async throws {
        let paths = try #require(try Self.page.get()["paths"]?.members)
        var described: Set<String> = []
        for (path, item) in paths {
            for (method, _) in try #require(item.members) where method != "parameters" {
                described.insert("\(method.uppercased()) \(path)")
            }
        }
        try await TestDaemon.with("ada") { daemons in
            let routes = LocalServer.router(daemons[0].api).routes.map { "\($0.method.rawValue) \($0.path)" }
            #expect(Set(routes) == described)
        }
    }

    // MARK: Members

    struct Value: Sendable, CustomTestStringConvertible {
        /// The path of the value's description in Docs/openapi.yaml: a name of `components/schemas`, then names of properties.
        var place: String
        var type: any (Decodable & Sendable).Type
        var testDescription: String { place }

        init(_ place: String, _ type: any (Decodable & Sendable).Type) { (self.place, self.type) = (place, type) }
    }

    private static let values = [
        Value("Status", StatusJSON.self), Value("Status.avahi", DiscoveryStatus.self), Value("Status.identity", IdentityJSON.self),
        Value("Status.domains", DomainStatus.self), Value("Status.hookFaults", HookFault.self),
        Value("Configuration", ConfigurationJSON.self), Value("Configuration.items", SettingJSON.self),
        Value("DoctorReport.steps", DoctorStep.self), Value("Peer", PeerView.self), Value("Peer.endpoints", EndpointView.self),
        Value("Hex", HexJSON.self), Value("Link", LinkJSON.self), Value("HexInside", InnerHexJSON.self),
        Value("Saved", MineSaveResult.self),
        Value("OwnMachine", OwnMachineView.self), Value("OwnMachinePreview", OwnMachinePreview.self),
        Value("CollectionSize", CollectionSize.self), Value("SharedHexes", SharedHexes.self), Value("SharedHex", SharedHexView.self),
        Value("SharedHexRenewal", SharedHexRenewal.self),
        Value("SharedHexPeer", SharedHexView.Peer.self), Value("SharedHexOffer", SharedHexOffer.self),
        Value("ShareHex", ShareHexRequest.self), Value("ShareHexMember", ShareHexRequest.Member.self),
        Value("MineChange", MineChangeJSON.self), Value("MineChangeCounts", MineChangeCounts.self),
        Value("MineChangedValue", MineChangedValue.self), Value("MineUndo", MineUndoResult.self),
        Value("MineKeptValue", MineKeptValue.self), Value("TrashedItem", TrashedItemJSON.self),
        Value("RestoredItem", RestoredItemJSON.self),
        Value("BinnedHex", BinnedHexJSON.self), Value("DeadLink", DeadLinkJSON.self), Value("CheckedLink", CheckedLinkJSON.self),
        Value("FeedRequest", FeedRequest.self), Value("FeedAddress", FeedAddressJSON.self),
        Value("MineCheckProgress", MineCheckProgress.self), Value("MineCheckResult", MineCheckResult.self),
        Value("MineEdit", MineEditRequest.self), Value("LinkEdit", LinkEdit.self),
        Value("MineNodeChange", MineNodeChange.self), Value("MineNewLink", MineNewLink.self), Value("Match", SearchMatchJSON.self),
        Value("EarlierLink", EarlierLinkJSON.self), Value("ListedLink", ListedLinkJSON.self), Value("Status.search", SearchIndexState.self),
        Value("Hex.top", OutermostHexJSON.self), Value("PeerSummary", PeerSummary.self),
        Value("OutboxRow", OutboxView.self), Value("OutboxOffer", OutboxOffer.self), Value("OutboxFiles", OutboxFiles.self),
        Value("PageAddress", PageAddress.self),
        Value("PageOverview", PageOverview.self), Value("Draft", Draft.self),
        Value("Invitation", Invitation.self), Value("Invitation.guests", InvitationGuest.self),
        Value("Invitation.hexes", InvitationHex.self), Value("Drop", DropTokenView.self),
        Value("OutboxChange", OutboxChange.self), Value("BulkRefusal", BulkRefusal.self), Value("BulkSummary", BulkSummary.self),
        Value("Pairings", PairingOverview.self), Value("Pairing", PairingView.self), Value("Event", EventJSON.self),
        Value("ImportResult", ImportResult.self), Value("ImportProgress", ImportProgress.self), Value("Group", GroupView.self),
        Value("Group.peers", GroupMember.self),
        Value("RosterPeer", RosterPeer.self), Value("OwnKeys", OwnPublicKeys.self),
        Value("Route", RouteView.self), Value("Route.waiting", RouteUnconfirmedEnvelopes.self),
        Value("Route.dropped", RouteDroppedEnvelopes.self),
        Value("RouteTest", RouteTestResult.self), Value("Status.routeProblems", RouteProblem.self),
        Value("RosterImport", RosterImportResult.self),
        Value("Transfer", TransferView.self), Value("UploadRequest", UploadRequestView.self),
        Value("TransferStart", TransferStartResult.self),
        Value("TransferSummary", TransferSummary.self),
        Value("CachedFile", CachedFile.self), Value("CachedFiles", CacheKeepReply.self), Value("CacheSummary", CacheSummary.self),
        Value("CacheCleared", CacheClearResult.self), Value("OfferProgress", OfferProgress.self), Value("Offer", OfferResult.self),
        Value("Share", ShareView.self), Value("Service", ServiceView.self), Value("FileEntry", FileEntry.self),
        Value("FilePage", FilePage.self), Value("ServiceLinksSummary", ServiceLinkCounts.self),
    ]

    @Test("each value has exactly the members described; a member is required if decoding fails without it", arguments: values)
    func members(value: Value) throws {
        let (names, required) = try Self.described(value.place)
        let (own, needed) = FieldProbe.fields(of: value.type)
        #expect(names.sorted() == own.sorted())
        // The members of a `MemberGroup` are either all present or all missing.
        let mark = (value.type as? any MemberGroup.Type)?.marker
        #expect(needed.subtracting(required).filter { $0 != mark } == [])
    }

    @Test("an outcome of a send, encoded by hand, has exactly the members described") func send() throws {
        let peer = PeerID(.nil)
        let least = SendOutcome(outboxID: 1, messageID: MessageID(.nil), peer: peer, state: .queued)
        var most = SendOutcome(
            outboxID: 1, messageID: MessageID(.nil), peer: peer, tag: PeerSummary(name: "n", alias: "a", trust: .trusted), state: .queued,
            earlier: true, waitingFor: .peer, nextAttemptAt: Timestamp(milliseconds: 0), code: "c", message: "m")
        most.files = OutboxFiles(state: .offered, count: 1, bytes: 1)
        most.via = "home"
        most.postedAt = Timestamp(milliseconds: 0)
        let (names, required) = try Self.described("Send")
        #expect(try Set(names) == Set(JSONObject(JSONValue(most)).names))
        #expect(try required == Set(JSONObject(JSONValue(least)).names))
    }

    // MARK: Words

    @Test(
        "the allowed strings of a member are those of the enumeration",
        arguments: [
            ("SendState", OutboxState.allCases.map(\.rawValue)), ("Send.waitingFor", OutboxWaitReason.allCases.map(\.rawValue)),
            ("OutboxFiles.state", OutboxFiles.State.allCases.map(\.rawValue)),
            ("OutboxRow.waitingFor", OutboxWaitReason.allCases.map(\.rawValue)), ("Route.state", RouteView.State.allCases.map(\.rawValue)),
            ("OwnMachine.state", OwnMachineView.State.allCases.map(\.rawValue)),
            ("SharedHex.access", ShareAccess.allCases.map(\.rawValue)), ("SharedHexPeer.access", ShareAccess.allCases.map(\.rawValue)),
            ("SharedHexPeer.state", SharedHexView.Peer.State.allCases.map(\.rawValue)),
            ("SharedHexOffer.access", [ShareAccess.read, .write].map(\.rawValue)),
            ("ShareHexMember.access", ShareAccess.allCases.map(\.rawValue)),
            ("Peer.state", PeerView.State.allCases.map(\.rawValue)),
            ("Peer.trust", Trust.allCases.map(\.rawValue)), ("PeerSummary.trust", Trust.allCases.map(\.rawValue) + ["guest", "drop"]),
            ("Service.kind", ServiceKind.allCases.map(\.rawValue)), ("FileEntry.kind", FileKind.allCases.map(\.rawValue)),
            ("Transfer.state", TransferStage.allCases.map(\.rawValue)), ("TransferState", TransferStage.allCases.map(\.rawValue)),
            ("CheckedLink.state", CheckedLinkJSON.State.allCases.map(\.rawValue)),
            ("CheckedLink.reason", LinkCheckReason.allCases.map(\.rawValue)),
            ("Pairing.state", PairingView.State.allCases.map(\.rawValue)), ("Pairing.reason", PairingView.Reason.allCases.map(\.rawValue)),
            ("Configuration.items.source", SettingJSON.Source.allCases.map(\.rawValue)),
            ("DoctorReport.steps.state", DoctorStep.State.allCases.map(\.rawValue)),
        ])
    func words(place: String, words: [String]) throws {
        let schema = try Self.schema(place)
        let described = try #require(schema["enum"]?.elements ?? schema["examples"]?.elements).compactMap(\.string)
        #expect(Set(described) == Set(words))
    }

    @Test("the page has exactly the error codes of the code") func codes() throws {
        let codes = try #require(try Self.schema("Error.error.code")["examples"]?.elements).compactMap(\.string)
        #expect(codes.filter { HexlistError.Code(rawValue: $0) == nil } == [])
    }

    // MARK: The page

    /// A value of the page.
    private enum PageNode: Sendable {
        case mapping([(name: String, value: PageNode)])
        case sequence([PageNode])
        case scalar(String?)

        init(_ node: Node) {
            if let mapping = node.mapping {
                self = .mapping(mapping.map { ($0.key.string ?? "", PageNode($0.value)) })
            } else if let sequence = node.sequence {
                self = .sequence(sequence.map { PageNode($0) })
            } else {
                self = .scalar(node.string)
            }
        }

        subscript(name: String) -> PageNode? { members?.first { $0.name == name }?.value }
        var members: [(name: String, value: PageNode)]? { if case .mapping(let members) = self { members } else { nil } }
        var elements: [PageNode]? { if case .sequence(let elements) = self { elements } else { nil } }
        var string: String? { if case .scalar(let string) = self { string } else { nil } }
    }

    /// The page, parsed once, because this takes a third of a second in a debug build.
    private static let page = Result<PageNode, any Error> {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let page = try compose(yaml: String(contentsOf: root.appending(path: "Docs/openapi.yaml"), encoding: .utf8))
        return PageNode(try #require(page))
    }

    /// The schema at a path such as `Status.domains`: a member of a schema, or the elements of that member if it is an array.
    private static func schema(_ place: String) throws -> PageNode {
        let schemas = try #require(try page.get()["components"]?["schemas"])
        let names = place.split(separator: ".").map(String.init)
        var node = try resolved(try #require(schemas[names[0]], "there is no schema \(names[0])"), schemas)
        for name in names.dropFirst() {
            if let items = node["items"] { node = try resolved(items, schemas) }
            node = try resolved(try #require(node["properties"]?[name], "\(place): no \(name)"), schemas)
        }
        return try node["items"].map { try resolved($0, schemas) } ?? node
    }

    private static func resolved(_ node: PageNode, _ schemas: PageNode) throws -> PageNode {
        guard let name = node["$ref"]?.string?.split(separator: "/").last else { return node }
        return try #require(schemas[String(name)])
    }

    private static func described(_ place: String) throws -> (names: [String], required: Set<String>) {
        let schemas = try #require(try page.get()["components"]?["schemas"])
        var (names, required): ([String], Set<String>) = ([], [])
        func add(_ node: PageNode) throws {
            let node = try resolved(node, schemas)
            for part in node["allOf"]?.elements ?? [] { try add(part) }
            names += node["properties"]?.members?.map(\.name) ?? []
            required.formUnion(node["required"]?.elements?.compactMap(\.string) ?? [])
        }
        try add(schema(place))
        return (names, required)
    }
}

/// A decoder without input that records the members a type asks for.
private struct FieldProbe: Decoder {
    private final class Notes {
        var names: [String] = []
        var needed: Set<String> = []
    }

    private let notes = Notes()
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// - Returns: all members, and the required ones.
    static func fields(of type: any Decodable.Type) -> (names: [String], needed: Set<String>) {
        let probe = FieldProbe()
        _ = try? type.init(from: probe)
        return (probe.notes.names, probe.notes.needed)
    }

    func container<Key: CodingKey>(keyedBy _: Key.Type) -> KeyedDecodingContainer<Key> { KeyedDecodingContainer(Members(probe: self)) }
    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw Unexpected() }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { throw Unexpected() }

    private struct Unexpected: Error {}

    /// JSON values of many kinds. Nearly every type can be decoded from one of them.
    private static let samples = [
        "\"\"", "0", "true", "[]", "{}", "null", "\"00000000-0000-0000-0000-000000000000\"", "\"\(String(repeating: "0", count: 64))\"",
        "\"0000000000000000\"", "\"1970-01-01T00:00:00.000Z\"",
    ].compactMap { try? JSONValue(parsing: $0) }

    private static func sample<Value: Decodable>(_: Value.Type) throws -> Value {
        if let type = Value.self as? any JSONWord.Type, let word = first(of: type) as? Value { return word }
        for sample in samples { if let value = try? JSONDecoding.read(Value.self, sample) { return value } }
        return try Value(from: FieldProbe())
    }

    private static func first<Word: JSONWord>(of _: Word.Type) -> Any? { Word.allCases.first }

    private struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let probe: FieldProbe
        var codingPath: [any CodingKey] { [] }
        var allKeys: [Key] { [] }

        /// Records an optional member: the type asks for its presence before it decodes the member.
        func contains(_ key: Key) -> Bool {
            probe.notes.names.append(key.stringValue)
            return false
        }

        func decodeNil(forKey key: Key) -> Bool { true }

        func decode<Value: Decodable>(_: Value.Type, forKey key: Key) throws -> Value {
            let type = Value.self as? any JSONDecodable.Type
            if type?.inlinedMarker != nil {
                let group = FieldProbe()
                defer { probe.notes.names += group.notes.names }
                return try Value(from: group)
            }
            probe.notes.names.append(key.stringValue)
            if let missing = type?.missing as? Value { return missing }
            probe.notes.needed.insert(key.stringValue)
            return try FieldProbe.sample(Value.self)
        }

        func nestedContainer<Nested: CodingKey>(keyedBy _: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<Nested> {
            throw Unexpected()
        }

        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { throw Unexpected() }
        func superDecoder() throws -> any Decoder { throw Unexpected() }
        func superDecoder(forKey key: Key) throws -> any Decoder { throw Unexpected() }
    }
}
