import HexlistAPI
import HexlistModel

#if canImport(Glibc)
    import Glibc
#endif

/// A subfolder of the state folder to which the replaced parts of an earlier state are moved. Hexlist never deletes it.
enum EarlierStateFolder {
    /// The names of the folders of offered copies, of kept files, and of received files whose hex is not stored yet. They are moved
    /// together with their store, because a daemon deletes files that its store does not know (`FilePool`).
    static let fileFolders = ["offers", "files", "arrivals"]

    /// Creates a new folder, and returns its path.
    /// - Parameters:
    ///   - prefix: the beginning of its name, to which the current time is added.
    ///   - folder: the state folder.
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
                hint: "Nothing is lost: the files are in \(path), \(other) or a folder before-… beside it. Try again.")
        }
    }

    static func synchronize(_ folder: String) {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}
