import Glibc
import HexlistModel
import HexlistSystem
import TestSupport
import Testing

@testable import HexlistFiles

@Suite("Shared and sent folders", .timeLimit(.minutes(5))) struct ShareTests {
    private static func path(_ names: String...) throws -> SharePath { try #require(SharePath(names)) }

    private static func content(_ opened: ShareRoot.Opened) throws -> String {
        guard case .file(let file) = opened else { throw TestFault() }
        var bytes = [UInt8](repeating: 0, count: 100)
        let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: 0) }
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }

    private static func names(_ opened: ShareRoot.Opened) throws -> [String] {
        guard case .folder(let folder) = opened else { throw TestFault() }
        return try folder.page().listing.entries.map(\.name)
    }

    /// A file outside the share; inside it a file, folders, links leading out and within, a pipe and hidden entries.
    private static func fill(_ folder: TemporaryFolder) throws -> String {
        let share = "\(folder.path)/share"
        try folder.write("secret", to: "secret")
        #expect(mkdir(share, 0o700) == 0 && mkdir("\(share)/sub", 0o700) == 0 && mkdir("\(share)/.hidden", 0o700) == 0)
        try folder.write("a", to: "share/a")
        try folder.write("b", to: "share/sub/b")
        try folder.write("h", to: "share/.hidden/h")
        try folder.write("d", to: "share/sub/.dot")
        #expect(symlink("../secret", "\(share)/out") == 0 && symlink("sub", "\(share)/within") == 0 && symlink("..", "\(share)/up") == 0)
        #expect(symlink("/proc/self/exe", "\(share)/magic") == 0 && mkfifo("\(share)/pipe", 0o600) == 0)
        return share
    }

    @Test("regular files and folders are listed, nothing outside the share", arguments: [false, true])
    func beneath(byHand: Bool) async throws {
        try await TemporaryFolder.with { folder in
            var root = ShareRoot(path: try Self.fill(folder))
            root.opensByHand = byHand
            #expect(try Self.content(root.open(Self.path("a"))) == "a")
            #expect(try Self.content(root.open(Self.path("sub", "b"))) == "b")
            #expect(try Self.names(root.open(.root)) == ["a", "sub"])
            #expect(try Self.names(root.open(Self.path("sub"))) == ["b"])
            let none: [[String]] = [
                ["none"], ["A"], ["out"], ["up"], ["up", "secret"], ["within"], ["within", "b"], ["magic"], ["pipe"], ["a", "b"],
                [".hidden"],
                [".hidden", "h"], ["sub", ".dot"], ["sub", "b", "c"], [String(repeating: "x", count: 255)], ["a\\..\\secret"],
            ]
            for names in none {
                #expect(throws: FileFault.notFound, "\(names)") { try root.open(try #require(SharePath(names))) }
            }
            var open = ShareRoot(path: root.path, showsHidden: true)
            open.opensByHand = byHand
            #expect(try Self.content(open.open(Self.path(".hidden", "h"))) == "h")
            #expect(try Self.names(open.open(.root)) == [".hidden", "a", "sub"])
            #expect(throws: FileFault.notFound) { try open.open(Self.path("out")) }
            #expect(throws: FileFault.notFound) { try ShareRoot(path: "\(folder.path)/none").open(.root) }
            #expect(throws: FileFault.notFound) { try ShareRoot(path: "\(folder.path)/secret").open(.root) }
        }
    }

    @Test("a folder replaced by a link after the listing is not followed", arguments: [false, true])
    func replaced(byHand: Bool) async throws {
        try await TemporaryFolder.with { folder in
            var root = ShareRoot(path: try Self.fill(folder))
            root.opensByHand = byHand
            _ = try root.open(Self.path("sub", "b"))
            #expect(rename("\(root.path)/sub", "\(folder.path)/moved") == 0 && symlink("../moved", "\(root.path)/sub") == 0)
            #expect(throws: FileFault.notFound) { try root.open(Self.path("sub", "b")) }
            #expect(throws: FileFault.notFound) { try root.open(Self.path("sub")) }
            // A link in place of a parent of the share is not followed either.
            for name in ["a", "a/s", "b", "b/s"] { #expect(mkdir("\(folder.path)/\(name)", 0o711) == 0) }
            try folder.write("x", to: "b/s/x")
            var above = ShareRoot(path: "\(folder.path)/a/s")
            above.opensByHand = byHand
            #expect(try Self.names(above.open(.root)) == [])
            #expect(rename("\(folder.path)/a", "\(folder.path)/c") == 0 && symlink("b", "\(folder.path)/a") == 0)
            #expect(throws: FileFault.notFound) { try above.open(.root) }
            #expect(throws: FileFault.notFound) { try above.open(Self.path("x")) }
        }
    }

    @Test("a long folder is read in steps of bounded size", arguments: FolderSortOrder.allCases)
    func steps(order: FolderSortOrder) async throws {
        try await TemporaryFolder.with { folder in
            let count = 2 * FolderPageReader.entriesAtOnce + 100
            for index in 0..<count { close(creat("\(folder.path)/\(index)", 0o600)) }
            guard case .folder(let list) = try ShareRoot(path: folder.path).open(.root) else { throw TestFault() }
            let reading = try list.reading(by: order)
            var (steps, page): (Int, SharedFolder.Page?) = (0, nil)
            while page == nil {
                page = try reading.step()
                steps += 1
            }
            #expect(steps == 3)
            let whole = try list.page(by: order).listing
            #expect(page?.listing.entries.map(\.name) == whole.entries.map(\.name) && page?.listing.next == whole.next)
            #expect(whole.entries.count == FolderListing.maximumEntries)
        }
    }

    @Test("a list has pages in name order; entries added behind the last page are included")
    func pages() async throws {
        try await TemporaryFolder.with { folder in
            for index in 0..<25 { try folder.write("\(index)", to: "f\(index)") }
            for name in ["größe", "中文", "Z", "z"] { #expect(mkdir("\(folder.path)/\(name)", 0o700) == 0) }
            let broken = (Array("\(folder.path)/x".utf8) + [0xFF, 0]).map { CChar(bitPattern: $0) }
            close(creat(broken, 0o600))
            defer { unlink(broken) }
            guard case .folder(let list) = try ShareRoot(path: folder.path).open(.root) else { throw TestFault() }
            var (seen, after, pages): ([String], String?, Int) = ([], nil, 0)
            repeat {
                let page = try list.page(after: after, limit: 7)
                #expect(page.listing.entries.count <= 7 && page.unreadable == 1)
                seen += page.listing.entries.map(\.name)
                after = page.listing.next
                pages += 1
                if pages == 1 { try folder.write("new", to: "zz") }
            } while after != nil
            let expected = ((0..<25).map { "f\($0)" } + ["größe", "中文", "Z", "z", "zz"]).sorted {
                $0.utf8.lexicographicallyPrecedes($1.utf8)
            }
            #expect(seen == expected && pages == 5)
            let file = try #require(try list.page(after: "f8", limit: 1).listing.entries.first)
            #expect(file.name == "f9" && file.kind == .file && file.size == 1 && (file.modified ?? 0) > 1_600_000_000_000)
            let last = try list.page(after: "größ", limit: 1).listing
            #expect(last.entries.first?.kind == .folder && last.entries.first?.size == nil && last.next == "größe")
        }
    }

    @Test("of 100 000 names at most two pages are in memory")
    func memory() throws {
        var random = SeededGenerator(seed: 3)
        let all = (0..<100_000).map { Array("\($0)".utf8) }.shuffled(using: &random)
        var names = FirstEntries(limit: 500, after: FolderCursor("5", .name))
        var most = 0
        for name in all {
            name.withUnsafeBufferPointer { names.insert(0, $0) }
            most = max(most, names.count)
        }
        #expect(most <= 1_000)
        let expected = (0..<100_000).map(String.init).filter { "5".utf8.lexicographicallyPrecedes($0.utf8) }.sorted().prefix(500)
        #expect(names.sorted().map { $0.text(.name) } == Array(expected))
    }

    @Test("by size and time: largest and newest first, ties by name, in pages", arguments: [1, 3, 100])
    func orders(limit: Int) async throws {
        try await TemporaryFolder.with { folder in
            for index in 0..<10 {
                try folder.write(String(repeating: "x", count: index / 2), to: "f\(index)")
                var times = [
                    timespec(tv_sec: 1_000_000_000 + index % 5, tv_nsec: 0), timespec(tv_sec: 1_000_000_000 + index % 5, tv_nsec: 0),
                ]
                #expect(utimensat(AT_FDCWD, "\(folder.path)/f\(index)", &times, 0) == 0)
            }
            #expect(mkdir("\(folder.path)/sub", 0o700) == 0)
            let list = { (order: FolderSortOrder) throws -> [String] in
                guard case .folder(let list) = try ShareRoot(path: folder.path).open(.root) else { throw TestFault() }
                var (seen, after): ([String], String?) = ([], nil)
                repeat {
                    let page = try list.page(by: order, after: after, limit: limit).listing
                    // The page as the requesting peer decodes it.
                    let read = try #require(FolderListing(jsonBytes: page.wireBytes, by: order, after: after))
                    seen += read.entries.map(\.name)
                    after = read.next
                } while after != nil
                return seen
            }
            #expect(try list(.size) == ["f8", "f9", "f6", "f7", "f4", "f5", "f2", "f3", "f0", "f1", "sub"])
            #expect(try list(.time) == ["sub", "f4", "f9", "f3", "f8", "f2", "f7", "f1", "f6", "f0", "f5"])
            #expect(FolderListing(jsonBytes: Array(#"{"entries":[],"next":"5:a"}"#.utf8), by: .size, after: "4:z") == nil)
            #expect(FolderListing(jsonBytes: Array(#"{"entries":[],"next":"4:za"}"#.utf8), by: .size, after: "4:z") != nil)
            let about = try ShareRoot(path: folder.path).about(Self.path("f9"))
            #expect(about.name == "f9" && about.size == 4 && about.modified == 1_000_000_004_000 && about.kind == .file)
            #expect(throws: FileFault.notFound) { try ShareRoot(path: folder.path).about(Self.path("f10")) }
        }
    }

    @Test("removing a test's folder does not follow links")
    func removal() async throws {
        try await TemporaryFolder.with { outside in
            try outside.write("kept", to: "file")
            try await TemporaryFolder.with { folder in #expect(symlink(outside.path, "\(folder.path)/link") == 0) }
            #expect(access("\(outside.path)/file", F_OK) == 0)
        }
    }

    // MARK: Lists

    @Test("a list is unchanged by writing and reading") func listings() throws {
        let entries = [
            FolderListing.Entry(name: "a\"\\\u{1B}b", kind: .file, size: 0, modified: -5, mediaType: "text/plain; charset=utf-8"),
            FolderListing.Entry(name: "größe", kind: .folder, modified: 1_767_323_045_678),
        ]
        let bytes = FolderListing(entries: entries, next: "größe").wireBytes
        let read = try #require(FolderListing(jsonBytes: bytes, after: "a"))
        #expect(read.wireBytes == bytes && read.leftOut == 0 && read.entries.count == 2)
        #expect(
            String(decoding: FolderListing(entries: [entries[1]]).wireBytes, as: UTF8.self)
                == #"{"entries":[{"name":"größe","kind":"folder","modified":1767323045678}]}"#)
        let longest = FolderListing(
            entries: Array(
                repeating: FolderListing.Entry(
                    name: String(repeating: "\u{1}", count: 255), kind: .file, size: .max, modified: 1,
                    mediaType: String(repeating: "x", count: 127)),
                count: FolderListing.maximumEntries))
        #expect(longest.wireBytes.count <= FolderListing.maximumBytes && FolderListing(jsonBytes: longest.wireBytes, after: nil) != nil)
    }

    @Test("unknown members are ignored, entries without a name are left out")
    func tolerant() throws {
        let json = #"""
            {"future":[1],"entries":[{"name":"a","kind":"file","size":"3","modified":1.5,"mediaType":"a\nb","x":{}},{"name":"..","kind":"file"},
            {"name":"a/b","kind":"file"},{"name":"","kind":"file"},{"name":"x","kind":"socket"},{"kind":"file"},7,null,{"name":"s","kind":"folder","size":3},
            {"name":"n","kind":"file","size":-1,"modified":99999999999999999}],"next":null}
            """#
        let read = try #require(FolderListing(jsonBytes: Array(json.utf8), after: nil))
        #expect(read.entries.map(\.name) == ["a", "s", "n"] && read.leftOut == 7 && read.next == nil)
        #expect(read.entries.allSatisfy { $0.size == nil && $0.modified == nil && $0.mediaType == nil })
    }

    @Test("an implausible number of entries is cut, so that sums cannot overflow")
    func greatNumbers() throws {
        let json = #"{"entries":[{"name":"..","kind":"file"}],"leftOut":9223372036854775807}"#
        let read = try #require(FolderListing(jsonBytes: Array(json.utf8), after: nil))
        #expect(read.unlisted == 4_294_967_296 && read.leftOut == 1)
    }

    @Test(
        "invalid lists",
        arguments: [
            "", "[]", "{}", #"{"entries":{}}"#, #"{"entries":[]"#, #"{"entries":[],"next":1}"#, #"{"entries":[],"next":".."}"#,
            #"{"entries":[],"next":"m"}"#,
            #"{"entries":[],"next":"a"}"#, #"{"entries":[],"next":""}"#, #"{"entries":["# + String(repeating: "1,", count: 500) + "1]}",
            #"{"entries":[],"x":""# + String(repeating: "x", count: 1 << 20) + "\"}",
        ])
    func noListings(json: String) { #expect(FolderListing(jsonBytes: Array(json.utf8), after: "m") == nil) }

    // MARK: Protected paths

    @Test("a path that is, contains or lies in a protected folder, in any spelling")
    func protected() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path
            for name in ["home", "home/state", "home/state/in", "home/other", "home/cache"] {
                #expect(mkdir("\(path)/\(name)", 0o700) == 0)
            }
            for name in ["home/state/file", "home/state/in/file", "home/other/file", "home/file"] { try folder.write("x", to: name) }
            #expect(symlink("state", "\(path)/home/link") == 0)
            let protected = ProtectedFolders(["\(path)/home/state", "\(path)/home/cache/hexlist", "/nowhere/at/all"])
            for inside in [
                "home", "home/state", "home/state/", "home/state/in", "home/state/file", "home/state/in/file", "home/link", "home/link/in",
                "home/link/file",
                "home/other/../state/in/file", "home/cache", ".",
            ] { #expect(throws: FileFault.protected, "\(inside)") { try protected.check("\(path)/\(inside)") } }
            for outside in ["home/other", "home/other/file", "home/file"] { try protected.check("\(path)/\(outside)") }
            #expect(throws: FileFault.protected) { try protected.check("/") }
            #expect(throws: FileFault.notFound) { try protected.check("\(path)/none") }
        }
    }

    @Test("a protected file and folders that contain it, by any name")
    func protectedFile() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path
            for name in ["home", "home/in", "other"] { #expect(mkdir("\(path)/\(name)", 0o700) == 0) }
            for name in ["home/in/config.yaml", "home/in/file", "other/file"] { try folder.write("x", to: name) }
            #expect(link("\(path)/home/in/config.yaml", "\(path)/other/link") == 0)
            let protected = ProtectedFolders(["\(path)/home/in/config.yaml"])
            for inside in ["home", "home/in", "home/in/config.yaml", "other/link"] {
                #expect(throws: FileFault.protected, "\(inside)") { try protected.check("\(path)/\(inside)") }
            }
            for outside in ["home/in/file", "other", "other/file"] { try protected.check("\(path)/\(outside)") }
        }
    }

    // MARK: Sending a folder

    @Test("a folder's files in name order, with sub-folders; other entries are counted")
    func walk() async throws {
        try await TemporaryFolder.with { folder in
            let share = try Self.fill(folder)
            try folder.write("123", to: "share/B")
            #expect(mkdir("\(share)/sub/deep", 0o700) == 0 && mkdir("\(share)/empty", 0o700) == 0)
            try folder.write("x", to: "share/sub/deep/x")
            let walk = try FolderWalk(path: share, maximumFiles: 10)
            #expect(walk.folders.map(\.name) == ["share", "empty", "sub", "deep"] && walk.folders.map(\.parent) == [nil, 0, 0, 2])
            #expect(walk.folders.map { $0.files.map(\.name) } == [["B", "a"], [], ["b"], ["x"]])
            #expect(walk.folders[3].files[0].path == "\(share)/sub/deep/x" && walk.fileCount == 4 && walk.size == 6)
            #expect(walk.skipped == FolderWalk.Skipped([.hidden: 2, .link: 4, .special: 1]))
            for file in walk.folders.flatMap(\.files) { try OfferedFile(path: file.path, remembered: file.identity).check() }
            #expect(throws: FileFault.tooManyFiles(most: 3)) { try FolderWalk(path: share, maximumFiles: 3) }
            #expect(throws: FileFault.tooDeep(most: 2)) { try FolderWalk(path: share, maximumFiles: 10, maximumLevels: 2) }
            _ = try FolderWalk(path: share, maximumFiles: 10, maximumLevels: 3)
            #expect(throws: FileFault.notFolder) { try FolderWalk(path: "\(share)/a", maximumFiles: 10) }
            #expect(throws: FileFault.notFound) { try FolderWalk(path: "\(share)/none", maximumFiles: 10) }
            #expect(throws: FileFault.protected) {
                try FolderWalk(path: share, maximumFiles: 10, protected: ProtectedFolders(["\(share)/sub/deep"]))
            }
            #expect(try FolderWalk(path: "\(share)/within", maximumFiles: 10).folders.first?.name == "within")
        }
    }

    @Test(
        "omitted entries are counted by cause",
        arguments: [
            (FileFault.notAllowed, FolderWalk.Cause.notAllowed as FolderWalk.Cause?), (.notFound, .changed), (.notRegular, .changed),
            (.notFolder, .changed),
            (.changed, .changed), (.tooShort(1), .changed), (.system(SystemError(code: EIO)), .failed),
            (.system(SystemError(code: ESTALE)), .failed), (.system(SystemError(code: EMFILE)), nil), (.diskFull, nil), (.cancelled, nil),
        ])
    func causes(fault: FileFault, cause: FolderWalk.Cause?) throws {
        var skipped = FolderWalk.Skipped()
        guard let cause else {
            #expect(throws: fault) { try skipped.add(fault, "a") }
            return
        }
        for number in 0..<20 { try skipped.add(fault, "\(number)") }
        #expect(skipped.counts == [cause: 20] && skipped.total == 20 && skipped.paths == (0..<10).map { "\($0)" })
    }

    @Test("folders without files are kept, at all levels")
    func emptyFolders() async throws {
        try await TemporaryFolder.with { folder in
            for name in ["a", "a/b", "a/b/c", "d", "d/e", "f"] { #expect(mkdir("\(folder.path)/\(name)", 0o700) == 0) }
            try folder.write("x", to: "d/e/x")
            try folder.write("x", to: "f/.hidden")
            let walk = try FolderWalk(path: folder.path, maximumFiles: 10)
            #expect(walk.skipped == FolderWalk.Skipped([.hidden: 1]) && walk.folders.allSatisfy(\.isRead))
            #expect(walk.folders.dropFirst().map(\.name) == ["a", "d", "f", "b", "e", "c"])
        }
    }

    @Test(
        "unreadable files are counted and named, like folders that cannot be opened or searched",
        .enabled(if: geteuid() != 0, "root may read everything"))
    func notAllowed() async throws {
        try await TemporaryFolder.with { folder in
            for name in ["closed", "blind"] { #expect(mkdir("\(folder.path)/\(name)", 0o700) == 0) }
            for name in ["a", "secret", "closed/x", "blind/y"] { try folder.write("x", to: name) }
            let modes: [(String, mode_t)] = [("secret", 0), ("closed", 0), ("blind", 0o400)]
            for (name, mode) in modes { #expect(chmod("\(folder.path)/\(name)", mode) == 0) }
            defer { for (name, _) in modes { _ = chmod("\(folder.path)/\(name)", 0o700) } }
            let walk = try FolderWalk(path: folder.path, maximumFiles: 10)
            let paths = ["closed", "blind/y", "secret"].map { "\(folder.path)/\($0)" }
            #expect(walk.folders.map(\.isRead) == [true, true, false])
            #expect(walk.skipped.counts[.notAllowed] == 3 && Set(walk.skipped.paths) == Set(paths) && walk.fileCount == 1)
        }
    }
}
