import Crypto
import HexlistModel
import HexlistStore
import HexlistSystem

/// Detects whether the state folder was used on another machine before: a restored backup, or a copied disk, is a second machine with one
/// identity as soon as the first one runs too.
///
/// The store keeps a keyed hash of the machine's id, as machine-id(5) asks, so that it travels with the identity.
struct MachineID: Sendable {
    private static let key = "machine"

    /// The mark of this machine; `nil` if it has no id of its own.
    let present: String?

    /// - Parameters:
    ///   - path: the file with the machine's id.
    ///   - environment: tells whether this is a container (`container=…`), whose id may change at any time.
    init(path: String = "/etc/machine-id", environment: [String: String]) {
        let text = environment["container", default: ""].isEmpty ? try? SmallFile.read(path, limit: 256) : nil
        let digits = (text ?? "").utf8.prefix { $0 != UInt8(ascii: "\n") }
        // The file may be empty, or "uninitialized", before the first boot is complete.
        let isID = digits.count == 32 && digits.allSatisfy { Hexadecimal.value(of: $0) != nil && !ASCII.isUppercase($0) }
        guard isID else {
            present = nil
            return
        }
        let code = HMAC<SHA256>.authenticationCode(for: Array("hexlist-machine-1".utf8), using: SymmetricKey(data: Array(digits)))
        present = Hexadecimal.encode(code.prefix(16)).lowercased()
    }

    /// Compares the mark. The first machine on which a store is used is its own; if the store cannot be written now, the next start keeps that.
    /// - Returns: whether the store is another machine's.
    func isForeign(_ store: HexStore) async throws -> Bool {
        guard let present else { return false }
        guard let kept = try await store.read({ try $0.meta(Self.key) }) else {
            try? await keep(store)
            return false
        }
        return kept != present
    }

    /// Makes the store this machine's from now on.
    func keep(_ store: HexStore) async throws {
        try await store.setMeta([Self.key: present])
    }
}
