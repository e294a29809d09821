#if canImport(Glibc)
    internal import Glibc
#endif

/// The folder with the files that LocalSend devices send, until the hex with them is stored: `FOLDER/<session>/<number>`. Only this user
/// can read it. A complete file has its final name; a file that is still being received is a partial file. Calls block.
public struct ArrivalFolder: Sendable {
    /// Absolute path of the folder, which is created when the first file arrives.
    public let path: String

    public init(path: String) { self.path = path }

    /// Returns the path of a complete file.
    /// - Parameters:
    ///   - session: letters and digits, at most 64.
    ///   - name: the final name of the file, from `PartFile.Placement`.
    public func path(of session: String, name: String) -> String { "\(folder(of: session))/\(name)" }

    private func folder(of session: String) -> String { "\(path)/\(session)" }

    /// Checks whether files fit on the disk.
    /// - Throws: `diskFull` if less than `minimumFree` bytes would stay free; faults of opening the folder.
    public func checkRoom(for bytes: Int64, minimumFree: Int64) throws(FileFault) {
        try Self.make(path)
        let free = try Descriptor.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW).freeBytes()
        try Descriptor.checkRoom(free, for: bytes, minimumFree: minimumFree)
    }

    /// Creates a partial file. If one exists from an earlier attempt, it is deleted first.
    /// - Parameters:
    ///   - number: the position of the file in its session, which becomes its name.
    ///   - digest: the announced SHA-256; `nil` if none was announced.
    ///   - modified: the modification time in nanoseconds since 1970; `nil` if unknown.
    ///   - mayBeShorter: whether `size` is only the maximum size.
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

    /// Whether a complete file of this name exists in a session.
    /// - Parameter name: the final name of the file.
    public func contains(_ name: String, of session: String) -> Bool { access(path(of: session, name: name), F_OK) == 0 }

    /// Deletes the files of a session.
    public func remove(_ session: String) {
        Descriptor.removeFolder(folder(of: session), atMost: Self.maximumNames)
    }

    /// The sessions whose folders exist, at most `maximumNames`.
    public func sessions() -> [String] {
        guard let folder = try? Descriptor.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW) else { return [] }
        return folder.names(atMost: Self.maximumNames).filter { $0.utf8.first != UInt8(ascii: ".") }
    }

    private static let maximumNames = 10_000

    private static func make(_ path: String) throws(FileFault) {
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .last }
    }
}
