import Crypto
import HexlistModel
import HexlistStore
import HexlistSystem

/// Whether the state folder was used on this machine before: a restored backup, or a copied disk, is a second machine with one identity
/// as soon as the first one runs too.
///
/// Kept is a keyed hash of the machine's id (machine-id(5) asks for that), in the store, so it travels with the identity.
struct MachineMark: Sendable {
    private static let key = "machine"

    /// Of this machine; `nil` where it has no id of its own.
    let present: String?

    /// - Parameters:
    ///   - path: the file with the machine's id.
    ///   - environment: says whether this is a container (`container=…`): what makes those gives them another id as it pleases.
    init(path: String = "/etc/machine-id", environment: [String: String]) {
        let text = environment["container", default: ""].isEmpty ? try? SmallFile.read(path, limit: 256) : nil
        let digits = (text ?? "").utf8.prefix { $0 != UInt8(ascii: "\n") }
        // It may be empty, or "uninitialized", before the first boot is complete.
        let isID = digits.count == 32 && digits.allSatisfy { Hexadecimal.value(of: $0) != nil && !ASCII.isUppercase($0) }
        guard isID else {
            present = nil
            return
        }
        let code = HMAC<SHA256>.authenticationCode(for: Array("hexlist-machine-1".utf8), using: SymmetricKey(data: Array(digits)))
        present = Hexadecimal.encode(code.prefix(16)).lowercased()
    }

    /// The first machine a store is used on is its own.
    /// - Returns: whether it is another one's.
    func isForeign(_ store: HexStore) async throws -> Bool {
        guard let present else { return false }
        guard let kept = try await store.read({ try $0.meta(Self.key) }) else {
            try await keep(store)
            return false
        }
        return kept != present
    }

    /// The store is this machine's from now on.
    func keep(_ store: HexStore) async throws {
        let present = present
        try await store.write { try $0.setMeta(Self.key, present) }
    }
}
