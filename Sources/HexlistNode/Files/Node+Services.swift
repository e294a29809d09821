import HexlistAPI
import HexlistFiles
import HexlistModel

/// The services whose files can be listed and linked to, as a person names them.
extension Node {
    /// Own shares first, then trusted peers as `peers` lists them, then remotes.
    public func services() async throws -> [any ContentService] {
        let views = try await peers()
        let friends = views.filter { $0.state != .ghost && $0.trust == .trusted }.compactMap { PeerShares($0, self) }
        return [OwnShares(node: self)] + friends + (try await remotes?.all() ?? [])
    }

    /// A service as a person named it: `shares`, a PEER, or the name of a remote, also with `rclone.` before it.
    /// - Throws: `HexlistError`: `notFound`; `ambiguous` where several have the name; `badRequest` for a peer that is not trusted.
    public func service(_ name: String) async throws -> any ContentService {
        var found: [any ContentService] = []
        if PeerText.areEqual(name, LocalAPI.ownService) { found.append(OwnShares(node: self)) }
        let remotes = try await remotes?.all() ?? []
        found += remotes.filter { PeerText.areEqual($0.view.name, name) }
        if found.isEmpty { found = remotes.filter { PeerText.areEqual(LocalAPI.remotePrefix + $0.view.name, name) } }
        let peer: PeerView
        do throws(HexlistError) {
            await known.reload(self)
            peer = try PeerReference(name).resolve(among: peerViews())
        } catch {
            if found.count == 1, error.code == .notFound { return found[0] }
            guard error.code == .notFound else { throw error }
            let isSelf = PeerText.areEqual(name, configuration.name)
            throw HexlistError(
                .notFound, "There is no service \"\(TerminalText.clean(name, columns: 60))\".",
                hint: isSelf ? "What this machine shares is `shares:`." : AddressText(name)?.advice ?? "`hexlist services` lists them.")
        }
        guard found.isEmpty else {
            let kinds = found.map { $0.view.kind.known == .own ? "this machine's shares" : "a remote of rclone" }
            throw HexlistError(
                .ambiguous, "\"\(TerminalText.clean(name, columns: 60))\" is \(kinds.joined(separator: ", ")), and a peer.",
                hint: found.contains { $0.view.kind.known == .rclone }
                    ? "Name the peer by its UUID, or the remote `\(LocalAPI.remotePrefix)\(TerminalText.clean(name, columns: 60))`."
                    : "Name the peer by its UUID, or give it another alias with `hexlist peer rename`.")
        }
        guard peer.trust == .trusted, let shares = PeerShares(peer, self) else {
            throw HexlistError(
                .badRequest, "\(peer.label.text()) is not trusted: files go between peers that trust each other.",
                hint: "`hexlist pair` makes two peers trust each other.")
        }
        return shares
    }

    /// Asks a peer for a list.
    func list(_ peer: PeerID, _ target: FileRequestTarget) async throws -> [UInt8] {
        guard known.isTrusted(peer) else { throw HexlistError(.gone, "The peer is not trusted any more.") }
        return try await fetching.lists.ask(peer, target, self)
    }

    /// Runs work on the threads for files.
    func onFileThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await transport.fileThreads.run(on: eventLoop, work).get()
    }
}
