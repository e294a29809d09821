public import HexlistModel

/// One peer of a roster, the trust list that users export and import: key, name, alias, trust, groups, addresses and card. The peer's UUID
/// is derived from the key, so an entry cannot combine a key with the identity of another peer.
public struct RosterEntry: Sendable, Equatable {
    public var kind: PeerKind
    public var fingerprint: Fingerprint
    /// The name that the peer gives itself. On import, a trusted peer without an alias gets one made from this name.
    public var name: String
    public var alias: String?
    public var trust: Trust
    /// The addresses at which the peer was reached, without duplicates.
    public var addresses: [RosterAddress]
    /// The names of the peer's groups. All must be valid (`GroupName.fault`).
    public var groups: [String]
    /// The card, imported only for a trusted peer.
    public var card: PeerCard?

    /// Maximum number of groups of one entry.
    public static let groupLimit = 100

    public init(
        kind: PeerKind = .hexlist, fingerprint: Fingerprint, name: String, alias: String? = nil, trust: Trust,
        addresses: [RosterAddress] = [],
        groups: [String] = [], card: PeerCard? = nil
    ) {
        self.kind = kind
        self.fingerprint = fingerprint
        self.name = name
        self.alias = alias
        self.trust = trust
        self.addresses = addresses
        self.groups = groups
        self.card = card
    }

    public var peer: PeerID { fingerprint.peerID }

    /// Creates the entry of a recorded peer. Returns `nil` for peers that are not exported: peers without a proven key, and strangers that
    /// have neither an alias nor a group.
    init?(_ record: PeerRecord) {
        guard let fingerprint = record.fingerprint, record.trust != .stranger || record.alias != nil || !record.groups.isEmpty
        else { return nil }
        // Skips link-local addresses with a scope, because the scope names a network interface of this machine.
        let addresses = record.endpoints.filter { !$0.host.utf8.contains(UInt8(ascii: "%")) }.map {
            RosterAddress(host: $0.host, port: $0.port)
        }
        var unique: [RosterAddress] = []
        for address in addresses where !unique.contains(address) { unique.append(address) }
        self.init(
            kind: record.kind, fingerprint: fingerprint, name: record.name, alias: record.alias, trust: record.trust, addresses: unique,
            groups: Array(record.groups.prefix(Self.groupLimit)), card: record.card)
    }
}

/// The address of a peer in a roster: a host and a port.
public struct RosterAddress: Sendable, Hashable {
    /// A numeric address without a scope, or a DNS name.
    public var host: String
    public var port: Int

    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }
}

/// The result of importing one entry.
public enum RosterOutcome: Sendable, Equatable {
    case changed
    /// Nothing changed, because the store already had the information of the entry.
    case unchanged
    /// The entry is for this machine itself and was skipped.
    case own
    /// The entry was not imported, because another key, or a peer of another kind, is known for the same UUID.
    case anotherKey
    case aliasTaken(by: PeerID)
    /// The entry was not imported, because it would exceed the maximum number of groups, or of members of a group.
    case tooManyGroups
}

extension StoreReader {
    /// Returns all peers with a known key that are trusted or blocked, or have an alias or a group; trusted ones first, then ordered by
    /// alias or name.
    public func roster() throws -> [RosterEntry] { try peers().compactMap { RosterEntry($0) } }
}

extension HexStore {
    /// Imports entries of a roster in order, in one transaction. Each entry is imported completely or not at all. An import only adds
    /// information: an entry with the trust `stranger` changes neither a trusted nor a blocked peer, an entry without an alias does not
    /// remove an alias, and the name is used only for a peer without a record. Importing the same entries again changes nothing.
    ///
    /// - Parameters:
    ///   - own: this machine. Its entry is skipped.
    ///   - proven: keys that peers have proved in sessions and that the store may not have yet.
    /// - Returns: the result of each entry.
    public func importRoster(
        _ entries: ArraySlice<RosterEntry>, own: PeerID, proven: [PeerID: Fingerprint], at now: Int64
    ) async throws -> [RosterOutcome] {
        try await write { writer in
            var (aliases, groups) = (AliasOwners?.none, try GroupSizes(writer))
            return try entries.map { entry in
                if entry.peer == own { return .own }
                if let key = proven[entry.peer], key != entry.fingerprint { return .anotherKey }
                return try writer.importPeer(entry, at: now, &aliases, &groups)
            }
        }
    }
}

extension StoreWriter {
    /// Imports one entry, completely or not at all.
    ///
    /// - Parameters:
    ///   - aliases: all aliases, shared by the entries of an import; `nil` until the first entry that needs them, which reads them.
    ///   - groupBook: all groups. Shared by the entries of an import.
    func importPeer(
        _ entry: RosterEntry, at now: Int64, _ aliases: inout AliasOwners?, _ groupBook: inout GroupSizes
    ) throws -> RosterOutcome {
        let known = try peer(entry.peer)
        if let key = known?.fingerprint, key != entry.fingerprint { return .anotherKey }
        if let known, known.kind != entry.kind { return .anotherKey }
        var book = try aliases ?? self.aliases()
        var alias = entry.alias ?? known?.alias
        if let wanted = entry.alias, PeerAlias.fault(wanted, of: entry.peer) != nil {
            // The alias is invalid; an older version may have allowed it. A valid alias is made from it, as from a peer's name. On a
            // repeated import the peer keeps the alias that it got the first time.
            alias = known?.alias ?? PeerAlias.made(of: wanted, for: entry.peer) { book.isTaken($0, beside: entry.peer) }
        } else if let owner = entry.alias.flatMap({ NormalizedName($0) }).flatMap({ book.owner(of: $0) }), owner != entry.peer {
            aliases = book
            return .aliasTaken(by: owner)
        }
        let trust = entry.trust == .stranger ? known?.trust ?? .stranger : entry.trust
        guard trust != .stranger || alias != nil || !entry.groups.isEmpty else { return .unchanged }  // nothing to record
        var keys = Set(known?.groups.compactMap { NormalizedName($0) } ?? [])
        let groups = entry.groups.compactMap { name in
            NormalizedName(name).flatMap { keys.insert($0).inserted ? (key: $0, name: name) : nil }
        }
        guard groupBook.haveCapacity(for: groups.map(\.key)) else {
            aliases = book
            return .tooManyGroups
        }

        var isChanged = false
        if let alias, !(known?.alias.map { $0.utf8.elementsEqual(alias.utf8) } ?? false) {
            try change { try setAlias(alias, of: row(making: entry).id) }
            book.set(alias, of: entry.peer, before: known?.alias)
            isChanged = true
        }
        aliases = book
        if known?.fingerprint == nil || known?.trust != trust {
            try change { _ = try row(making: entry) }
            _ = try setTrust(entry.peer, trust, fingerprint: entry.fingerprint, name: entry.name, at: now, &aliases)
            isChanged = true
        }
        if !groups.isEmpty {
            try change {
                let row = try row(making: entry).id
                for group in groups { try groupBook.add(row, to: group.key, group.name, on: self) }
                changed(.peers)
            }
            isChanged = true
        }
        if let card = entry.card, trust == .trusted, try setCard(card, of: entry.fingerprint) { isChanged = true }
        return try addPlaces(entry, to: known?.endpoints ?? []) || isChanged ? .changed : .unchanged
    }

    /// Returns the row of the peer, which is inserted if there is none. Call inside `change`.
    private func row(making entry: RosterEntry) throws -> PeerWriteColumns {
        try peerRow(making: entry.peer, kind: entry.kind, fingerprint: entry.fingerprint, name: entry.name)
    }

    /// Adds the addresses of an entry to the peer's endpoints, up to `PeerRecord.endpointLimit`. Never replaces existing endpoints, because
    /// a session may have proved them.
    /// - Returns: whether an address was added.
    private func addPlaces(_ entry: RosterEntry, to known: [PeerEndpoint]) throws -> Bool {
        let new = entry.addresses.filter { address in !known.contains { $0.host == address.host && $0.port == address.port } }
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
