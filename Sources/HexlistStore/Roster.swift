public import HexlistModel

/// What a roster says of one peer: who it is, by its key, and what it is here. Its UUID follows from the key, so no
/// entry can give one key's name to another.
public struct RosterEntry: Sendable, Equatable {
    public var fingerprint: Fingerprint
    /// What it called itself; makes the alias of one that is trusted and has none.
    public var name: String
    public var alias: String?
    public var trust: Trust
    /// Where it was reached.
    public var places: [RosterPlace]

    public init(fingerprint: Fingerprint, name: String, alias: String? = nil, trust: Trust, places: [RosterPlace] = []) {
        self.fingerprint = fingerprint
        self.name = name
        self.alias = alias
        self.trust = trust
        self.places = places
    }

    public var peer: PeerID { fingerprint.peerID }

    /// `nil` for what belongs into no roster: who proved no key, and strangers nobody named.
    init?(_ record: PeerRecord) {
        guard let fingerprint = record.fingerprint, record.trust != .stranger || record.alias != nil else { return nil }
        // The scope of a link-local address is an interface of this machine, and says nothing on another.
        let places = record.endpoints.filter { !$0.host.utf8.contains(UInt8(ascii: "%")) }.map { RosterPlace(host: $0.host, port: $0.port) }
        var unique: [RosterPlace] = []
        for place in places where !unique.contains(place) { unique.append(place) }
        self.init(fingerprint: fingerprint, name: record.name, alias: record.alias, trust: record.trust, places: unique)
    }
}

/// A host and a port.
public struct RosterPlace: Sendable, Hashable {
    /// A numeric address without a scope, or a DNS name.
    public var host: String
    public var port: Int

    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }
}

/// What became of one entry that was imported.
public enum RosterOutcome: Sendable, Equatable {
    case changed
    /// It was so before.
    case unchanged
    /// It is this machine itself.
    case own
    /// Another key of the same UUID is known here.
    case anotherKey
    case aliasTaken(by: PeerID)
}

extension StoreReader {
    /// Every peer that is trusted, blocked or has an alias: trusted ones first, then by name.
    public func roster() throws -> [RosterEntry] { try peers().compactMap { RosterEntry($0) } }
}

extension HexStore {
    /// Takes entries of a roster over in their order, in one transaction; one that is refused does not keep the others from it. They only
    /// add: `stranger` takes no trust and no block away, an entry without an alias no alias, and the name is that of a peer that was not
    /// known. Again they change nothing.
    ///
    /// - Parameters:
    ///   - own: this machine, which is passed over.
    ///   - proven: keys that peers proved which the store need not know.
    /// - Returns: what became of each.
    public func importRoster(
        _ entries: ArraySlice<RosterEntry>, own: PeerID, proven: [PeerID: Fingerprint], at now: Int64
    ) async throws -> [RosterOutcome] {
        try await write { writer in
            var aliases: AliasBook?
            return try entries.map { entry in
                if entry.peer == own { return .own }
                if let key = proven[entry.peer], key != entry.fingerprint { return .anotherKey }
                return try writer.importPeer(entry, at: now, &aliases)
            }
        }
    }
}

extension StoreWriter {
    /// Takes what an entry says, or nothing of it.
    ///
    /// - Parameter aliases: those there are; one look serves many entries.
    func importPeer(_ entry: RosterEntry, at now: Int64, _ aliases: inout AliasBook?) throws -> RosterOutcome {
        let known = try peer(entry.peer)
        if let key = known?.fingerprint, key != entry.fingerprint { return .anotherKey }
        var book = try aliases ?? self.aliases()
        var alias = entry.alias ?? known?.alias
        if let wanted = entry.alias, PeerAlias.fault(wanted, of: entry.peer) != nil {
            // As a peer that calls itself so is called; an older version allowed more. Again, it has one.
            alias = known?.alias ?? PeerAlias.made(of: wanted, for: entry.peer) { book.isTaken($0, beside: entry.peer) }
        } else if let owner = entry.alias.flatMap({ NameKey($0) }).flatMap({ book.owner(of: $0) }), owner != entry.peer {
            aliases = book
            return .aliasTaken(by: owner)
        }
        let trust = entry.trust == .stranger ? known?.trust ?? .stranger : entry.trust
        guard trust != .stranger || alias != nil else { return .unchanged }  // nothing to remember it for

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
        return try addPlaces(entry, to: known?.endpoints ?? []) || isChanged ? .changed : .unchanged
    }

    /// Beside those the peer has, which were seen to work and are not pushed out.
    /// - Returns: whether there were new ones.
    private func addPlaces(_ entry: RosterEntry, to known: [PeerEndpoint]) throws -> Bool {
        let new = entry.places.filter { place in !known.contains { $0.host == place.host && $0.port == place.port } }
        let fitting = new.prefix(max(0, PeerRecord.endpointLimit - known.count))
        guard !fitting.isEmpty else { return false }
        try change {
            let row = try peerRow(making: entry.peer)
            for place in fitting {
                try remember(PeerEndpoint(host: place.host, port: place.port, interface: nil, via: "lastKnown", lastOKAt: 0), of: row.id)
            }
        }
        return true
    }
}
