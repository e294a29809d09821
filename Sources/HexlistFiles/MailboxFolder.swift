internal import CLinux

#if canImport(Glibc)
    internal import Glibc
#endif

/// A folder with one sub-folder, called mailbox, for each peer. Programs on other machines may write into it. Calls block, so they run on
/// the file threads.
///
/// Symbolic links are never followed, and only regular files are read.
public struct MailboxFolder: Sendable {
    /// Maximum number of names that `names` returns.
    public static let maximumNames = 10_000
    private static let temporarySuffix = ".tmp"
    /// Seconds after which the temporary file of an interrupted write is deleted.
    private static let temporaryLifetime = 86_400

    /// The absolute path of the folder.
    public let path: String

    public init(path: String) { self.path = path }

    /// The bytes of a file, and its age.
    public struct Content: Sendable {
        public var bytes: [UInt8]
        /// Seconds since the file's last modification, by this machine's clock.
        public var age: Int
    }

    /// Checks that the folder can be opened.
    /// - Throws: `FileFault`.
    public func check() throws { _ = try Descriptor.open(path, O_RDONLY | O_DIRECTORY) }

    /// Creates a mailbox if it is missing. Deletes temporary files of interrupted writes that are older than a day.
    /// - Throws: `FileFault`.
    public func create(_ mailbox: String) throws {
        let top = try Descriptor.open(path, O_RDONLY | O_DIRECTORY)
        let mode = try top.status().st_mode & 0o777
        guard top.use({ mkdirat($0, mailbox, mode) }) == 0 || errno == EEXIST else { throw FileFault.last }
        let folder = try open(mailbox)
        // The mode is set explicitly, because the umask removes permissions that are needed if a group shares the folder.
        if try folder.status().st_uid == geteuid() { _ = folder.use { fchmod($0, mode) } }
        var left: [String] = []
        try folder.entries { name, _ in
            if let name = Self.text(name), name.hasPrefix("."), name.hasSuffix(Self.temporarySuffix) { left.append(name) }
            return left.count < Self.maximumNames
        }
        for name in left {
            guard let status = try folder.status(of: name), status.isRegular, Self.age(status) > Self.temporaryLifetime else { continue }
            _ = folder.use { unlinkat($0, name, 0) }
        }
    }

    /// Returns names in a mailbox that `isWanted` accepts, sorted, at most `maximumNames`.
    /// - Throws: `FileFault`, such as `notFound` if there is no such mailbox.
    public func names(in mailbox: String, where isWanted: (String) -> Bool) throws -> [String] {
        var names: [String] = []
        try open(mailbox).entries { bytes, kind in
            guard kind == .file || kind == .unknown, let name = Self.text(bytes), isWanted(name) else { return true }
            names.append(name)
            if names.count >= 2 * Self.maximumNames {
                names.sort()
                names.removeLast(names.count - Self.maximumNames)
            }
            return true
        }
        return Array(names.sorted().prefix(Self.maximumNames))
    }

    /// Reads a file; `nil` if it does not exist, is not a regular file, or its size is not in `sizes`.
    /// - Throws: `FileFault`.
    public func read(_ name: String, in mailbox: String, sizes: ClosedRange<Int>) throws -> Content? {
        let file: Descriptor
        do throws(FileFault) {
            file = try Descriptor.open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, in: open(mailbox))
        } catch {
            guard error == .notFound || error == .notRegular else { throw error }
            return nil
        }
        let status = try file.status()
        guard status.isRegular, sizes.contains(Int(clamping: status.st_size)) else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        let count = try bytes.withUnsafeMutableBytes { buffer in try file.read(into: buffer, at: 0) }
        return Content(bytes: Array(bytes.prefix(count)), age: Self.age(status))
    }

    /// Whether a mailbox contains an entry of this name.
    public func contains(_ name: String, in mailbox: String) -> Bool { (try? open(mailbox).status(of: name)) ?? nil != nil }

    /// Writes a file under a temporary name, and renames it once it is durable. A file with the final name is replaced.
    /// - Throws: `FileFault`, such as `notFound` if there is no such mailbox.
    public func write(_ bytes: [UInt8], as name: String, in mailbox: String) throws {
        let folder = try open(mailbox)
        let temporary = ".\(name)\(Self.temporarySuffix)"
        _ = folder.use { unlinkat($0, temporary, 0) }
        let file = try Descriptor.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600, in: folder)
        do {
            try bytes.withUnsafeBytes { buffer in try file.write(buffer) }
            let mode = try folder.status().st_mode & 0o666
            _ = file.use { fchmod($0, mode) }
            try file.synchronize()
            guard folder.use({ renameat($0, temporary, $0, name) }) == 0 else { throw FileFault.last }
            try folder.synchronize()
        } catch {
            _ = folder.use { unlinkat($0, temporary, 0) }
            throw error
        }
    }

    /// Deletes a file, if it exists.
    /// - Returns: `false` if the file still exists.
    public func remove(_ name: String, in mailbox: String) -> Bool {
        guard let folder = try? open(mailbox) else { return false }
        return folder.use { unlinkat($0, name, 0) } == 0 || errno == ENOENT
    }

    /// Whether the folder is on NFS, SMB, FUSE or 9P. The kernel reports no changes that other machines make on such file systems.
    public var isOfNetwork: Bool { hexlist_is_on_network(path) != 0 }

    private func open(_ mailbox: String) throws(FileFault) -> Descriptor {
        guard !mailbox.isEmpty, !mailbox.hasPrefix("."), !mailbox.utf8.contains(UInt8(ascii: "/")) else { throw .notFound }
        let top = try Descriptor.open(path, O_RDONLY | O_DIRECTORY)
        return try Descriptor.open(mailbox, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, in: top)
    }

    private static func text(_ name: UnsafeBufferPointer<UInt8>) -> String? { String(validating: name, as: UTF8.self) }

    private static func age(_ status: stat) -> Int {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return max(0, now.tv_sec - status.st_mtim.tv_sec)
    }
}
