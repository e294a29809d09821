public import HexlistAPI
public import HexlistModel
import HexlistStore

/// Lists and changes the groups of peers of a node.
public struct Groups: Sendable {
    let node: Node

    /// All groups, sorted by name.
    public func all() async throws -> [GroupView] {
        try await node.perform { node in
            try await node.store.read { try $0.groups() }.map { Self.view(of: $0, node) }
        }
    }

    /// Adds peers to a group, which is created if necessary.
    /// - Parameters:
    ///   - peers: peers as a user names them.
    ///   - name: the name of the group, with or without `@`.
    public func add(_ peers: [String], to name: String) async throws -> GroupView {
        try await node.perform { node in
            await node.registry.reload(node)
            let contacts = try node.peerList.resolve(peers, comparing: false).map { peer in
                guard let id = peer.uuid, peer.fingerprint != nil else {
                    throw HexlistError(
                        .badRequest, "\(peer.label.text()) is not connected yet.", hint: "Wait until `hexlist peers` lists it.")
                }
                return node.peerList.contact(id, peer)
            }
            return try await Self.changed(node.store.addToGroup(GroupName.bare(name), contacts), node)
        }
    }

    public func remove(_ peers: [String], from name: String) async throws -> GroupView {
        try await node.perform { node in
            await node.registry.reload(node)
            let ids = try node.peerList.resolve(peers, comparing: false).map { try $0.requiredID() }
            return try await Self.changed(node.store.removeFromGroup(GroupName.bare(name), ids), node)
        }
    }

    /// Deletes a group. Its peers are not changed.
    /// - Returns: the deleted group.
    public func delete(_ name: String) async throws -> GroupView {
        try await node.perform { node in try await Self.changed(node.store.deleteGroup(GroupName.bare(name)), node) }
    }

    /// The peers to send to, without duplicates, in the order of `names`. A name is that of a peer, or `@NAME` for the members of a group,
    /// or for the peer with that alias if there is no such group.
    /// - Throws: `HexlistError`: `notFound`; `ambiguous`; `badRequest` for a group that is empty or has a blocked member.
    public func recipients(named names: [String]) async throws -> [PeerID] {
        try await node.perform { node in
            let groups = names.contains(where: GroupName.isMarked) ? try await node.store.read { try $0.groups() } : []
            var plain: IndexingIterator<[PeerView]>
            do {
                plain = try node.peerList.resolve(names.filter { !GroupName.isMarked($0) }, comparing: false).makeIterator()
            } catch var error as HexlistError where error.code == .notFound && names.count == 1 {
                if let group = try await node.store.read({ try $0.groups() }).named(names[0]) {
                    error.hint = "Did you mean the group \(GroupName.marked(group.name))?"
                }
                throw error
            }
            var (peers, seen): ([PeerID], Set<PeerID>) = ([], [])
            for name in names {
                let found =
                    GroupName.isMarked(name)
                    ? try node.peerList.members(name, of: groups) : plain.next()?.uuid.map { [$0] } ?? []
                peers += found.filter { seen.insert($0).inserted }
            }
            return peers
        }
    }

    private static func changed(_ group: PeerGroup, _ node: isolated Node) async -> GroupView {
        await node.registry.reload(node)
        node.notifyWatchers()
        return view(of: group, node)
    }

    private static func view(of group: PeerGroup, _ node: isolated Node) -> GroupView {
        GroupView(
            name: group.name, peers: group.peers.map { GroupMember(uuid: $0, tag: node.peerList.label(of: $0).map(PeerSummary.init)) })
    }
}

extension Node {
    public nonisolated var groups: Groups { Groups(node: self) }
}
