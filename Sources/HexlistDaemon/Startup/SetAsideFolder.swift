import HexlistAPI
import HexlistModel

#if canImport(Glibc)
    import Glibc
#endif

/// A folder inside the state folder for parts of an earlier state that a new store or identity takes the place of. Nothing deletes it.
enum SetAsideFolder {
    /// The copies of offered files and the kept files. A daemon deletes those that its store does not know (`FilePool`), so they go with
    /// the store they belong to.
    static let fileFolders = ["offers", "files"]

    /// Makes a new folder.
    /// - Parameter prefix: the beginning of its name, before the time.
    static func make(_ prefix: String, in folder: String) throws -> String {
        let now = Timestamp(milliseconds: Int64(time(nil)) * 1_000).description
        let stamp = String(decoding: now.utf8.filter { ASCII.isDigit($0) || $0 == UInt8(ascii: "T") }.dropLast(3), as: UTF8.self)
        var aside = "\(folder)/\(prefix)\(stamp)"
        while access(aside, F_OK) == 0 { aside += "-again" }
        try PrivateFolder.make(aside)
        return aside
    }

    static func move(_ path: String, to other: String) throws(HexlistError) {
        guard rename(path, other) == 0 else {
            throw HexlistError(
                .stateFolder, "\(path) cannot be moved to \(other) (\(String(cString: strerror(errno)))).",
                hint: "Nothing is lost: what was here is there or in a folder before-… beside it. Try again.")
        }
    }

    static func synchronize(_ folder: String) {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}
