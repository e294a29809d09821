import HexlistModel

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Reads and writes the file with the private key. Other users can never read the file, and a file that exists is always complete.
enum IdentityFile {
    /// Maximum bytes of the file. A P-256 key with its certificate takes about 900.
    private static let largest = 64 << 10

    /// Reads the file.
    /// - Returns: `nil` if there is no such file.
    /// - Throws: `HexlistError` `identity` if the file cannot be used.
    static func read(_ path: String) throws -> [UInt8]? {
        // With O_NONBLOCK, a FIFO in place of the file does not block the start of the daemon.
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else {
            let code = errno
            switch code {
            case ENOENT: return nil
            case ELOOP: throw unusable(path, "is a symbolic link", hint: "Put the file itself there.")
            case EACCES:
                throw unusable(path, "cannot be read by this user", hint: "Run hexlistd as the user that owns \(path).")
            default: throw failure("open", path, code)
            }
        }
        defer { close(file) }
        var state = stat()
        guard fstat(file, &state) == 0 else { throw failure("examine", path, errno) }
        try check(state, path)
        var bytes = [UInt8](repeating: 0, count: largest + 1)
        var count = 0
        while count < bytes.count {
            let got = bytes.withUnsafeMutableBytes { Self.readSome(file, UnsafeMutableRawBufferPointer(rebasing: $0[count...])) }
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else { throw failure("read", path, errno) }
            if got == 0 { break }
            count += got
        }
        guard count <= largest else { throw unusable(path, "is too long to be an identity", hint: restore) }
        return Array(bytes.prefix(count))
    }

    private static func readSome(_ file: CInt, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
        #if canImport(Darwin)
            Darwin.read(file, buffer.baseAddress, buffer.count)
        #elseif canImport(Musl)
            Musl.read(file, buffer.baseAddress, buffer.count)
        #else
            Glibc.read(file, buffer.baseAddress, buffer.count)
        #endif
    }

    private static func check(_ state: stat, _ path: String) throws {
        guard state.st_mode & S_IFMT == S_IFREG else { throw unusable(path, "is not a file", hint: restore) }
        guard state.st_uid == geteuid() else {
            throw unusable(
                path, "belongs to user \(state.st_uid), and hexlistd runs as user \(geteuid())",
                hint: "Run hexlistd as the user that owns the file, or give the file to this user with `chown`.")
        }
        guard state.st_mode & 0o077 == 0 else {
            throw unusable(
                path, "can be read or changed by other users (mode \(String(state.st_mode & 0o777, radix: 8)))",
                hint: "If nobody else has used it, run `chmod 600 \(path)`.")
        }
        guard state.st_size > 0 else { throw unusable(path, "is empty", hint: restore) }
        guard state.st_size <= largest else { throw unusable(path, "is too long to be an identity", hint: restore) }
    }

    /// Writes and syncs a temporary file, then renames it.
    /// - Throws: `HexlistError` `identity` if the file exists or cannot be written.
    static func create(_ path: String, in folder: String, contents: [UInt8]) throws {
        var state = stat()
        guard lstat(path, &state) != 0 else {
            throw unusable(
                path, "exists already",
                hint: "It is never overwritten. To make a new identity, move it away and run `hexlistd --begin-anew`.")
        }
        guard errno == ENOENT else { throw failure("examine", path, errno) }
        try put(path, contents)
        try synchronize(folder)
    }

    /// Writes the file as `create` does, but replaces an existing file. If syncing the folder fails after the rename, the error is ignored.
    /// The old file may then be back after a power failure.
    /// - Throws: `HexlistError` `identity` if the file cannot be written. The old file then stays.
    static func replace(_ path: String, in folder: String, contents: [UInt8]) throws {
        try put(path, contents)
        try? synchronize(folder)
    }

    private static func put(_ path: String, _ contents: [UInt8]) throws {
        let temporary = path + ".new"
        unlink(temporary)  // exists if a process was killed before its rename
        do {
            try write(contents, to: temporary)
            guard rename(temporary, path) == 0 else { throw failure("create", path, errno) }
        } catch {
            unlink(temporary)
            throw error
        }
    }

    private static func write(_ contents: [UInt8], to path: String) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw failure("create", path, errno) }
        defer { close(file) }
        // The mode is set to exactly 0600, because the umask may have removed bits when the file was created.
        guard fchmod(file, 0o600) == 0 else { throw failure("protect", path, errno) }
        var written = 0
        while written < contents.count {
            let count = contents.withUnsafeBytes { writeSome(file, UnsafeRawBufferPointer(rebasing: $0[written...])) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failure("write", path, errno) }
            written += count
        }
        guard fsync(file) == 0 else { throw failure("write", path, errno) }
    }

    private static func writeSome(_ file: CInt, _ buffer: UnsafeRawBufferPointer) -> Int {
        #if canImport(Darwin)
            Darwin.write(file, buffer.baseAddress, buffer.count)
        #elseif canImport(Musl)
            Musl.write(file, buffer.baseAddress, buffer.count)
        #else
            Glibc.write(file, buffer.baseAddress, buffer.count)
        #endif
    }

    /// Syncs the folder, so that the name of the file is durable as well.
    private static func synchronize(_ folder: String) throws {
        let directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw failure("open", folder, errno) }
        defer { close(directory) }
        guard fsync(directory) == 0 || errno == EINVAL else { throw failure("write", folder, errno) }  // EINVAL: not supported for folders
    }

    /// The hint for a file that cannot be used. Moving it away is not enough: if a used store has no identity, the daemon does not start.
    static let restore =
        "Put back a copy of this file. If you have none, move it away and run `hexlistd --begin-anew` for a new identity, which other peers "
        + "have to trust again."

    private static func unusable(_ path: String, _ what: String, hint: String) -> HexlistError {
        HexlistError(.identity, "\(path) \(what).", hint: hint)
    }

    private static func failure(_ verb: String, _ path: String, _ code: CInt) -> HexlistError {
        HexlistError(
            .identity, "Could not \(verb) \(path): \(String(cString: strerror(code))).",
            hint: "Check that the state folder exists, is on a disk with free space, and belongs to the user that runs hexlistd.")
    }
}
