public import Glibc

/// A test's own folder, removed afterwards.
public struct TemporaryFolder: Sendable {
    public let path: String

    private struct Fault: Error {}

    /// Runs `body` with a new folder, which is removed afterwards. Its path is short, because a socket's path is limited to 107 bytes.
    public static func with<Result>(_ body: (TemporaryFolder) async throws -> Result) async throws -> Result {
        var template = Array("/tmp/hexapi.XXXXXX".utf8CString)
        guard let path = mkdtemp(&template).map({ String(cString: $0) }) else { throw Fault() }
        defer { removeTree(path) }
        return try await body(TemporaryFolder(path: path))
    }

    public func write(_ text: String, to name: String) throws {
        let descriptor = open("\(path)/\(name)", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        guard bytes.withUnsafeBytes({ Glibc.write(descriptor, $0.baseAddress, $0.count) }) == bytes.count else { throw Fault() }
    }

    public static func mode(_ path: String) -> mode_t? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : nil
    }

    /// Removes a folder with its contents. A symbolic link is removed and never followed.
    private static func removeTree(_ path: String) {
        var status = stat()
        if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, let folder = opendir(path) {
            while let entry = readdir(folder) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                    pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if name != ".", name != ".." { removeTree("\(path)/\(name)") }
            }
            closedir(folder)
        }
        remove(path)
    }
}
