import Crypto
import Glibc
import TestSupport
import Testing

@testable import HexlistFiles

@Suite("Partial files", .timeLimit(.minutes(5))) struct PartFileTests {
    private static func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
        // Large files repeat a pattern whose period divides no chunk size.
        var random = SeededGenerator(seed: seed)
        var block: [UInt8] = []
        while block.count < min(count, 1 << 18) { withUnsafeBytes(of: random.next()) { block.append(contentsOf: $0) } }
        block.append(7)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + block.count)
        while bytes.count < count { bytes += block }
        return Array(bytes.prefix(count))
    }

    private static func specification(_ bytes: [UInt8], name: String = "a.bin", digest: Bool = true) -> PartFile.Specification {
        PartFile.Specification(
            name: FileName(name), id: "00ff", size: Int64(bytes.count), digest: digest ? Array(SHA256.hash(data: bytes)) : nil,
            modified: 1_700_000_000_123_456_789)
    }

    private static func append(_ bytes: some Sequence<UInt8>, to part: PartFile) throws {
        try Array(bytes).withUnsafeBytes { try part.append($0) }
    }

    private static func content(_ path: String) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        fstat(descriptor, &status)
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        let count = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
        return count == bytes.count ? bytes : nil
    }

    private static func names(_ folder: TemporaryFolder) -> [String] {
        guard let open = opendir(folder.path) else { return [] }
        defer { closedir(open) }
        var names: [String] = []
        while let entry = readdir(open) {
            names.append(
                String(
                    cString: UnsafeRawPointer(entry).advanced(by: MemoryLayout<dirent>.offset(of: \.d_name) ?? 0).assumingMemoryBound(
                        to: CChar.self)))
        }
        return names.filter { $0 != "." && $0 != ".." }.sorted()
    }

    @Test("a file written by another program keeps its time; one of another length is refused") func takenOver() async throws {
        try await TemporaryFolder.with { folder in
            var specification = Self.specification([1, 2, 3], digest: false)
            specification.hidesName = true
            let part = try PartFile(folder: folder.path, specification: specification)
            let path = "\(folder.path)/.remote.00ff.part"
            #expect(Self.names(folder) == [".remote.00ff.part"])
            #expect(try part.writtenBytes() == 0)
            for (text, fault) in [("ab", FileFault.tooShort(2)), ("abcd", .tooLong)] {
                try folder.write(text, to: ".remote.00ff.part")
                #expect(throws: fault) { _ = try part.takeOver() }
            }
            unlink(path)
            symlink("/etc/hostname", path)
            #expect(throws: FileFault.partLost) { _ = try part.takeOver() }
            unlink(path)
            try folder.write("abc", to: ".remote.00ff.part")
            let file = try part.takeOver()
            #expect(TemporaryFolder.mode(path) == 0o644)
            let placed = try VerifiedPartFile.place([VerifiedPartFile.Candidate(folder: folder.path, file: file)]) { _ in }
            #expect(try placed[0].get().name == "a.bin")
            #expect(Self.names(folder) == ["a.bin"])
            #expect(throws: FileFault.partLost) { _ = try part.takeOver() }
        }
    }

    @Test("a file of any size arrives unchanged, with time and mode", arguments: [0, 1, 1_000, 4 << 20, (4 << 20) + 1, 9_000_000])
    func whole(size: Int) async throws {
        try await TemporaryFolder.with { folder in
            let bytes = Self.bytes(size)
            let part = try PartFile(folder: folder.path, specification: Self.specification(bytes))
            #expect(TemporaryFolder.mode("\(folder.path)/.a.bin.00ff.part") == 0o600)
            for start in stride(from: 0, to: size, by: 70_001) { try Self.append(bytes[start..<min(size, start + 70_001)], to: part) }
            #expect(part.length == Int64(size) && part.digest == Array(SHA256.hash(data: bytes)))
            var told: [PartFile.Placement] = []
            let placement = try part.finish { told.append($0) }
            #expect(told == [placement] && placement.name == "a.bin" && Self.names(folder) == ["a.bin"])
            #expect(Self.content("\(folder.path)/a.bin") == bytes && TemporaryFolder.mode("\(folder.path)/a.bin") == 0o644)
            var status = stat()
            #expect(stat("\(folder.path)/a.bin", &status) == 0 && UInt64(status.st_ino) == placement.inode)
            #expect(status.st_mtim.tv_sec == 1_700_000_000 && status.st_mtim.tv_nsec == 123_456_789)
            #expect(throws: FileFault.partLost) { try part.finish() }
            #expect(throws: FileFault.partLost) { try Self.append([1], to: part) }
            #expect(try PartFile.recover(folder: folder.path, specification: part.specification, placement: placement) == .finished)
        }
    }

    @Test("times before 1970, and none; the umask")
    func times() async throws {
        try await TemporaryFolder.with { folder in
            var specification = Self.specification([])
            (specification.modified, specification.umask) = (-1, 0o077)
            _ = try PartFile(folder: folder.path, specification: specification).finish()
            var status = stat()
            #expect(stat("\(folder.path)/a.bin", &status) == 0 && status.st_mtim.tv_sec == -1 && status.st_mtim.tv_nsec == 999_999_999)
            #expect(status.st_mode & 0o777 == 0o600)
        }
    }

    @Test("no file is replaced: the next free number is used, even if the name is taken at the last moment")
    func names() async throws {
        try await TemporaryFolder.with { folder in
            try folder.write("mine", to: "a.bin")
            #expect(symlink("nowhere", "\(folder.path)/a (2).bin") == 0)
            let bytes = Self.bytes(10)
            let part = try PartFile(folder: folder.path, specification: Self.specification(bytes))
            try Self.append(bytes, to: part)
            var told: [String] = []
            let placement = try part.finish {
                told.append($0.name)
                if told.count == 1 { try folder.write("theirs", to: $0.name) }
            }
            #expect(told == ["a (3).bin", "a (4).bin"] && placement.name == "a (4).bin")
            #expect(Self.content("\(folder.path)/a.bin") == Array("mine".utf8) && Self.content("\(folder.path)/a (4).bin") == bytes)
        }
    }

    /// Removes the boot id from a partial file, or replaces it by another boot's.
    /// - Returns: whether it had a boot id.
    @discardableResult
    private static func mark(_ folder: TemporaryFolder, _ boot: String?) throws -> Bool {
        let file = try Descriptor.open("\(folder.path)/.a.bin.00ff.part", O_RDWR)
        let wasMarked = RebootCheck(of: file) == .now
        if let boot { _ = RebootCheck.set(boot, on: file) } else { RebootCheck.remove(from: file) }
        return wasMarked
    }

    @Test("within one boot all written bytes count; after a reboot only those known to be synced", .offPool)
    func marks() async throws {
        for (boot, there, good) in [
            ("now", 1, 1), ("now", 10_000_000, 10_000_000), ("another", 10_000_000, 0), ("another", (64 << 20) + 5, 64 << 20),
        ] {
            try await TemporaryFolder.with { folder in
                let bytes = Self.bytes((64 << 20) + 100)
                do {
                    let part = try PartFile(folder: folder.path, specification: Self.specification(bytes))
                    try Self.append(bytes.prefix(there), to: part)
                }
                // Some file systems have no extended attributes.
                if boot != "now", try !Self.mark(folder, boot) { return }
                let part = try PartFile(folder: folder.path, specification: Self.specification(bytes))
                let isMarked = try Self.mark(folder, nil)
                #expect(!isMarked || part.length == Int64(good))
                try Self.append(bytes[Int(part.length)...], to: part)
                _ = try part.finish()
                #expect(Self.content("\(folder.path)/a.bin") == bytes)
                #expect(try RebootCheck(of: Descriptor.open("\(folder.path)/a.bin", O_RDONLY)) == .none)
            }
        }
    }

    @Test("synced bytes are kept, and at most the last 4 MiB are fetched twice")
    func resumes() async throws {
        let stride = Int(PartFile.stride)
        for (there, good) in [
            (0, 0), (1, 0), (stride, 0), (stride + 1, stride), (2 * stride, stride), (2 * stride + 5, 2 * stride), (10_000_000, 2 * stride),
        ] {
            try await TemporaryFolder.with { folder in
                let bytes = Self.bytes(10_000_000)
                do {
                    let part = try PartFile(folder: folder.path, specification: Self.specification(bytes))
                    try Self.append(bytes.prefix(there), to: part)
                }
                try Self.mark(folder, nil)
                let part = try PartFile(folder: folder.path, specification: Self.specification(bytes))
                #expect(part.length == Int64(good))
                try Self.append(bytes[good...], to: part)
                _ = try part.finish()
                #expect(Self.content("\(folder.path)/a.bin") == bytes)
            }
        }
    }

    @Test("after a pause all bytes are synced")
    func suspends() async throws {
        try await TemporaryFolder.with { folder in
            let bytes = Self.bytes(5_000_000)
            var good: Int64 = 0
            do {
                let part = try PartFile(folder: folder.path, specification: Self.specification(bytes))
                try Self.append(bytes.prefix(1_234), to: part)
                good = try part.suspend()
            }
            #expect(good == 1_234)
            try Self.mark(folder, nil)
            do {
                let part = try PartFile(folder: folder.path, specification: Self.specification(bytes), knownGood: 1 << 40)
                #expect(part.length == 1_234)
                try Self.append(bytes[1_234..<4_900_000], to: part)
            }
            // The recorded length is shorter than the file.
            try Self.mark(folder, nil)
            let part = try PartFile(folder: folder.path, specification: Self.specification(bytes), knownGood: good)
            #expect(part.length == PartFile.stride)
            #expect(throws: FileFault.cancelled) {
                try PartFile(folder: folder.path, specification: Self.specification(bytes, name: "b"), knownGood: 0) { _ in false }
                    .suspend()
                throw FileFault.cancelled  // a new file has no bytes to read
            }
            try Self.append(bytes[Int(PartFile.stride)...], to: part)
            _ = try part.finish()
            #expect(Self.content("\(folder.path)/a.bin") == bytes)
        }
    }

    @Test("a file that differs from its announcement: longer, shorter, or other bytes")
    func announced() async throws {
        try await TemporaryFolder.with { folder in
            let bytes = Self.bytes(1_000)
            let part = try PartFile(folder: folder.path, specification: Self.specification(bytes))
            try Self.append(bytes.prefix(999), to: part)
            #expect(throws: FileFault.tooLong) { try Self.append([1, 2], to: part) }
            #expect(part.length == 999)
            #expect(throws: FileFault.tooShort(999)) { try part.finish() }
            try Self.append([bytes[999] ^ 1], to: part)
            #expect(throws: FileFault.otherBytes) { try part.finish { _ in Issue.record("it would be renamed") } }
            #expect(Self.names(folder).isEmpty)
            let other = try PartFile(folder: folder.path, specification: Self.specification(bytes, digest: false))
            try Self.append(bytes.reversed(), to: other)
            _ = try other.finish()
            #expect(Self.content("\(folder.path)/a.bin") == bytes.reversed())
        }
    }

    @Test("a partial file that is lost, replaced, taken over, or not a regular file of this user")
    func partial() async throws {
        try await TemporaryFolder.with { folder in
            let (bytes, path) = (Self.bytes(100), "\(folder.path)/.a.bin.00ff.part")
            let part = try PartFile(folder: folder.path, specification: Self.specification(bytes))
            try Self.append(bytes, to: part)
            #expect(throws: FileFault.partInUse) { try PartFile(folder: folder.path, specification: Self.specification(bytes)) }
            #expect(unlink(path) == 0)
            #expect(throws: FileFault.partLost) { try part.finish() }
            try folder.write("another", to: ".a.bin.00ff.part")
            #expect(throws: FileFault.partLost) { try part.finish() }
            part.discard()
            #expect(Self.content(path) == Array("another".utf8))  // not the file that was written
            PartFile.discard(folder: folder.path, specification: Self.specification(bytes))
            #expect(Self.names(folder).isEmpty)
            try folder.write("secret", to: "secret")
            #expect(symlink("secret", path) == 0)
            #expect(throws: FileFault.partInUse) { try PartFile(folder: folder.path, specification: Self.specification(bytes)) }
            #expect(unlink(path) == 0 && link("\(folder.path)/secret", path) == 0)
            #expect(throws: FileFault.partInUse) { try PartFile(folder: folder.path, specification: Self.specification(bytes)) }
            #expect(unlink(path) == 0 && mkfifo(path, 0o600) == 0)
            #expect(throws: FileFault.partInUse) { try PartFile(folder: folder.path, specification: Self.specification(bytes)) }
            PartFile.discard(folder: folder.path, specification: Self.specification(bytes))
            #expect(Self.content("\(folder.path)/secret") == Array("secret".utf8))
            #expect(throws: FileFault.notFound) { try PartFile(folder: "\(folder.path)/none", specification: Self.specification(bytes)) }
            #expect(throws: FileFault.notFound) { try PartFile(folder: "\(folder.path)/secret", specification: Self.specification(bytes)) }
        }
    }

    @Test("the inode shows whether a crash came before or after the rename")
    func adoption() async throws {
        try await TemporaryFolder.with { folder in
            let bytes = Self.bytes(100)
            let specification = Self.specification(bytes)
            let part = try PartFile(folder: folder.path, specification: specification)
            try Self.append(bytes, to: part)
            struct Crash: Error {}
            var noted: PartFile.Placement?
            #expect(throws: Crash.self) {
                try part.finish {
                    noted = $0
                    throw Crash()
                }
            }
            let placement = try #require(noted)
            #expect(try PartFile.recover(folder: folder.path, specification: specification, placement: placement) == .partial)
            // Another program created a file with the recorded name.
            try folder.write("mine", to: placement.name)
            #expect(try PartFile.recover(folder: folder.path, specification: specification, placement: placement) == .partial)
            #expect(try part.finish().name == "a (2).bin")
            #expect(try PartFile.recover(folder: folder.path, specification: specification, placement: placement) == .gone)
            // Both names exist, as after a rename on a file system that emulates it with links.
            let second = PartFile.Placement(name: "a (2).bin", device: placement.device, inode: placement.inode)
            #expect(link("\(folder.path)/a (2).bin", "\(folder.path)/.a.bin.00ff.part") == 0)
            #expect(try PartFile.recover(folder: folder.path, specification: specification, placement: second) == .finished)
            #expect(Self.names(folder) == ["a (2).bin", "a.bin"])
            #expect(throws: FileFault.notFound) {
                try PartFile.recover(folder: "\(folder.path)/none", specification: specification, placement: placement)
            }
        }
    }

    @Test("without space no file is begun, and nothing is lost")
    func reserve() async throws {
        try await TemporaryFolder.with { folder in
            var specification = Self.specification(Self.bytes(100))
            specification.minimumFree = .max
            #expect(throws: FileFault.diskFull) { try PartFile(folder: folder.path, specification: specification) }
            #expect(Self.names(folder).isEmpty)
            specification.minimumFree = 0
            specification.size = 1 << 60
            #expect(throws: FileFault.diskFull) { try PartFile(folder: folder.path, specification: specification) }
            #expect(Self.names(folder).isEmpty)
        }
    }

    /// Calls `body` with a folder on its own file system of 6 MiB.
    private static func withSmallDisk(_ body: (String) async throws -> Void) async throws {
        try await TemporaryFolder.with { folder in
            let disk = "\(folder.path)/disk"
            #expect(mkdir(disk, 0o700) == 0)
            try #require(mount("tmpfs", disk, "tmpfs", 0, "size=6m") == 0)
            defer { umount2(disk, Int32(MNT_DETACH)) }
            try await body(disk)
        }
    }

    @Test("a full disk keeps received bytes, and the transfer resumes once there is space", .enabled(if: geteuid() == 0 && canMount))
    func full() async throws {
        try await Self.withSmallDisk { disk in
            let bytes = Self.bytes(5 << 20)
            let part = try PartFile(folder: disk, specification: Self.specification(bytes))
            // Another program uses the space.
            let other = open("\(disk)/other", O_WRONLY | O_CREAT, 0o600)
            #expect(bytes.withUnsafeBytes { write(other, $0.baseAddress, 3 << 20) } == 3 << 20)
            close(other)
            #expect(throws: FileFault.diskFull) { try Self.append(bytes, to: part) }
            let length = Int(part.length)
            #expect((1 << 20..<4 << 20).contains(length))
            #expect(throws: FileFault.diskFull) { try Self.append(bytes[length...], to: part) }
            #expect(try part.suspend() == Int64(part.length))
            #expect(unlink("\(disk)/other") == 0)
            try Self.append(bytes[Int(part.length)...], to: part)
            _ = try part.finish()
            #expect(Self.content("\(disk)/a.bin") == bytes)
        }
    }

    private static let canMount: Bool = {
        var template = Array("/tmp/hexmount.XXXXXX".utf8CString)
        guard let path = mkdtemp(&template).map({ String(cString: $0) }) else { return false }
        defer { rmdir(path) }
        guard mount("tmpfs", path, "tmpfs", 0, "size=1m") == 0 else { return false }
        return umount2(path, Int32(MNT_DETACH)) == 0
    }()

    // MARK: Several files

    private static func whole(_ bytes: [UInt8], _ name: String, id: String, in folder: TemporaryFolder) throws -> VerifiedPartFile.Candidate
    {
        var specification = Self.specification(bytes, name: name)
        specification.id = id
        let written = VerifiedPartFile.write([VerifiedPartFile.Content(folder: folder.path, specification: specification, bytes: bytes)])
        return VerifiedPartFile.Candidate(folder: folder.path, file: try written[0].get())
    }

    @Test("complete files get the first free names in one step, recorded in advance; missing ones are reported")
    func together() async throws {
        try await TemporaryFolder.with { folder in
            try folder.write("taken", to: "b")
            let files = try [("a", "1"), ("a", "2"), ("b", "3"), ("c", "4")].map { try Self.whole([1, 2], $0.0, id: $0.1, in: folder) }
            #expect(unlink("\(folder.path)/.c.4.part") == 0)
            var noted: [String] = []
            let results = try VerifiedPartFile.place(files) { placements in
                noted = placements.map(\.placement.name)
                #expect(Self.names(folder) == [".a.1.part", ".a.2.part", ".b.3.part", "b"])
            }
            #expect(noted == ["a", "a (2)", "b (2)"] && Self.names(folder) == ["a", "a (2)", "b", "b (2)"])
            #expect(try results.prefix(3).map { try $0.get().name } == noted && results[3] == .failure(.partLost))
            #expect(Self.content("\(folder.path)/a (2)") == [1, 2] && Self.content("\(folder.path)/b") == Array("taken".utf8))
            #expect(TemporaryFolder.mode("\(folder.path)/a") == 0o644)
            #expect(
                try PartFile.recover(folder: folder.path, specification: files[1].file.specification, placement: results[1].get())
                    == .finished)
        }
    }

    @Test("a file whose name is not recorded gets none; a name taken at the last moment is not replaced")
    func notNoted() async throws {
        try await TemporaryFolder.with { folder in
            let files = try [("a", "1"), ("b", "2")].map { try Self.whole([1], $0.0, id: $0.1, in: folder) }
            #expect(throws: CancellationError.self) { try VerifiedPartFile.place(files) { _ in throw CancellationError() } }
            #expect(Self.names(folder) == [".a.1.part", ".b.2.part"])
            let results = try VerifiedPartFile.place(files) { _ in try folder.write("other", to: "a") }
            #expect(try results[0] == .failure(.noFreeName) && results[1].get().name == "b")
            #expect(Self.content("\(folder.path)/a") == Array("other".utf8) && Self.names(folder) == [".a.1.part", "a", "b"])
            // A file left by a kill between record and rename is fetched again.
            let placement = PartFile.Placement(name: "c", device: 1, inode: 1)
            #expect(try PartFile.recover(folder: folder.path, specification: files[0].file.specification, placement: placement) == .partial)
        }
    }

    @Test("of several small files each has its own error, and failed ones leave nothing behind")
    func written() async throws {
        try await TemporaryFolder.with { folder in
            let content = { (bytes: [UInt8], announced: [UInt8], id: String) in
                var specification = Self.specification(announced)
                specification.id = id
                return VerifiedPartFile.Content(folder: folder.path, specification: specification, bytes: bytes)
            }
            var (full, away) = (content([1], [1], "6"), content([1], [1], "7"))
            full.specification.minimumFree = .max
            away.folder += "/away"
            let left = try PartFile(folder: folder.path, specification: content([9, 9], [9, 9], "5").specification)
            try Self.append([9], to: left)
            let results = VerifiedPartFile.write([
                content([1, 2], [1, 2], "1"), content([1], [1, 2], "2"), content([1, 2, 3], [1, 2], "3"), content([1, 3], [1, 2], "4"),
                content([9, 9], [9, 9], "5"), full, away, content([], [], "8"),
            ])
            #expect((try? results[0].get()) != nil && (try? results[7].get()) != nil)
            let faults = results.map { result in if case .failure(let fault) = result { fault } else { nil as FileFault? } }
            // The fifth file is in use by another fetch.
            #expect(faults == [nil, .tooShort(1), .tooLong, .otherBytes, .partInUse, .diskFull, .notFound, nil])
            left.discard()
            #expect(Self.names(folder).count == 2)
            try folder.write("left", to: content([9, 9], [9, 9], "5").specification.partName)
            #expect((try? VerifiedPartFile.write([content([9, 9], [9, 9], "5")])[0].get()) != nil)
        }
    }

    @Test("two folders whose names look the same are different")
    func twoForms() async throws {
        try await TemporaryFolder.with { folder in
            let paths = ["\(folder.path)/\u{E9}", "\(folder.path)/e\u{301}"]
            for path in paths { #expect(mkdir(path, 0o700) == 0) }
            let contents = (1...2).map { number in
                VerifiedPartFile.Content(
                    folder: paths[number - 1], specification: Self.specification([UInt8(number)], name: "a"), bytes: [UInt8(number)])
            }
            let files = try VerifiedPartFile.write(contents).enumerated().map {
                VerifiedPartFile.Candidate(folder: paths[$0], file: try $1.get())
            }
            #expect(try VerifiedPartFile.place(files) { _ in }.map { try $0.get().name } == ["a", "a"])
            #expect(paths.map { Self.content("\($0)/a") } == [[1], [2]])
        }
    }

    @Test("reserved but unused space is available to the next file", .enabled(if: geteuid() == 0 && canMount))
    func roomTogether() async throws {
        try await Self.withSmallDisk { disk in
            let contents = (0..<3).map { number in
                var specification = Self.specification(Self.bytes(4 << 20), name: "\(number)")
                if number == 0 { specification.digest?[0] ^= 1 }
                return VerifiedPartFile.Content(folder: disk, specification: specification, bytes: Self.bytes(4 << 20))
            }
            let results = VerifiedPartFile.write(contents)
            #expect((try? results[1].get()) != nil)
            #expect(throws: FileFault.otherBytes) { try results[0].get() }
            #expect(throws: FileFault.diskFull) { try results[2].get() }
        }
    }
}

@Suite struct DigestFolderTests {
    @Test("a pool file is filled from another file, deleted only if unused, and moved")
    func life() async throws {
        try await TemporaryFolder.with { folder in
            let source = Array(repeating: UInt8(7), count: 5 << 20 | 3)
            try folder.write(String(decoding: source, as: UTF8.self), to: "source")
            let file = try OfferedFile(path: "\(folder.path)/source")
            let digest = try FileDigest.sha256(of: file)
            let (cache, kept) = (DigestFolder(path: "\(folder.path)/a/cache"), DigestFolder(path: "\(folder.path)/kept"))
            try cache.make(digest)
            try cache.make(digest)
            let specification = PartFile.Specification(
                name: FileName("x.txt"), id: "1", size: file.size, digest: digest, modified: nil, umask: 0o177)
            do {
                let part = try PartFile(folder: cache.folder(of: digest), specification: specification)
                try part.fill(from: file)
                #expect(part.digest == digest)
                _ = try part.finish()
            }
            #expect(cache.digests() == [digest])
            do {
                let open = try #require(cache.open(digest, name: "x.txt"))
                #expect(open.size == file.size && open.identity.inode != file.identity.inode)
                #expect(!cache.removeUnused(digest, name: "x.txt"))
            }
            try cache.move(digest, name: "x.txt", to: kept)
            #expect(cache.digests().isEmpty && kept.open(digest, name: "x.txt") != nil)
            // A child process that another test forks at this moment shares all open descriptors briefly.
            try await eventually { kept.removeUnused(digest, name: "x.txt") }
            #expect(kept.digests().isEmpty)
            #expect(kept.removeUnused(digest, name: "x.txt"))  // already removed
            // A fetched file whose bytes differ from the announced digest.
            try folder.write("short", to: "short")
            try cache.make(digest)
            let second = try PartFile(folder: cache.folder(of: digest), specification: specification)
            let short = try OfferedFile(path: "\(folder.path)/short")
            #expect(throws: FileFault.changed) { try second.fill(from: short) }
            second.discard()
            cache.remove(digest)
            #expect(cache.digests().isEmpty)
        }
    }
}
