internal import CLinux

#if canImport(Glibc)
    internal import Glibc
#endif

/// The run of the machine in which a partial file was last written, as an attribute of the file says. As long as the machine has not been
/// started anew, all that was written to the file is there, whatever ended the process.
enum BootID {
    /// The file says nothing: the file system has no attributes, or it is of an earlier version.
    case none
    /// The machine still runs.
    case now
    /// The machine was started anew since then.
    case earlier

    private static let name = "user.hexlist.boot"
    /// The kernel's name of this run of the machine, a UUID; `nil` where it does not tell.
    private static let current = read()

    init(of file: Descriptor) {
        var bytes = [CChar](repeating: 0, count: 64)
        let count = file.use { hexlist_get_attribute($0, Self.name, &bytes, bytes.count) }
        guard count >= 0, let current = Self.current else {
            self = .none
            return
        }
        self = bytes.prefix(Int(count)).map { UInt8(bitPattern: $0) } == Array(current.utf8) ? .now : .earlier
    }

    /// Marks a file with the present run, or, in tests, with another.
    /// - Returns: whether it has the mark.
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
