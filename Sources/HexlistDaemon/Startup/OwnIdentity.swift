import HexlistModel
import HexlistStore
import HexlistTransport

/// The identity of this installation, made on the first start.
enum OwnIdentity {
    /// - Throws: `HexlistError` `identity` if it is missing and others may trust it: a new identity would be another peer, so only the user
    ///   can decide to make one.
    static func open(folder: String, store: HexStore) throws -> Identity {
        if let identity = try Identity.load(from: folder) { return identity }
        let known = try store.readSync { try $0.peers() }.filter { $0.trust != .stranger }
        guard known.isEmpty else {
            throw HexlistError(
                .identity, "\(folder)/\(Identity.fileName) is missing, and \(known.count) trusted or blocked peers are known.",
                hint: "Put back a copy of it. To begin anew as another peer, move the whole state folder away.")
        }
        return try Identity.create(in: folder)
    }
}
