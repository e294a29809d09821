import Crypto
import HexlistModel
import HexlistStore
import HexlistSystem

/// Detects that the state folder was copied from another machine, by a backup or a disk image, so that two machines may use one identity.
///
/// The store keeps a keyed hash of the machine id, as machine-id(5) requires.
struct MachineID: Sendable {
    private static let key = "machine"

    /// The hash for this machine; `nil` if it has no id of its own.
    let present: String?

    /// - Parameters:
    ///   - path: the file with the machine id.
    ///   - environment: detects containers (`container=…`), whose id may change at any time.
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

    /// Compares the hash of this machine with that in the store, and saves it on first use. If the store cannot be written now, the next
    /// start saves it.
    /// - Returns: whether the store belongs to another machine.
    func isForeign(_ store: HexStore) async throws -> Bool {
        guard let present else { return false }
        guard let kept = try await store.read({ try $0.meta(Self.key) }) else {
            try? await keep(store)
            return false
        }
        return kept != present
    }

    /// Records that the store belongs to this machine.
    func keep(_ store: HexStore) async throws {
        try await store.setMeta([Self.key: present])
    }
}
