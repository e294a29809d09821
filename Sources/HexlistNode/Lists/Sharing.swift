public import HexlistAPI
import HexlistJSON
import HexlistLists
public import HexlistModel
public import HexlistStore

/// The shared hexes of My Hexlist: lists, shares and joins them.
public struct Sharing: Sendable {
    let node: Node

    /// The shared hexes, in the order of their sharing, and the offers, oldest first.
    public func all() async throws -> SharedHexes {
        let (shared, offers) = try await node.store.read { (try $0.sharedHexes(), try $0.listOffers()) }
        return await node.perform { node in SharedHexes(shared: shared.map(node.view), offers: offers.map(node.view)) }
    }

    /// Returns the shared hex that is, or contains, a hex.
    /// - Throws: `HexlistError` `notFound` if there is no such hex; `badRequest` if it is not shared.
    public func hex(_ id: Int64) async throws -> SharedHexView {
        guard let shared = try await node.store.read({ try $0.sharedHex(id) }) else {
            guard try await node.store.read({ try $0.hex(id) }) != nil else {
                throw HexlistError(.notFound, "There is no hex \(id).", hint: "`hexlist mine --tree` lists your hexes.")
            }
            throw HexlistError.notShared(id)
        }
        return await node.perform { $0.view(of: shared) }
    }

    /// Shares a hex with trusted peers, or changes their access.
    /// - Throws: the errors of `HexStore.shareMine`; `HexlistError` `badRequest` if a peer that gets access is not trusted or an own machine;
    ///   `notSupported` if its Hexlist is too old.
    public func share(_ hex: Int64, with access: [PeerID: ShareAccess]) async throws -> SharedHexView {
        try await node.perform { node in
            for (peer, access) in access.sorted(by: { $0.key < $1.key }) where access != .none { try node.checkCanShare(hex, with: peer) }
        }
        let shared = try await node.store.shareMine(hex, with: access.mapValues(ListOverview.Access.init), at: node.clocks.milliseconds)
        node.logger.notice("hex shared", metadata: ["hex": "\(hex)", "members": "\(shared.peers.count)"])
        return await node.perform { $0.view(of: shared) }
    }

    /// Replaces the list of a shared hex by a copy without its deleted hexes and links. The members have to join it again.
    /// - Throws: the errors of `HexStore.renewShared`.
    public func renew(_ hex: Int64) async throws -> SharedHexRenewal {
        let renewal = try await node.store.renewShared(hex, at: node.clocks.milliseconds)
        node.logger.notice("shared hex renewed", metadata: ["hex": "\(hex)", "removed": "\(renewal.removed)"])
        return await node.perform { SharedHexRenewal(shared: $0.view(of: renewal.shared), removed: renewal.removed) }
    }

    /// Marks the links of a shared hex as seen.
    /// - Parameter sequence: `HexSharingJSON.sequence` when the hex was shown; `nil` for all links.
    /// - Returns: the number of links that were new.
    /// - Throws: the errors of `HexStore.markSeen`.
    public func markSeen(_ hex: Int64, through sequence: Int64?) async throws -> Int {
        let count = try await node.store.markSeen(hex, through: sequence, at: node.clocks.milliseconds)
        node.notifyWatchers()
        return count
    }

    /// Adds an offered hex to My Hexlist. Its contents arrive as soon as the peer is online.
    /// - Parameter number: `SharedHexOffer.number`.
    /// - Throws: `HexlistError` `notFound` if there is no such offer.
    public func join(_ number: Int64) async throws -> SharedHexView {
        let shared = try await node.store.joinOffer(number, at: node.clocks.milliseconds)
        return await node.perform { $0.view(of: shared) }
    }

    /// Declines an offer. It stays among the offers as `declined`, is not reported again, and can still be joined.
    /// - Parameter number: `SharedHexOffer.number`.
    /// - Throws: `HexlistError` `notFound` if there is no such offer.
    public func decline(_ number: Int64) async throws -> SharedHexOffer {
        let offer = try await node.store.declineOffer(number)
        node.notifyWatchers()
        return await node.perform { $0.view(of: offer) }
    }

    /// Maximum members of a shared hex, former ones included.
    public static let maximumMembers = ListLimits.members
}

extension ListOverview.Access {
    fileprivate init(_ access: ShareAccess) {
        switch access {
        case .read: self = .read
        case .write: self = .write
        case .none: self = .ended
        }
    }
}

extension HexSharingJSON {
    /// - Parameter labels: the display names of owners.
    public init(_ sharing: HexSharing, _ labels: [PeerID: PeerDisplayName]) {
        self.init(
            list: "\(sharing.list.uuid)", owned: sharing.isOwned, access: ShareAccess(sharing.access), members: sharing.members,
            owner: sharing.owner, tag: sharing.owner.flatMap { labels[$0] }.map { PeerSummary($0) }, new: sharing.new)
    }
}

extension ShareAccess {
    fileprivate init(_ access: ListOverview.Access) {
        switch access {
        case .read: self = .read
        case .write: self = .write
        case .ended: self = .none
        }
    }
}

extension Node {
    public nonisolated var sharing: Sharing { Sharing(node: self) }

    fileprivate func checkCanShare(_ hex: Int64, with peer: PeerID) throws {
        let view = try trusted(peer, for: "a hex cannot be shared with it")
        guard !view.own else {
            throw HexlistError(.badRequest, "\(view.label.text(.named)) is one of your own machines, and has all of My Hexlist already.")
        }
        guard listSupport(of: peer) != .missing else {
            throw HexlistError(
                .notSupported, ListExchangeText.sharingUnsupported(view),
                hint: "To send a copy: `hexlist send --hex \(hex) --to \(peer.shortID)`.")
        }
    }

    fileprivate func view(of shared: SharedHex) -> SharedHexView {
        SharedHexView(
            list: "\(shared.list.uuid)", hex: shared.hex, title: shared.subject, owned: shared.isOwned, access: ShareAccess(shared.access),
            hexes: shared.hexes, links: shared.links, peers: shared.peers.map { view(of: $0, in: shared) },
            needsRenewal: shared.needsRenewal, new: shared.new)
    }

    private func view(of member: SharedHex.Member, in shared: SharedHex) -> SharedHexView.Peer {
        let peer = peerList.view(of: member.peer, comparing: false)
        let support = listSupport(of: member.peer)
        let state: SharedHexView.Peer.State =
            switch shared.isOwned ? member.state : .joined {
            case .offered: .offered
            case .joined: .joined
            case .left: .left
            }
        let isIndirect = peer?.trust != .trusted && lists.hasOwnMachines
        return SharedHexView.Peer(
            uuid: member.peer, tag: peer.map { PeerSummary($0.label) }, access: ShareAccess(member.access), state: state,
            online: support == .present, indirect: isIndirect, receivedAt: member.receivedAt.map { Timestamp(milliseconds: $0) },
            behind: member.behind, message: isIndirect ? nil : exchangeMessage(member.peer, peer, of: shared))
    }

    /// Returns the reason for which nothing is exchanged with a member, or with a machine of an owner; `nil` if there is none.
    private func exchangeMessage(_ id: PeerID, _ peer: PeerView?, of shared: SharedHex) -> String? {
        let name = peer?.label.text(.named) ?? id.shortID
        guard let peer, peer.trust == .trusted else {
            return "\(name) is not trusted on this machine. To exchange changes with it: `hexlist pair \(id.shortID)`."
        }
        switch listSupport(of: id) {
        case .missing: return ListExchangeText.sharingUnsupported(peer)
        case .present where isTrusted(by: id) == false, .unknown where peer.state == .verified:
            return "There is no exchange with \(name). It may not trust this machine any more: `hexlist pair \(id.shortID)`."
        case .present, .unknown: break
        }
        return switch lists.status(of: id) {
        case .clocksDiffer(let milliseconds): ListExchangeText.clock(name, milliseconds: milliseconds)
        case .differs: ListExchangeText.differs(name)
        case .failed(.full) where shared.needsRenewal: ListExchangeText.needsRenewal(shared.hex, name)
        case .failed(let failure): ListExchangeText.failure(failure, name)
        case nil, .exchanging, .received, .unconfirmed, .awaitingJoin: nil
        }
    }

    fileprivate func view(of offer: ListOffer) -> SharedHexOffer {
        SharedHexOffer(
            number: offer.number, list: "\(offer.list.uuid)", uuid: offer.peer,
            tag: peerList.view(of: offer.peer, comparing: false).map { PeerSummary($0.label) }, title: offer.title,
            access: ShareAccess(offer.access), hexes: Int(clamping: offer.hexes), links: Int(clamping: offer.links),
            at: Timestamp(milliseconds: offer.at), further: offer.isFurtherMachine, declined: offer.isDeclined)
    }
}
