public import HexlistAPI
public import HexlistModel
import HexlistStore

/// Groups of peers, and peers named by them.
extension Node {
    /// All groups, by name.
    public func groups() async throws -> [GroupView] {
        try await store.read { try $0.groups() }.map(view)
    }

    /// Adds peers, as a person names them, to a group, which is made where there is none.
    /// - Parameter name: with or without `@`.
    public func addToGroup(_ name: String, _ peers: [String]) async throws -> GroupView {
        await known.reload(self)
        let sightings = try resolve(peers, comparing: false).map { peer in
            guard let id = peer.uuid, peer.fingerprint != nil else {
                throw HexlistError(
                    .badRequest, "\(peer.label.text()) has not proved its key yet.", hint: "Wait until `hexlist peers` lists it.")
            }
            return sighting(id, peer)
        }
        return try await changed { try await $0.addToGroup(GroupName.bare(name), sightings) }
    }

    /// Takes peers out of a group.
    public func removeFromGroup(_ name: String, _ peers: [String]) async throws -> GroupView {
        await known.reload(self)
        let ids = try resolve(peers, comparing: false).map { try $0.requiredID() }
        return try await changed { try await $0.removeFromGroup(GroupName.bare(name), ids) }
    }

    /// - Returns: the group as it was.
    public func deleteGroup(_ name: String) async throws -> GroupView {
        try await changed { try await $0.deleteGroup(GroupName.bare(name)) }
    }

    private func changed(_ change: (HexStore) async throws -> PeerGroup) async throws -> GroupView {
        let group = try await change(store)
        await known.reload(self)
        notifyWatchers()
        return view(of: group)
    }

    private func view(of group: PeerGroup) -> GroupView {
        GroupView(name: group.name, peers: group.peers.map { GroupMember(uuid: $0, tag: label(of: $0).map(PeerSummary.init)) })
    }

    /// The peers to send to, each once and in the order named: PEERs, and `@NAME` for the members of a group. An alias that begins with `@`
    /// names its peer as long as no group has that name; what a stranger calls itself never does.
    ///
    /// - Throws: `HexlistError`: `notFound`; `ambiguous`; `badRequest` for a group that has no members, or a blocked one.
    public func recipients(named names: [String]) async throws -> [PeerID] {
        let groups = names.contains(where: GroupName.isMarked) ? try await store.read { try $0.groups() } : []
        var plain: IndexingIterator<[PeerView]>
        do {
            plain = try resolve(names.filter { !GroupName.isMarked($0) }, comparing: false).makeIterator()
        } catch var error as HexlistError where error.code == .notFound && names.count == 1 {
            if let group = try await store.read({ try $0.groups() }).named(names[0]) {
                error.hint = "Did you mean the group \(GroupName.marked(group.name))?"
            }
            throw error
        }
        var (peers, seen): ([PeerID], Set<PeerID>) = ([], [])
        for name in names {
            let found = GroupName.isMarked(name) ? try members(name, groups) : plain.next()?.uuid.map { [$0] } ?? []
            peers += found.filter { seen.insert($0).inserted }
        }
        return peers
    }

    private func members(_ marked: String, _ groups: [PeerGroup]) throws(HexlistError) -> [PeerID] {
        let name = GroupName.bare(marked)
        let group = groups.named(name)
        let aliasKey = NameKey(marked)
        let owner = known.all.first { record in record.alias.map { aliasKey?.isKey(of: $0) ?? false } ?? false }
        guard let group else {
            if let owner { return [owner.peer] }
            throw HexlistError.noGroup(name, among: groups.map(\.name))
        }
        let shown = GroupName.marked(group.name)
        if let owner {
            throw HexlistError(
                .ambiguous, "\(shown) is a group, and the alias of peer \(owner.peer).",
                hint: "Name the peer by its UUID, or give it another alias with `hexlist peer rename \(owner.peer.shortID) ALIAS`.")
        }
        let members = group.peers.filter { $0 != id }
        guard !members.isEmpty else {
            throw HexlistError(
                .badRequest, "\(shown) has no peers.", hint: "`hexlist group add` adds one.")
        }
        if let blocked = members.first(where: { known[$0]?.trust == .blocked }) {
            throw HexlistError(
                .badRequest, "\(label(of: blocked)?.text(.named) ?? "\(blocked)"), of \(shown), is blocked here.",
                hint: "`hexlist group remove` takes it out, `hexlist peer unblock \(blocked.shortID)` unblocks it.")
        }
        return members
    }
}

extension [PeerGroup] {
    /// The group of a name, without its mark.
    fileprivate func named(_ name: String) -> PeerGroup? {
        guard let key = NameKey(name) else { return nil }
        return first { key.isKey(of: $0.name) }
    }
}
