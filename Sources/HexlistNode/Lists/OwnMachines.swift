public import HexlistAPI
import HexlistEventLoop
import HexlistJSON
import HexlistLists
public import HexlistModel
import HexlistStore

/// The user's other machines, with which My Hexlist is exchanged: lists, previews, adds and removes them.
public struct OwnMachines: Sendable {
    let node: Node

    /// All own machines, in the order in which they were added.
    public func all() async throws -> [OwnMachineView] {
        let machines = try await node.store.read { try $0.ownMachines() }
        return await node.perform { node in machines.map { node.view(of: $0) } }
    }

    /// Returns what is known before a peer becomes an own machine. Requests the overview of the peer's lists, and changes nothing.
    /// - Throws: `HexlistError` `badRequest` if the peer is not trusted.
    public func preview(_ peer: PeerID) async throws -> OwnMachinePreview {
        let (view, support) = try await node.perform { node in (try node.trusted(peer), node.listSupport(of: peer)) }
        let (isOwn, list, size) = try await node.store.read { (try $0.isOwnMachine(peer), try $0.mineList(), try $0.mineSize()) }
        var preview = OwnMachinePreview(
            uuid: peer, tag: PeerSummary(view.label), own: isOwn, online: support != .unknown,
            here: CollectionSize(hexes: size.hexes, links: size.links))
        guard support != .missing else {
            preview.problem = ListExchangeText.unsupported(view)
            return preview
        }
        let overview = try await overview(of: peer)
        // The request may have opened a session.
        preview.trustedThere = await node.perform { $0.isTrusted(by: peer) }
        guard let overview else { return preview }
        preview.online = true
        preview.confirmed = overview.isOwnMachine
        if let ahead = overview.clockDifference(at: node.clocks.milliseconds) {
            preview.problem = ListExchangeText.clock(view.label.text(.named), milliseconds: ahead)
        }
        if let theirs = overview.lists.first(where: { $0.role == .own }) {
            preview.there = CollectionSize(hexes: Int(clamping: theirs.hexes), links: Int(clamping: theirs.links))
            preview.same = theirs.list == list
        }
        return preview
    }

    /// Returns the peer's answer to `GET /lists`; `nil` if it cannot be reached, or its answer is invalid.
    private func overview(of peer: PeerID) async throws -> ListOverview? {
        guard let json = try? await node.transfers.requestList(.overview, from: peer) else {
            try Task.checkCancellation()
            return nil
        }
        return try? ListOverview(decoding: json)
    }

    /// Makes a trusted peer an own machine. The two collections are merged as soon as this machine is an own machine there, too. Without
    /// effect if it is one already.
    /// - Throws: `HexlistError`: `badRequest` if the peer is not trusted, or there are `ListLimits.ownMachines`; `notSupported` if the
    ///   peer is online, and its Hexlist is too old.
    public func add(_ peer: PeerID) async throws -> OwnMachineView {
        try await node.perform { node in
            let view = try node.trusted(peer)
            guard node.listSupport(of: peer) != .missing else { throw HexlistError(.notSupported, ListExchangeText.unsupported(view)) }
        }
        if try await node.store.addOwnMachine(peer, at: node.clocks.milliseconds) {
            node.logger.notice("own machine added", metadata: ["peer.id": "\(peer)"])
            await node.perform { await $0.registry.reload($0) }
            node.notifyWatchers()
        }
        return try await view(of: peer)
    }

    /// Ends the exchange with an own machine. It stays trusted, and both machines keep their copies.
    /// - Returns: the machine as it was before, in the state `removed`.
    /// - Throws: `HexlistError` `notFound` if the peer is no own machine.
    public func remove(_ peer: PeerID) async throws -> OwnMachineView {
        var removed = try await view(of: peer)
        guard try await node.store.removeOwnMachine(peer) else { throw await noOwnMachine(peer) }
        node.logger.notice("own machine removed", metadata: ["peer.id": "\(peer)"])
        await node.perform { await $0.registry.reload($0) }
        node.notifyWatchers()
        removed.state = ForwardCompatibleEnum(.removed)
        removed.message = nil
        return removed
    }

    private func view(of peer: PeerID) async throws -> OwnMachineView {
        guard let view = try await all().first(where: { $0.uuid == peer }) else { throw await noOwnMachine(peer) }
        return view
    }

    private func noOwnMachine(_ peer: PeerID) async -> HexlistError {
        let name = await node.perform { $0.peerList.label(of: peer)?.text(.named) } ?? peer.shortID
        return HexlistError(.notFound, "\(name) is not one of your own machines.", hint: "To list them: `hexlist own`.")
    }
}

/// Sentences about the exchange of lists with a peer: an own machine, or a person with whom hexes are shared.
enum ListExchangeText {
    static func unsupported(_ peer: PeerView) -> String {
        "The Hexlist of \(peer.label.text(.named))\(peer.version.map { " (\($0))" } ?? "") is too old to keep one My Hexlist with it."
    }

    /// - Parameters:
    ///   - peer: the machine.
    ///   - id: this machine.
    static func notTrusted(_ name: String, _ peer: PeerID, _ id: PeerID) -> String {
        "\(name) does not trust this machine any more. To pair and add both again, \(commands(peer, id))"
    }

    /// The reason for which nothing is exchanged with a machine that is online without a session.
    static func noSession(_ name: String, _ peer: PeerID, _ id: PeerID) -> String {
        "\(name) is online, but there is no session with it. If it does not trust this machine any more, \(commands(peer, id))"
    }

    private static func commands(_ peer: PeerID, _ id: PeerID) -> String {
        "run `hexlist own add \(peer.shortID)` here and `hexlist own add \(id.shortID)` there."
    }

    /// - Parameter milliseconds: by how much the clock of the machine is ahead of this machine's; negative if it is behind.
    static func clock(_ name: String, milliseconds: Int64) -> String {
        let hours = milliseconds.magnitude / 3_600_000
        let difference = hours < 48 ? "\(hours) hours" : "\(hours / 24) days"
        return """
            The clock of \(name) is \(difference) \(milliseconds < 0 ? "behind" : "ahead of") this machine's. Nothing is exchanged until one \
            of the clocks is corrected.
            """
    }

    static func differs(_ name: String) -> String { "A list of \(name) differs although all changes were exchanged." }

    static func sharingUnsupported(_ peer: PeerView) -> String {
        "The Hexlist of \(peer.label.text(.named))\(peer.version.map { " (\($0))" } ?? "") does not support shared hexes."
    }

    /// The reason for which changes of a member of an own shared hex are not received.
    static func needsRenewal(_ hex: Int64?, _ name: String) -> String {
        """
        It has the maximum of hexes and links, including deleted ones, so changes of \(name) are not received. To start again without the \
        deleted ones: `hexlist mine share \(hex.map { String($0) } ?? "HEX") --renew`.
        """
    }

    /// Returns the reason why an exchange failed.
    static func failure(_ failure: ListExchange.Failure, _ name: String) -> String {
        switch failure {
        case .unreachable: "\(name) could not be reached."
        case .busy: "\(name) cannot answer at the moment: it is merging two collections, or runs an old copy of its store."
        case .notFound: "\(name) does not have a list any more."
        case .malformed: "The answer of \(name) is invalid."
        case .full:
            "My Hexlist or a shared hex has the maximum of hexes and links, including deleted ones, so changes of \(name) are not received."
        case .diskFull: "The disk has too little free space, so changes of \(name) are not received."
        case .versionAhead:
            "A change on \(name) is dated more than 100 years ahead, by a wrong clock. Changes of \(name) are not received."
        case .joinedRecently:
            "\(name) has another collection again, after several merges within an hour. It is merged later."
        case .store, .outdated: "Changes of \(name) could not be stored."
        }
    }
}

extension Node {
    public nonisolated var ownMachines: OwnMachines { OwnMachines(node: self) }

    /// Whether the Hexlist of a peer can exchange lists.
    enum ListSupport { case unknown, missing, present }

    func listSupport(of peer: PeerID) -> ListSupport {
        guard let hello = links[peer]?.sending?.machine.peerHello else { return .unknown }
        return hello.exchangesLists ? .present : .missing
    }

    /// Whether a peer trusts this machine, which the frame limit of its Hello shows; `nil` without a session. A peer that ends its trust ends
    /// the session, so the limit is that of the current trust.
    func isTrusted(by peer: PeerID) -> Bool? {
        links[peer]?.sending?.machine.peerHello.map { $0.maxFrameBytes >= ProtocolLimits.trustedFrameBytes }
    }

    /// - Parameter consequence: the end of the message if the peer is not trusted.
    func trusted(_ peer: PeerID, for consequence: String = "it cannot be one of your own machines") throws -> PeerView {
        let view = try peerList.required(peer)
        guard view.knownKind == .hexlist, view.trust == .trusted else {
            throw HexlistError(
                .badRequest, "\(view.label.text()) is not trusted, so \(consequence).",
                hint: view.knownKind == .hexlist ? "To trust each other: `hexlist pair \(peer.shortID)`." : nil)
        }
        return view
    }

    fileprivate func view(of machine: OwnMachine) -> OwnMachineView {
        let peer = peerList.view(of: machine.peer, comparing: false)
        let name = peer?.label.text(.named) ?? machine.peer.shortID
        let (state, message) = listState(of: machine, peer, name)
        return OwnMachineView(
            uuid: machine.peer, tag: peer.map { PeerSummary($0.label) }, state: state, message: message,
            addedAt: Timestamp(milliseconds: machine.addedAt), receivedAt: machine.receivedAt.map { Timestamp(milliseconds: $0) },
            lastSeen: peer?.lastSeen, behind: machine.behind)
    }

    private func listState(of machine: OwnMachine, _ peer: PeerView?, _ name: String) -> (OwnMachineView.State, message: String?) {
        switch listSupport(of: machine.peer) {
        case .unknown: return (.away, peer?.state == .verified ? ListExchangeText.noSession(name, machine.peer, id) : nil)
        case .missing: return (.unsupported, peer.map(ListExchangeText.unsupported))
        case .present: break
        }
        switch lists.status(of: machine.peer) {
        case nil: return (.exchanging, nil)
        case .exchanging: return (machine.receivedAt == nil ? .joining : .exchanging, nil)
        case .received: return (machine.behind == 0 ? .inSync : .exchanging, nil)
        case .unconfirmed: return (.waiting, nil)
        case .awaitingJoin: return (.joining, nil)
        case .clocksDiffer(let milliseconds): return (.clock, ListExchangeText.clock(name, milliseconds: milliseconds))
        case .differs: return (.differs, ListExchangeText.differs(name))
        case .failed(.unreachable) where isTrusted(by: machine.peer) == false:
            return (.failed, ListExchangeText.notTrusted(name, machine.peer, id))
        case .failed(let failure):
            let state: OwnMachineView.State =
                switch failure {
                case .versionAhead: .clock
                case .full: .full
                case .diskFull: .disk
                default: .failed
                }
            return (state, ListExchangeText.failure(failure, name))
        }
    }
}
