import Crypto
import HexlistModel
import HexlistStore
import HexlistSystem

/// Detects that the state folder was copied from another machine, by a backup or a disk image. Then two machines may use one identity.
///
/// The store has a keyed hash of the machine id. machine-id(5) requires that the id itself is not disclosed.
struct CopiedStateDetector: Sendable {
    private static let key = "machine"

    /// The hash of this machine's id; `nil` if the machine has no reliable id, as in a container.
    let present: String?

    /// - Parameters:
    ///   - path: the file with the machine id.
    ///   - environment: the environment of the daemon. `container=…` shows that this is a container, whose id may change at any time.
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

    /// Compares the hash of this machine with the one in the store. If the store has none, saves that of this machine; if the store cannot
    /// be written, the next start saves it.
    /// - Returns: whether the store was last used on another machine.
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
