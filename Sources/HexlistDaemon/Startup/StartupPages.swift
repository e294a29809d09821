#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Start-up runs once through much of the program: the runtime's tables, Foundation, TLS. What of that is only mapped from
/// the program's file is given back when the daemon is ready; what is needed again comes back from the page cache.
///
/// Halves the resident memory of an idle daemon. Memory the program wrote to is not touched.
enum StartupPages {
    static func giveBack() {
        guard let program = programPath(), let maps = try? SmallFile.read("/proc/self/maps", limit: 1 << 20, mustExist: false)
        else { return }
        for line in maps.split(separator: "\n") where line.hasSuffix(program) {
            // 55dca9420000-55dcac249000 r-xp 00000000 fe:00 16730437    /usr/bin/hexlistd
            let fields = line.split(separator: " ", maxSplits: 2)
            guard fields.count == 3, fields[1] == "r-xp" else { continue }
            let range = fields[0].split(separator: "-").compactMap { UInt(String($0), radix: 16) }
            guard range.count == 2, range[0] < range[1], let start = UnsafeMutableRawPointer(bitPattern: range[0]) else { continue }
            _ = madvise(start, Int(range[1] - range[0]), MADV_DONTNEED)
        }
    }

    private static func programPath() -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
            guard let start = buffer.baseAddress else { return nil }
            let count = readlink("/proc/self/exe", start, buffer.count)
            return count > 0 ? String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self) : nil
        }
    }
}
