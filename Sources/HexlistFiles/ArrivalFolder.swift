#if canImport(Glibc)
    internal import Glibc
#endif

/// The folder of files that devices send, until the hex with them is stored: `FOLDER/<session>/<number>`, readable only by this user. A
/// complete file has its final name; the others are partial files. Calls block.
public struct ArrivalFolder: Sendable {
    /// Absolute path of the folder, which is created with the first file.
    public let path: String

    public init(path: String) { self.path = path }

    /// - Parameters:
    ///   - session: letters and digits, at most 64.
    ///   - name: the final name of the file, from `PartFile.Placement`.
    public func path(of session: String, name: String) -> String { "\(folder(of: session))/\(name)" }

    private func folder(of session: String) -> String { "\(path)/\(session)" }

    /// Checks whether files fit on the disk.
    /// - Throws: `diskFull` if less than `minimumFree` bytes would stay free; errors of the folder.
    public func checkRoom(for bytes: Int64, minimumFree: Int64) throws(FileFault) {
        try Self.make(path)
        let free = try Descriptor.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW).freeBytes()
        try Descriptor.checkRoom(free, for: bytes, minimumFree: minimumFree)
    }

    /// Creates a partial file. A partial file of an earlier attempt is deleted.
    /// - Parameters:
    ///   - number: the position of the file in its session.
    ///   - digest: the announced SHA-256; `nil` if none was announced.
    ///   - modified: nanoseconds since 1970.
    ///   - mayBeShorter: whether `size` is only a maximum.
    public func begin(
        _ session: String, number: Int, size: Int64, digest: [UInt8]?, modified: Int64?, minimumFree: Int64, mayBeShorter: Bool = false
    ) throws(FileFault) -> PartFile {
        try Self.make(path)
        try Self.make(folder(of: session))
        var specification = PartFile.Specification(
            name: FileName("\(number)"), id: "arriving", size: size, digest: digest, modified: modified, umask: 0o177,
            minimumFree: minimumFree)
        specification.mayBeShorter = mayBeShorter
        PartFile.discard(folder: folder(of: session), specification: specification)
        return try PartFile(folder: folder(of: session), specification: specification)
    }

    /// Whether a session has a complete file.
    /// - Parameter name: its final name.
    public func contains(_ name: String, of session: String) -> Bool { access(path(of: session, name: name), F_OK) == 0 }

    /// Deletes the files of a session.
    public func remove(_ session: String) {
        Descriptor.removeFolder(folder(of: session), atMost: Self.maximumNames)
    }

    /// The sessions that have a folder, at most `maximumNames`.
    public func sessions() -> [String] {
        guard let folder = try? Descriptor.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW) else { return [] }
        return folder.names(atMost: Self.maximumNames).filter { $0.utf8.first != UInt8(ascii: ".") }
    }

    private static let maximumNames = 10_000

    private static func make(_ path: String) throws(FileFault) {
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .last }
    }
}
