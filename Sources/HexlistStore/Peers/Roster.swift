public import HexlistModel

/// One peer of a roster: its key, name, trust and addresses on this machine. Its UUID is derived from the key, so an entry cannot give a
/// key the identity of another.
public struct RosterEntry: Sendable, Equatable {
    public var fingerprint: Fingerprint
    /// The peer's own name. A trusted peer without an alias gets one from it.
    public var name: String
    public var alias: String?
    public var trust: Trust
    /// The addresses at which the peer was reached.
    public var places: [RosterAddress]
    /// The names of its groups, all valid (`GroupName.fault`).
    public var groups: [String]

    /// Maximum number of groups of one entry.
    public static let groupLimit = 100

    public init(
        fingerprint: Fingerprint, name: String, alias: String? = nil, trust: Trust, places: [RosterAddress] = [], groups: [String] = []
    ) {
        self.fingerprint = fingerprint
        self.name = name
        self.alias = alias
        self.trust = trust
        self.places = places
        self.groups = groups
    }

    public var peer: PeerID { fingerprint.peerID }

    /// `nil` for peers that are not exported: those without a proven key, and strangers without an alias and a group.
    init?(_ record: PeerRecord) {
        guard let fingerprint = record.fingerprint, record.trust != .stranger || record.alias != nil || !record.groups.isEmpty
        else { return nil }
        // The scope of a link-local address is an interface of this machine, meaningless on another one.
        let places = record.endpoints.filter { !$0.host.utf8.contains(UInt8(ascii: "%")) }.map {
            RosterAddress(host: $0.host, port: $0.port)
        }
        var unique: [RosterAddress] = []
        for address in places where !unique.contains(address) { unique.append(address) }
        self.init(
            fingerprint: fingerprint, name: record.name, alias: record.alias, trust: record.trust, places: unique,
            groups: Array(record.groups.prefix(Self.groupLimit)))
    }
}

/// A host and a port.
public struct RosterAddress: Sendable, Hashable {
    /// A numeric address without a scope, or a DNS name.
    public var host: String
    public var port: Int

    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }
}

/// The result for one imported entry.
public enum RosterOutcome: Sendable, Equatable {
    case changed
    /// The store had the same information before.
    case unchanged
    /// The entry is this machine itself.
    case own
    /// The store has another key for the same UUID.
    case anotherKey
    case aliasTaken(by: PeerID)
    /// The import would exceed the maximum number of groups, or of members of one.
    case tooManyGroups
}

extension StoreReader {
    /// All peers that are trusted, blocked, in a group or have an alias: trusted ones first, then by name.
    public func roster() throws -> [RosterEntry] { try peers().compactMap { RosterEntry($0) } }
}

extension HexStore {
    /// Imports entries of a roster in order, each completely or not at all, in one transaction. Only adds information: `stranger` removes
    /// neither trust nor a block, an entry without an alias removes none, and the name is used only for an unknown peer. Idempotent.
    ///
    /// - Parameters:
    ///   - own: this machine, which is skipped.
    ///   - proven: keys that peers have proved, which the store may not have.
    /// - Returns: the result of each entry.
    public func importRoster(
        _ entries: ArraySlice<RosterEntry>, own: PeerID, proven: [PeerID: Fingerprint], at now: Int64
    ) async throws -> [RosterOutcome] {
        try await write { writer in
            var (aliases, groups) = (AliasBook?.none, try GroupBook(writer))
            return try entries.map { entry in
                if entry.peer == own { return .own }
                if let key = proven[entry.peer], key != entry.fingerprint { return .anotherKey }
                return try writer.importPeer(entry, at: now, &aliases, &groups)
            }
        }
    }
}

extension StoreWriter {
    /// Imports an entry completely or not at all.
    ///
    /// - Parameters:
    ///   - aliases: the existing aliases; `nil` until they are needed.
    ///   - groupBook: the existing groups.
    func importPeer(
        _ entry: RosterEntry, at now: Int64, _ aliases: inout AliasBook?, _ groupBook: inout GroupBook
    ) throws -> RosterOutcome {
        let known = try peer(entry.peer)
        if let key = known?.fingerprint, key != entry.fingerprint { return .anotherKey }
        var book = try aliases ?? self.aliases()
        var alias = entry.alias ?? known?.alias
        if let wanted = entry.alias, PeerAlias.fault(wanted, of: entry.peer) != nil {
            // An older version allowed more aliases. An invalid one is treated like the peer's own name. On a repeated import the peer
            // already has an alias.
            alias = known?.alias ?? PeerAlias.made(of: wanted, for: entry.peer) { book.isTaken($0, beside: entry.peer) }
        } else if let owner = entry.alias.flatMap({ NameKey($0) }).flatMap({ book.owner(of: $0) }), owner != entry.peer {
            aliases = book
            return .aliasTaken(by: owner)
        }
        let trust = entry.trust == .stranger ? known?.trust ?? .stranger : entry.trust
        guard trust != .stranger || alias != nil || !entry.groups.isEmpty else { return .unchanged }  // no reason to record the peer
        var keys = Set(known?.groups.compactMap { NameKey($0) } ?? [])
        let groups = entry.groups.compactMap { name in NameKey(name).flatMap { keys.insert($0).inserted ? (key: $0, name: name) : nil } }
        guard groupBook.haveCapacity(for: groups.map(\.key)) else {
            aliases = book
            return .tooManyGroups
        }

        var isChanged = false
        if let alias, !(known?.alias.map { $0.utf8.elementsEqual(alias.utf8) } ?? false) {
            try change { try setAlias(alias, of: peerRow(making: entry.peer, fingerprint: entry.fingerprint, name: entry.name).id) }
            book.set(alias, of: entry.peer, before: known?.alias)
            isChanged = true
        }
        aliases = book
        if known?.fingerprint == nil || known?.trust != trust {
            _ = try setTrust(entry.peer, trust, fingerprint: entry.fingerprint, name: entry.name, at: now, &aliases)
            isChanged = true
        }
        if !groups.isEmpty {
            try change {
                let row = try peerRow(making: entry.peer, fingerprint: entry.fingerprint, name: entry.name).id
                for group in groups { try groupBook.add(row, to: group.key, group.name, on: self) }
                changed(.peers)
            }
            isChanged = true
        }
        return try addPlaces(entry, to: known?.endpoints ?? []) || isChanged ? .changed : .unchanged
    }

    /// Adds addresses to the peer's endpoints. Existing ones are never displaced, because a session proved them.
    /// - Returns: whether there were new ones.
    private func addPlaces(_ entry: RosterEntry, to known: [PeerEndpoint]) throws -> Bool {
        let new = entry.places.filter { address in !known.contains { $0.host == address.host && $0.port == address.port } }
        let fitting = new.prefix(max(0, PeerRecord.endpointLimit - known.count))
        guard !fitting.isEmpty else { return false }
        try change {
            let row = try peerRow(making: entry.peer)
            for address in fitting {
                try remember(
                    PeerEndpoint(host: address.host, port: address.port, interface: nil, via: "lastKnown", lastOKAt: 0), of: row.id)
            }
        }
        return true
    }
}
