public import HexlistAPI
import HexlistFiles
import HexlistModel
import HexlistStore

#if canImport(Glibc)
    import Glibc
#endif

/// The folders of this machine that peers may read: its shares.
public struct ShareRegistry: Sendable {
    let transfers: FileTransfers
    private var store: HexStore { transfers.store }

    /// Returns all shares, sorted by name.
    public func all() async throws -> [ShareView] {
        let rows = try await store.read { try $0.shares() }
        let faults = try await transfers.onFileThread { rows.map { ShareRoot($0).isThere ? nil : Self.missing($0.path) } }
        return await transfers.views(of: Array(zip(rows, faults)))
    }

    /// Shares a folder, or changes the peers that may read it.
    /// - Parameter folders: protected folders. They cannot be shared, nor can folders inside them, nor folders that contain them.
    /// - Throws: `HexlistError` `badRequest`, `notFound`, `ambiguous`.
    public func add(_ request: ShareRequest, protecting folders: [String]) async throws -> ShareView {
        guard request.path.hasPrefix("/"), !request.path.utf8.contains(0) else {
            throw HexlistError(.badRequest, "`path` must be the absolute path of a folder.")
        }
        let asked = request.path
        let path = try await transfers.onFileThread { try Self.shareable(asked, protecting: folders) }
        let name = request.name ?? path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(decoding: $0, as: UTF8.self) } ?? ""
        guard ShareName.isAllowed(name) else {
            throw HexlistError(
                .badRequest, "\"\(TerminalText.clean(name, columns: 80))\" is not a valid name of a share: \(ShareName.rule).",
                hint: "Choose another name with --as.")
        }
        var row = ShareRow(name: name, path: path, showsHidden: request.hidden ?? false, isForAll: request.to == nil)
        if let names = request.to {
            guard !names.isEmpty else {
                throw HexlistError(.badRequest, "`to` is empty.", hint: "Leave it out for every trusted peer.")
            }
            row.groups = names.filter(GroupName.isMarked).map(GroupName.bare)
            for peer in try await transfers.node.peers(named: names.filter { !GroupName.isMarked($0) }) {
                let id = try peer.requiredID()
                guard peer.trust == .trusted else {
                    throw HexlistError(
                        .badRequest, "\(peer.label.text()) is not trusted; only trusted peers can read shares.",
                        hint: "To trust it: `hexlist pair \(id.shortID)`.")
                }
                if !row.peers.contains(id) { row.peers.append(id) }
            }
        }
        let shared = try await store.share(row)
        transfers.logger.info("folder shared", metadata: ["share": "\(shared.id)"])
        return await transfers.views(of: [(shared, nil)])[0]
    }

    /// Ends a share, and running transfers from it. The folder itself is not changed.
    /// - Returns: the share that has ended.
    public func end(_ name: String) async throws -> ShareView {
        await transfers.views(of: [(try await store.endShare(name), nil)])[0]
    }

    private static func missing(_ path: String) -> String {
        "\(TerminalText.clean(path, columns: 200)) is not there, is no folder, or may not be read."
    }

    /// Checks that a folder may be shared.
    /// - Returns: its path without symbolic links.
    private static func shareable(_ path: String, protecting folders: [String]) throws -> String {
        let shown = TerminalText.clean(path, columns: 200)
        guard let resolved = realpath(path, nil) else {
            throw HexlistError(.badRequest, "\(shown) cannot be shared (\(String(cString: strerror(errno)))).")
        }
        defer { free(resolved) }
        guard let real = String(validatingCString: resolved) else {
            throw HexlistError(.badRequest, "The path of \(shown) is not UTF-8 text.", hint: "Rename it.")
        }
        do {
            guard ShareRoot(path: real).isThere else { throw FileFault.notFolder }
            try ProtectedFolders(folders).check(real)
        } catch let fault as FileFault {
            switch fault {
            case .notFolder:
                throw HexlistError(
                    .badRequest, "\(shown) is not a folder, or is not readable.", hint: "To send a single file: `hexlist send --to PEER`.")
            default: throw HexlistError(.badRequest, "\(shown) \(fault).", hint: "Share another folder.")
            }
        }
        return real
    }
}

extension FileTransfers {
    /// Returns the shares in the form of the API.
    /// - Parameter rows: the shares, each with the reason why its folder cannot be read; `nil` if it can.
    fileprivate func views(of rows: [(ShareRow, String?)]) -> [ShareView] {
        rows.map { row, why in
            ShareView(
                name: row.name, path: row.path, hidden: row.showsHidden, toAll: row.isForAll, groups: row.groups,
                peers: row.peers.map { GroupMember(uuid: $0, tag: node.label(of: $0).map(PeerSummary.init)) }, why: why)
        }
    }
}

/// The rules for the names of shares. Users type such a name before a `/`, and it is a part of links.
enum ShareName {
    static let bytes = 64
    static let rule = "1 to \(bytes) bytes of printable text, without / and without a dot or dash at its beginning"

    static func isAllowed(_ name: String) -> Bool {
        SharePath.isName(name) && name.utf8.count <= bytes && TerminalText.clean(name).utf8.elementsEqual(name.utf8)
            && ![UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "@")].contains(name.utf8.first)
            && name.utf8.first != 0x20 && name.utf8.last != 0x20
    }
}
