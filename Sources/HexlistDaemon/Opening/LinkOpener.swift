import HexlistModel
import HexlistNode
import HexlistStore
import Logging

/// Opens links of new hexes in the user's browser, if the sender is trusted and `PeerChange.openLinks` is set for it. Shows a notification
/// for each hex with opened links.
///
/// Only hexes that arrive in the inbox while the daemon runs are considered, so that a restart opens no links.
struct LinkOpener: Sendable {
    let supervisor: NodeSupervisor
    let desktop: DesktopSession
    let logger: Logger

    /// Maximum number of events per read of the store.
    private static let batch = 100

    /// Opens links of new hexes, until the task is cancelled or the daemon stops.
    func run() async {
        var allowance = OpenedLinkLimit()
        var last: Int64 = 0
        await supervisor.atEachChange({ $0.linkOpening.changes() }) {
            do {
                try await catchUp(&last, &allowance)
            } catch {
                guard !Task.isCancelled else { return false }
                logger.warning("links of new hexes could not be opened", metadata: ["error": "\(error)"])
            }
            return true
        }
    }

    /// Opens the links of the hexes that arrived after an event. Reads nothing while links of no peer are opened.
    /// - Parameter last: the number of the event; set to that of the newest event.
    private func catchUp(_ last: inout Int64, _ allowance: inout OpenedLinkLimit) async throws {
        guard let before = supervisor.node.linkOpening.lastEventBefore else { return }
        last = max(last, before)
        var hasMore = true
        while hasMore {
            let since = last
            let (events, senders, newest) = try await supervisor.node.store.read { reader in
                let events = try reader.eventPage(since: since, limit: Self.batch, of: [.hexReceived])
                let senders = try Set(events.items.compactMap(\.peer)).filter { try reader.peer($0)?.openLinks ?? 0 > 0 }
                return (events, senders, try reader.counts().lastEvent)
            }
            for event in events.items {
                last = event.number
                guard let peer = event.peer, senders.contains(peer), let hex = event.hex else { continue }
                await open(hex, of: peer, &allowance)
            }
            hasMore = events.next != nil
            if !hasMore { last = max(last, newest) }
        }
    }

    private func open(_ id: Int64, of peer: PeerID, _ allowance: inout OpenedLinkLimit) async {
        do {
            let wanted = try await supervisor.node.store.read { reader -> (PeerRecord, [String])? in
                guard let record = try reader.peer(peer), record.openLinks > 0, record.trust == .trusted, let hex = try reader.hex(id)
                else { return nil }
                return (record, hex.content.links.map { hex.content.string($0.url) })
            }
            guard let (record, urls) = wanted else { return }
            let links = allowance.take(urls, limit: record.openLinks, now: .now)
            for link in links { try await desktop.open(link: link.url) }
            if !links.isEmpty { try await desktop.notify(record.label.text(), Self.text(links)) }
        } catch {
            logger.warning("a link could not be opened", metadata: ["hex.id": "\(id)", "error": "\(error)"])
        }
    }

    /// Returns the text of the notification: `Opened a.example and b.example`.
    static func text(_ links: [OpenedLinkLimit.Link]) -> String {
        let hosts = links.map { TerminalText.clean($0.host, columns: 60) }
        let all = hosts.count > 1 ? hosts.dropLast().joined(separator: ", ") + " and \(hosts[hosts.count - 1])" : hosts.joined()
        return "Opened \(all)"
    }
}
