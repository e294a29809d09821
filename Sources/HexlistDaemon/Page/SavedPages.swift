import HexlistJSON
import HexlistSystem

#if canImport(Glibc)
    import Glibc
#endif

/// The open pages with the port and the proof of their listener, saved so that they survive a restart of the daemon. Tokens and secrets are
/// saved as hashes.
struct SavedPages: JSONShape, Sendable, Equatable {
    struct Page: JSONShape, Sendable, Equatable {
        /// SHA-256 of the token, in hexadecimal.
        var token: String
        /// SHA-256 of the reload secret; `nil` after its use.
        var reload: String?
    }

    var port: Int
    var proof: String
    var pages: [Page]
}

/// The file `pages.json` in the state folder, with the open pages. Its mode is 0600.
struct SavedPagesFile: Sendable {
    /// Maximum bytes of the file. A file with `PageKeys.maximumPages` pages is much smaller.
    private static let limit = 64 << 10

    let path: String

    init(stateFolder: String) { path = "\(stateFolder)/pages.json" }

    /// Reads the saved pages; `nil` if there are none, or if the file is damaged.
    func read() -> SavedPages? {
        guard let text = try? SmallFile.read(path, limit: Self.limit), let saved = try? SavedPages(jsonBytes: Array(text.utf8)) else {
            return nil
        }
        return (1...65_535).contains(saved.port) && saved.proof.utf8.count == 64 && saved.pages.count <= PageKeys.maximumPages ? saved : nil
    }

    /// Replaces the file. Not synced to the disk: if it is lost, the pages expire.
    func write(_ saved: SavedPages) throws(SystemError) {
        let new = path + ".new"
        let descriptor = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .last }
        defer { close(descriptor) }
        try BlockingWrite.write(saved.jsonBytes, to: descriptor)
        guard rename(new, path) == 0 else { throw .last }
    }

    func remove() { unlink(path) }
}
