public import HexlistJSON
import HexlistModel

/// The answer to `GET /lists`: the lists that the requesting peer may see, with the state of each (Docs/Protocol.md, "Lists").
public struct ListOverview: Equatable, Sendable {
    /// The clock of the answering machine, in milliseconds since 1970.
    public var now: Int64
    /// Whether the requester is an own machine of the answering side.
    public var isOwnMachine: Bool
    /// At most `ListLimits.overviewLists`.
    public var lists: [Entry] = []
    /// The number of received entries that are malformed or unknown, and were left out.
    public var skipped = 0

    public init(now: Int64, isOwnMachine: Bool) {
        self.now = now
        self.isOwnMachine = isOwnMachine
    }

    /// The relation of the answering side to a list.
    public enum Role: String, CaseIterable, Sendable {
        /// The collection of the user of both machines.
        case own
        /// A list that the answering side shares with the requester.
        case shared
        /// A list of another person that the user of both machines has joined.
        case joined
    }

    public enum Access: String, CaseIterable, Sendable {
        case read, write
        /// Of the role `shared`: the answering side does not share the list with the requester any more. Of `joined`: its user has deleted
        /// the list.
        case ended = "none"
    }

    public struct Entry: Equatable, Sendable {
        public var list: ListNode.ID
        public var role: Role
        public var access: Access
        /// The hybrid time at which the owner set the access, so that an older answer of another machine of the owner is recognized; 0 for own
        /// machines and for lists of which the requester is the owner.
        public var accessAt: Int64
        /// For display. At most `ListLimits.overviewTitleBytes`.
        public var title: UTF8Text
        /// The numbers of shown hexes and links.
        public var hexes: Int64
        public var links: Int64
        public var replica: ReplicaNumber
        /// The greatest number of a row.
        public var sequence: Int64
        public var digest: ListDigest
        /// Changes when the machines of a user drop the rows of a list to fetch them again. They exchange its rows only while their epochs
        /// are equal. At most `ListLimits.epochBytes` of printable ASCII, empty in answers to other persons.
        public var epoch: UTF8Text

        public init(
            list: ListNode.ID, role: Role, access: Access = .write, accessAt: Int64 = 0, title: UTF8Text = .empty, hexes: Int64 = 0,
            links: Int64 = 0, replica: ReplicaNumber, sequence: Int64, digest: ListDigest, epoch: UTF8Text = .empty
        ) {
            self.list = list
            self.role = role
            self.access = access
            self.accessAt = accessAt
            self.title = title
            self.hexes = hexes
            self.links = links
            self.replica = replica
            self.sequence = sequence
            self.digest = digest
            self.epoch = epoch
        }
    }

    /// The milliseconds by which the clock of the answering machine is ahead, or behind if negative; `nil` if it is within
    /// `ListLimits.clockAhead`.
    /// - Parameter clock: this machine's clock, in milliseconds since 1970.
    public func clockDifference(at clock: Int64) -> Int64? {
        let ahead = now.addingClamped(-max(clock, 0))
        return -ListLimits.clockAhead...ListLimits.clockAhead ~= ahead ? nil : ahead
    }

    /// The JSON, less than `ListLimits.overviewBytes`. Titles and epochs are cut, and lists beyond the limit are left out.
    public var json: [UInt8] {
        var json = JSONWriter(wireCapacity: 512)
        json.object { json in
            json.member("now", now)
            json.member("machine", isOwnMachine ? "own" : "peer")
            json.named("lists") { json in
                json.array(lists.prefix(ListLimits.overviewLists)) { json, entry in
                    json.object { json in
                        json.named("list") { $0.uuid(entry.list.uuid) }
                        json.member("role", entry.role.rawValue)
                        json.member("access", entry.access.rawValue)
                        if entry.accessAt != 0 { json.member("accessAt", entry.accessAt) }
                        json.member("title", PeerName.cut(entry.title.description, bytes: ListLimits.overviewTitleBytes))
                        json.member("hexes", entry.hexes)
                        json.member("links", entry.links)
                        json.member("replica", entry.replica.description)
                        json.member("seq", entry.sequence)
                        json.member("digest", entry.digest.description)
                        let epoch = entry.epoch.bytes.filter(Self.isPrintable).prefix(ListLimits.epochBytes)
                        if !epoch.isEmpty { json.member("epoch", String(decoding: epoch, as: UTF8.self)) }
                    }
                }
            }
        }
        return json.bytes
    }

    /// Whether a byte is printable ASCII. An epoch has no other bytes, because they would need up to 6 bytes each in JSON.
    fileprivate static func isPrintable(_ byte: UInt8) -> Bool { 0x20...0x7E ~= byte }

    /// Decodes an overview. Unknown members are ignored. Entries that are malformed, or have an unknown role or access, are left out and
    /// counted in `skipped`.
    /// - Parameter bytes: the JSON, at most `ListLimits.overviewBytes`.
    /// - Throws: `JSONFault` if the overview itself is malformed or has too many lists.
    public init(decoding bytes: [UInt8]) throws(JSONFault) {
        guard bytes.count <= ListLimits.overviewBytes else { throw JSONFault("the overview is too long") }
        let overview = try JSONObject(JSONValue(parsing: bytes))
        let now: Int64 = try overview.value("now")
        guard now >= 0 else { throw JSONFault("`now`: a time since 1970 is expected") }
        guard let entries = overview["lists"]?.elements(atMost: ListLimits.overviewLists) else {
            throw JSONFault("`lists`: an array of at most \(ListLimits.overviewLists) elements is expected")
        }
        self.init(now: now, isOwnMachine: overview["machine"]?.string.map { $0.utf8.elementsEqual("own".utf8) } ?? false)
        for json in entries { if let entry = Entry(json) { lists.append(entry) } else { skipped += 1 } }
    }
}

extension ListOverview.Entry {
    /// Returns `nil` if a member is missing, malformed or unknown. `title`, `hexes`, `links`, `epoch` and `accessAt` may be missing.
    fileprivate init?(_ json: JSONValue) {
        guard let members = try? JSONObject(json) else { return nil }
        func word<Value: RawRepresentable & CaseIterable>(_ name: String) -> Value? where Value.RawValue == String {
            guard let text = members[name]?.string else { return nil }
            return Value.allCases.first { $0.rawValue.utf8.elementsEqual(text.utf8) }
        }
        func count(_ name: String) -> Int64? {
            guard let json = members[name], !json.isNull else { return 0 }
            return json.integer.flatMap { $0 >= 0 ? $0 : nil }
        }
        guard let list = members["list"]?.string.flatMap({ UUIDBytes($0) }).flatMap({ ListNode.ID($0) }), list.kind == .hex,
            let role: ListOverview.Role = word("role"), let access: ListOverview.Access = word("access"),
            let replica = members["replica"]?.string.flatMap({ ReplicaNumber($0) }),
            let digest = members["digest"]?.string.flatMap({ ReplicaNumber($0) }),
            let sequence = members["seq"]?.integer, sequence >= 0,
            let hexes = count("hexes"), let links = count("links"), let accessAt = count("accessAt")
        else { return nil }
        var title = UTF8Text.empty
        if let json = members["title"], !json.isNull {
            guard let text = json.string, text.utf8.count <= ListLimits.overviewTitleBytes else { return nil }
            title = UTF8Text(text)
        }
        var epoch = UTF8Text.empty
        if let json = members["epoch"], !json.isNull {
            guard let text = json.string, text.utf8.count <= ListLimits.epochBytes,
                text.utf8.allSatisfy(ListOverview.isPrintable)
            else { return nil }
            epoch = UTF8Text(text)
        }
        self.init(
            list: list, role: role, access: access, accessAt: accessAt, title: title, hexes: hexes, links: links, replica: replica,
            sequence: sequence, digest: ListDigest(digest.value), epoch: epoch)
    }
}
