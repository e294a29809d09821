internal import CLinux

#if canImport(Glibc)
    internal import Glibc
#endif

/// Whether the machine was restarted since a partial file was last written. The kernel's boot ID is recorded in an extended attribute of
/// the file. Without a restart, all written bytes can still be read, even if the process was killed.
enum RebootCheck {
    /// Unknown, because the attribute is missing: the file system does not support it, or an older version of Hexlist wrote the file.
    case none
    /// The machine was not restarted.
    case now
    /// The machine was restarted.
    case earlier

    private static let name = "user.hexlist.boot"
    /// The kernel's boot ID, a UUID; `nil` if it cannot be read.
    private static let current = read()

    /// Compares the attribute of a file with the kernel's boot ID.
    init(of file: Descriptor) {
        var bytes = [CChar](repeating: 0, count: 64)
        let count = file.use { hexlist_get_attribute($0, Self.name, &bytes, bytes.count) }
        guard count >= 0, let current = Self.current else {
            self = .none
            return
        }
        self = bytes.prefix(Int(count)).map { UInt8(bitPattern: $0) } == Array(current.utf8) ? .now : .earlier
    }

    /// Sets the attribute of a file to the kernel's boot ID, or in tests to another one.
    /// - Returns: whether the attribute was set.
    static func set(_ boot: String? = current, on file: Descriptor) -> Bool {
        guard let boot else { return false }
        return file.use { hexlist_set_attribute($0, name, boot) } == 0
    }

    static func remove(from file: Descriptor) { _ = file.use { hexlist_remove_attribute($0, name) } }

    private static func read() -> String? {
        let path = "/proc/sys/kernel/random/boot_id"
        guard let file = try? Descriptor.open(path, O_RDONLY) else { return nil }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = bytes.withUnsafeMutableBytes { buffer in file.use { Glibc.read($0, buffer.baseAddress, buffer.count) } }
        guard count > 30 else { return nil }
        return String(decoding: bytes[..<count].prefix { $0 > 0x20 }, as: UTF8.self)
    }
}
