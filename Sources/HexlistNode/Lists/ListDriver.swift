import HexlistEventLoop
import HexlistJSON
import HexlistLists
import HexlistModel
import HexlistSession
import HexlistStore
import HexlistSystem
import HexlistTransfers
import HexlistWire
import Logging
import NIOCore

/// Carries out the actions of `ListExchange`: announcements on sessions, requests over connections for files, writes to the store.
final class ListDriver {
    private var exchange = ListExchange()
    /// The own machines that are trusted, as last read from the store. Each request looks them up again.
    private var own: Set<PeerID> = []
    private var isReading = false
    private var mustReadAgain = false
    private let timer: DeadlineTimer

    init(on eventLoop: any EventLoop, _ clocks: Clocks) { timer = DeadlineTimer(on: eventLoop, clocks) }

    func stop() { timer.cancel() }

    /// The status of an own machine; `nil` if there is no session with it, or no answer yet.
    func status(of peer: PeerID) -> ListExchange.Status? { exchange.status(of: peer) }

    // MARK: - Events

    /// Reads the own machines. Called at the start, and when records of peers changed. Calls during a read cause one more read.
    func ownMachinesChanged(_ node: isolated Node) {
        guard !isReading else {
            mustReadAgain = true
            return
        }
        isReading = true
        node.store.submitRead({ try $0.ownMachines().map(\.peer) }) { [weak node] result in
            node?.onLoop { node in
                let driver = node.lists
                driver.isReading = false
                switch result {
                case .success(let peers): driver.set(Set(peers), node)
                case .failure(let error): node.logger.error("own machines cannot be read", metadata: ["error": "\(error)"])
                }
                guard driver.mustReadAgain else { return }
                driver.mustReadAgain = false
                driver.ownMachinesChanged(node)
            }
        }
    }

    private func set(_ peers: Set<PeerID>, _ node: isolated Node) {
        let before = own
        own = peers
        for peer in before.subtracting(peers).sorted() {
            ended(peer, node)
            // The peer then requests the overview once more, and learns that it is no own machine.
            node.links[peer]?.sending?.act { $0.announceLists(&$1) }
        }
        for peer in peers.subtracting(before).sorted() { opened(peer, node) }
    }

    /// Handles a new session with a peer.
    func opened(_ peer: PeerID, _ node: isolated Node) {
        guard own.contains(peer), node.links[peer]?.sending?.machine.peerHello?.exchangesLists ?? false else { return }
        handle(node) { exchange, now, actions in exchange.opened(peer, now: now, &actions) }
    }

    /// Handles the end of the last session with a peer.
    func ended(_ peer: PeerID, _ node: isolated Node) {
        handle(node) { exchange, now, actions in exchange.closed(peer, now: now, &actions) }
    }

    /// Handles `ListNews`. Ignored unless the peer is an own machine.
    func newsArrived(from peer: PeerID, _ node: isolated Node) {
        handle(node) { exchange, now, actions in exchange.newsArrived(from: peer, now: now, &actions) }
    }

    /// Handles a commit that changed numbered rows of My Hexlist.
    func changed(_ node: isolated Node) { handle(node) { exchange, now, actions in exchange.changed(now: now, &actions) } }

    // MARK: - Actions

    private func handle(
        _ node: isolated Node, _ event: (inout ListExchange, ContinuousClock.Instant, inout [ListExchange.Action]) -> Void
    ) {
        guard !node.isStopping else { return }
        var actions: [ListExchange.Action] = []
        event(&exchange, node.clocks.now, &actions)
        for action in actions { carryOut(action, node) }
        timer.set(exchange.nextWake, node) { node in
            node.lists.handle(node) { exchange, now, actions in exchange.tick(now: now, &actions) }
        }
    }

    private func carryOut(_ action: ListExchange.Action, _ node: isolated Node) {
        switch action {
        case .announce(let peer): node.links[peer]?.sending?.act { $0.announceLists(&$1) }
        case .requestOverview(let peer): perform(with: peer, node) { try await $0.requestOverview(of: peer) }
        case .requestPage(let list, let peer): perform(with: peer, node) { try await $0.requestPage(of: list, from: peer) }
        case .join(let list, let peer): perform(with: peer, node) { try await $0.join(list, with: peer) }
        case .repair(_, let peer):
            perform(with: peer, node) { node in
                try await node.store.repairList(with: peer)
                return { exchange, now, actions in exchange.repaired(peer, now: now, &actions) }
            }
        case .report(let peer, let status): report(status, of: peer, node)
        }
    }

    typealias Event = @Sendable (inout ListExchange, ContinuousClock.Instant, inout [ListExchange.Action]) -> Void

    /// Runs a request, and passes its result to the state machine.
    private func perform(
        with peer: PeerID, _ node: isolated Node, _ request: @escaping @Sendable (isolated Node) async throws -> Event
    ) {
        Task { [weak node] in
            guard let node else { return }
            let event: Event
            do {
                event = try await node.perform(request)
            } catch {
                let failure = ListExchange.Failure(error)
                node.logger.debug("lists cannot be exchanged", metadata: ["peer.id": "\(peer)", "error": "\(error)"])
                event = { exchange, now, actions in exchange.failed(failure, peer, now: now, &actions) }
            }
            await node.perform { node in node.lists.handle(node, event) }
        }
    }

    private func report(_ status: ListExchange.Status, of peer: PeerID, _ node: isolated Node) {
        node.logger.debug("lists", metadata: ["peer.id": "\(peer)", "status": "\(status)"])
        switch status {
        case .clocksDiffer(let milliseconds):
            node.events.record(
                .listStuck, peer: peer, data: ["reason": "clock", "milliseconds": "\(milliseconds)"], from: .lists(of: peer), node)
        case .differs: node.events.record(.listStuck, peer: peer, data: ["reason": "differs"], from: .lists(of: peer), node)
        case .failed(.full):
            node.events.record(.listStuck, peer: peer, data: ["reason": "full"], from: .lists(of: peer), node)
        case .exchanging, .received, .unconfirmed, .awaitingJoin, .failed: break
        }
        node.notifyWatchers()
    }
}

extension Node {
    /// The status of the exchange with an own machine; `nil` if there is no session with it, or no answer yet.
    func listStatus(of peer: PeerID) -> ListExchange.Status? { lists.status(of: peer) }

    fileprivate func requestOverview(of peer: PeerID) async throws -> ListDriver.Event {
        guard let before = try await store.read({ try $0.listStanding(with: peer) }) else { throw HexlistError.noOwnMachine }
        let json = try await transfers.requestList(.overview, from: peer)
        let overview = try ListOverview(decoding: json)
        guard let standing = try await store.read({ try $0.listStanding(with: peer) }) else { throw HexlistError.noOwnMachine }
        let clock = clocks.milliseconds
        return { exchange, now, actions in
            exchange.overviewArrived(overview, from: peer, before: before, standing: standing, clock: clock, now: now, &actions)
        }
    }

    fileprivate func requestPage(of list: ListNode.ID, from peer: PeerID) async throws -> ListDriver.Event {
        let request = try await store.read { try $0.listPageRequest(of: list, from: peer) }
        let isJoining = try await store.read { try $0.listStanding(with: peer)?.list } != list
        let json = try await transfers.requestList(.page(list, request), from: peer)
        let now = clocks.milliseconds
        let page = try await transfers.onFileThread { try ListPage(decoding: json, from: .ownMachine, now: now) }
        let result = try await store.mergeListPage(page, answering: request, from: peer, at: now)
        if page.skipped > 0 {
            logger.warning("rows of a list were left out", metadata: ["peer.id": "\(peer)", "count": "\(page.skipped)"])
        }
        if !isJoining, !result.isEmpty {
            let data = ["added": "\(result.added)", "changed": "\(result.changed)", "deleted": "\(result.deleted)"]
            events.record(.listChanged, peer: peer, data: data, from: .lists(of: peer), self)
        }
        return { exchange, now, actions in
            exchange.pageStored(list, from: peer, hasRows: !page.nodes.isEmpty, isLast: page.isLast, now: now, &actions)
        }
    }

    /// Writes the hexes of My Hexlist to a file beside the store, then joins the collections.
    fileprivate func join(_ list: ListNode.ID, with peer: PeerID) async throws -> ListDriver.Event {
        let store = store
        let folder = store.path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        let path = "\(folder)/before-join-\(clocks.milliseconds).ndjson"
        let sequence = try await transfers.onFileThread { try store.writeBackup(ofMineTo: path, for: peer) }
        let result = try await store.joinList(list, with: peer, ifStillAt: sequence, at: clocks.milliseconds)
        logger.notice(
            "My Hexlist was joined with that of another machine",
            metadata: ["peer.id": "\(peer)", "hexes": "\(result.hexes)", "links": "\(result.links)", "backup": "\(path)"])
        return { exchange, now, actions in exchange.joined(list, with: peer, now: now, &actions) }
    }
}

extension HexStore {
    /// Writes the hexes of My Hexlist to a new file, as one HexJM per line. Blocks.
    /// - Returns: the number of the last row in the file.
    fileprivate func writeBackup(ofMineTo path: String, for peer: PeerID) throws -> Int64 {
        let file = try NewFile(path: path)
        let sequence = try readSync { reader in
            guard let sequence = try reader.listStanding(with: peer)?.sequence else { throw HexlistError.noOwnMachine }
            var after: Int64?
            repeat {
                let page = try reader.hexIDs(.list(HexFilter(location: .mine)), after: after)
                for id in page.items {
                    guard let hex = try reader.hex(id) else { continue }
                    try file.append(HexEncoder.encode(hex.content) + [UInt8(ascii: "\n")])
                }
                after = page.next
            } while after != nil
            return sequence
        }
        try file.synchronize()
        return sequence
    }
}

extension HexlistError {
    fileprivate static var noOwnMachine: HexlistError { HexlistError(.gone, "The peer is no own machine any more.") }
}

extension ListExchange.Failure {
    init(_ error: any Error) {
        switch error {
        case is JSONFault: self = .malformed
        case let error as HexlistError:
            switch error.code {
            case .gone: self = .unreachable
            case .notFound: self = .notFound
            case .recentlyFailed: self = .busy
            case .refused: self = .malformed
            case .storageFull: self = .full
            default: self = .store
            }
        default: self = .store
        }
    }
}
