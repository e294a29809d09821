import Foundation
import HexlistModel
import TestSupport
import Testing

extension TwoMachines {
    @Suite("Files")
    struct Files {
        private struct TransferLine: Decodable, Sendable {
            var id: Int64
            var file: String
            var folder: String
            var state: String
            var reason: String?
            var waitingFor: String?
            var bytes: Int64
        }

        /// A folder for both hosts, which share the file system. It is removed with its contents.
        private static func withFolder(_ body: (URL) async throws -> Void) async throws {
            let folder = FileManager.default.temporaryDirectory.appending(path: "hexlist-files-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            try await body(folder)
        }

        /// Two machines that trust each other.
        private static func withFriends(_ body: (Lab, (one: String, other: String), URL) async throws -> Void) async throws {
            try await withFolder { folder in
                try await Lab.with("h1", "h2") { lab in
                    let uuid = try await lab.startAndMeet()
                    try await lab.trustEachOther(("h1", uuid.one), ("h2", uuid.other))
                    try await body(lab, uuid, folder)
                }
            }
        }

        private static func names(in folder: URL) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        }

        private static func newest(_ lab: Lab, _ host: String) async throws -> Int64 {
            let inbox: [HexRow] = try await lab.rows(host, "inbox")
            return try #require(inbox.first).id
        }

        @Test("files and a folder are sent and fetched, byte for byte")
        func sendAndFetch() async throws {
            try await Self.withFriends { lab, uuid, folder in
                let (from, to) = (folder.appending(path: "from"), folder.appending(path: "to"))
                try FileManager.default.createDirectory(at: to, withIntermediateDirectories: true)
                var random = SeededGenerator(seed: 5)
                let large = Data(random.bytes(5 << 20))
                let files: [String: Data] = [
                    "empty": Data(), "one.bin": Data([1]), "Größe 中文 📎.txt": Data("x".utf8), "photos/a.jpg": large,
                    "photos/2026/b c.jpg": Data("b".utf8),
                ]
                for (name, data) in files {
                    let path = from.appending(path: name)
                    try FileManager.default.createDirectory(at: path.deletingLastPathComponent(), withIntermediateDirectories: true)
                    try data.write(to: path)
                }
                let sent = try await lab.hexlist(
                    "h1", "send", "--to", uuid.other, "--description", "to look at", from.path + "/empty", from.path + "/one.bin",
                    from.path + "/Größe 中文 📎.txt", from.path + "/photos/")
                #expect(sent.out.contains("offered") && sent.out.contains("5 files, 5.0 MiB"), "\(sent)")
                #expect(sent.err.contains("keep this machine on until then. Hexlist has a copy"), "\(sent)")
                let hex = try await Self.newest(lab, "h2")
                let rows: [TransferLine] = try await lab.rows("h2", "fetch", "\(hex)", "--to", to.path)
                #expect(rows.count == files.count && rows.allSatisfy { $0.state == "done" }, "\(rows)")
                for (name, data) in files { #expect(try Data(contentsOf: to.appending(path: name)) == data, "\(name)") }
                #expect(try Self.names(in: to) == ["Größe 中文 📎.txt", "empty", "one.bin", "photos"].sorted())
                // A single file with text output: it is not fetched again, and gets another name if its own belongs to another file.
                let again = try await lab.hexlist("h2", "fetch", "\(hex)", "2", "--to", to.path)
                #expect(again.err.contains("1 file already here"), "\(again)")
                try Data([2]).write(to: to.appending(path: "one.bin"))
                let text = try await lab.hexlist("h2", "fetch", "\(hex)", "2", "--to", to.path)
                #expect(text.out.contains("one (2).bin"), "\(text)")
                #expect(try await lab.rows("h2", "transfers", as: TransferLine.self).isEmpty)
                #expect(try await lab.rows("h2", "transfers", "list", "--all", as: TransferLine.self).count == files.count + 1)
                try await lab.awaitEvent("h2", "transfer.done")
                try await lab.awaitEvent("h1", "offer.fetched")
                #expect(try await lab.hexlist("h1", "outbox", "--all").out.contains("fetched"))
            }
        }

        private struct EntryLine: Decodable, Sendable {
            var name: String
            var kind: String
            var size: Int64?
        }

        @Test("a folder shared with a peer is listed, fetched and linked into by that peer only")
        func shares() async throws {
            try await Self.withFriends { lab, uuid, folder in
                let (from, to) = (folder.appending(path: "photos"), folder.appending(path: "to"))
                let files = ["a.txt": "a", "2026/Größe 中文.jpg": "bb", "2026/c/d": ""]
                for (name, text) in files {
                    let path = from.appending(path: name)
                    try FileManager.default.createDirectory(at: path.deletingLastPathComponent(), withIntermediateDirectories: true)
                    try Data(text.utf8).write(to: path)
                }
                try FileManager.default.createDirectory(at: to, withIntermediateDirectories: true)
                let state = try await lab.path("state", on: "h1")
                for wrong in [state, state + "/..", folder.path + "/none", from.path + "/a.txt"] {
                    try await lab.hexlist("h1", "share", "add", wrong, expecting: 2)
                }
                try await lab.hexlist("h1", "share", "add", from.path, "--to", "nobody", expecting: 6)
                let added = try await lab.hexlist("h1", "share", "add", from.path, "--to", uuid.other)
                #expect(added.out.contains("is shared as photos with"), "\(added)")
                #expect(try await lab.hexlist("h1", "share").out.contains(from.path))
                #expect(try await lab.hexlist("h2", "services").out.contains("h1:"))
                #expect(try await lab.rows("h2", "files", "h1:", as: EntryLine.self).map(\.name) == ["photos"])
                #expect(
                    try await lab.rows("h2", "files", "h1:photos/", "--sort", "size", as: EntryLine.self).map(\.name) == ["a.txt", "2026"])
                for wrong in ["h1:photos/none", "h1:other", "nobody:"] {
                    try await lab.hexlist("h2", "files", wrong, expecting: 6)
                    try await lab.hexlist("h2", "fetch", wrong, "--to", to.path, expecting: 6)
                }
                let rows: [TransferLine] = try await lab.rows("h2", "fetch", "h1:photos/", "--to", to.path)
                #expect(rows.count == files.count && rows.allSatisfy { $0.state == "done" }, "\(rows)")
                for (name, text) in files {
                    #expect(try Data(contentsOf: to.appending(path: "photos/\(name)")) == Data(text.utf8), "\(name)")
                }
                let again = try await lab.hexlist("h2", "fetch", "h1:photos", "--to", to.path)
                #expect(again.err.contains("3 files already here"), "\(again)")
                let link = try await lab.hexlist("h1", "link", "shares:photos/2026/Größe 中文.jpg").out
                #expect(link.hasPrefix("hexlist://\(uuid.one)/share/photos/2026/"), "\(link)")
                try await lab.hexlist("h1", "link", "shares:photos/none", expecting: 1)
                try await lab.hexlist("h1", "send", "--to", uuid.other, "--file", "shares:photos/a.txt")
                let hex = try await Self.newest(lab, "h2")
                try await lab.hexlist("h2", "fetch", "\(hex)", "--to", to.path)
                #expect(try Data(contentsOf: to.appending(path: "a.txt")) == Data("a".utf8))
                try await lab.hexlist("h1", "share", "rm", "photos")
                try await lab.hexlist("h2", "files", "h1:photos", expecting: 6)
                try await lab.hexlist("h1", "share", "rm", "photos", expecting: 6)
            }
        }

        @Test("a shared folder of many small files is fetched; after a kill, named files are complete, and the rest follows")
        func manySmallFilesAndKills() async throws {
            try await Self.withFriends { lab, uuid, folder in
                let (folders, each) = LongTests.areWanted ? (200, 50) : (20, 40)
                let (from, to) = (folder.appending(path: "photos"), folder.appending(path: "to"))
                let data = { (number: Int) in Data((0..<4_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ number) }) }
                for number in 0..<folders {
                    let inner = from.appending(path: "d\(number)")
                    try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: true)
                    for file in 0..<each { try data(number * each + file).write(to: inner.appending(path: "f\(file)")) }
                }
                try FileManager.default.createDirectory(at: to, withIntermediateDirectories: true)
                try await lab.hexlist("h1", "share", "add", from.path)
                let body = #"{"service":"h1","path":"photos","to":"\#(to.path)"}"#
                _ = try await lab.post("h2", "/v1/transfers", body: Array(body.utf8))
                let there = { () throws -> [String] in
                    try FileManager.default.subpathsOfDirectory(atPath: to.path).filter { $0.contains("/f") && !$0.hasSuffix(".part") }
                }
                for part in 1...3 {
                    try await Patience.until(or: "nothing came") { try there().count > part * folders * each / 5 }
                    try await lab.kill(part == 2 ? "h1" : "h2")
                    for name in try there() {
                        #expect(try Data(contentsOf: to.appending(path: name)).count == 4_000, "\(name) is not whole")
                    }
                    try await lab.start(part == 2 ? "h1" : "h2")
                }
                try await Patience.until(or: "not all came") { try there().count == folders * each }
                for number in 0..<folders {
                    for file in 0..<each {
                        let path = to.appending(path: "photos/d\(number)/f\(file)")
                        #expect(try Data(contentsOf: path) == data(number * each + file))
                    }
                }
                try await Patience.until(or: "something partial is left") {
                    try !FileManager.default.subpathsOfDirectory(atPath: to.path).contains { $0.hasSuffix(".part") }
                }
            }
        }

        @Test("missing files and non-files of a peer are reported; a bare name is not a path")
        func wrongInput() async throws {
            try await Self.withFriends { lab, uuid, folder in
                try Data("x".utf8).write(to: folder.appending(path: "talk.pdf"))
                let bare = try await lab.exec(
                    "h1", "sh", "-c", "cd \(folder.path) && \(Checkout.programs)/hexlist send --to \(uuid.other) talk.pdf", expecting: 2)
                #expect(bare.err.contains("./talk.pdf"), "\(bare)")
                try await lab.hexlist("h1", "send", "--to", uuid.other, folder.path + "/nothing", expecting: 2)
                try await lab.hexlist("h1", "send", "--to", uuid.other, "/dev/null", expecting: 2)
                let state = try await lab.path("state", on: "h1")
                try await lab.hexlist("h1", "send", "--to", uuid.other, state, expecting: 2)
                try await lab.hexlist("h1", "send", "--to", uuid.other, "https://example.org/a")
                let hex = try await Self.newest(lab, "h2")
                try await lab.hexlist("h2", "fetch", "\(hex)", "--to", folder.path, expecting: 2)
                try await lab.hexlist("h2", "fetch", "99", "--to", folder.path, expecting: 6)
                try await lab.hexlist("h2", "transfers", "cancel", "99", expecting: 6)
                let sent = try await lab.hexlist("h1", "send", "--to", uuid.other, "--no-copy", folder.path + "/talk.pdf")
                #expect(sent.err.contains("keep this machine on and the file unchanged until then"), "\(sent)")
                let file = try await Self.newest(lab, "h2")
                try await lab.hexlist("h2", "fetch", "\(file)", "2", "--to", folder.path, expecting: 6)
                try await lab.hexlist("h2", "fetch", "\(file)", "--to", folder.path + "/nowhere", expecting: 2)
                try FileManager.default.removeItem(at: folder.appending(path: "talk.pdf"))
                let gone = try await lab.hexlist("h2", "fetch", "\(file)", "--to", folder.path, expecting: 1)
                #expect(gone.out.contains("it changed, was deleted or may not be read there"), "\(gone)")
                try await lab.awaitEvent("h1", "offer.failed")
                let rows = try await lab.hexlist("h1", "outbox", "--all")
                #expect(rows.out.contains("talk.pdf deleted or moved since it was sent"), "\(rows)")
            }
        }

        @Test("either side is killed during a transfer, and the file is complete at the end", arguments: ["h1", "h2"])
        func killed(_ host: String) async throws {
            try await Self.withFriends { lab, uuid, folder in
                let to = folder.appending(path: "to")
                try FileManager.default.createDirectory(at: to, withIntermediateDirectories: true)
                let file = folder.appending(path: "large.bin")
                var random = SeededGenerator(seed: 9)
                var data = Data(capacity: 300 << 20)
                var block = Data()
                while block.count < 1 << 20 { withUnsafeBytes(of: random.next()) { block.append(contentsOf: $0) } }
                for number in 0..<300 {
                    block[0] = UInt8(number & 0xFF)
                    data.append(block)
                }
                try data.write(to: file)
                try await lab.hexlist("h1", "send", "--to", uuid.other, file.path)
                let hex = try await Self.newest(lab, "h2")
                let body = #"{"hex":\#(hex),"to":"\#(to.path)"}"#
                _ = try await lab.post("h2", "/v1/transfers", body: Array(body.utf8))
                try await Patience.until(or: "nothing came") {
                    try Self.names(in: to).contains { name in
                        let size = (try? FileManager.default.attributesOfItem(atPath: to.path + "/" + name)[.size] as? Int) ?? 0
                        return name.hasSuffix(".part") && size ?? 0 > 1 << 20
                    }
                }
                try await lab.kill(host)
                try await lab.start(host)
                try await lab.awaitEvent("h2", "transfer.done")
                #expect(try Self.names(in: to) == ["large.bin"])
                #expect(try Data(contentsOf: to.appending(path: "large.bin")) == data)
            }
        }

        @Test(
            "an owner behind a firewall is asked to dial, and does",
            .enabled(if: nft != nil, "needs nft (Scripts/setup installs it)"))
        func ownerBehindFirewall() async throws {
            try await Self.withFriends { lab, uuid, folder in
                let to = folder.appending(path: "to")
                try FileManager.default.createDirectory(at: to, withIntermediateDirectories: true)
                for number in 0..<4 {
                    try Data(repeating: UInt8(number), count: 300_000).write(to: folder.appending(path: "\(number).bin"))
                }
                let rules = """
                    table inet wall {
                        chain input {
                            type filter hook input priority 0; policy accept;
                            iif != lo tcp flags & (syn | ack) == syn reject with tcp reset
                        }
                    }
                    """
                try await lab.run(["exec", "h1", try #require(Self.nft), "-f", "-"], input: Array(rules.utf8))
                // The existing session stays. Only new connections to the owner are refused.
                try await lab.hexlist("h1", "send", "--to", uuid.other, folder.path + "/0.bin", folder.path + "/1.bin")
                let two = try await Self.newest(lab, "h2")
                let rows: [TransferLine] = try await lab.rows("h2", "fetch", "\(two)", "--to", to.path, "--timeout", "120s")
                #expect(rows.count == 2 && rows.allSatisfy { $0.state == "done" }, "\(rows)")
                try await lab.hexlist("h1", "send", "--to", uuid.other, folder.path + "/2.bin", folder.path + "/3.bin")
                let more = try await Self.newest(lab, "h2")
                try await lab.hexlist("h2", "fetch", "\(more)", "--to", to.path, "--timeout", "120s")
                for number in 0..<4 {
                    #expect(try Data(contentsOf: to.appending(path: "\(number).bin")) == Data(repeating: UInt8(number), count: 300_000))
                }
            }
        }

        private static let nft = Program.path(of: "nft")

        @Test("an absent owner is waited for: fetch exits with 3, and the file arrives when the owner returns")
        func absent() async throws {
            try await Self.withFriends { lab, uuid, folder in
                let to = folder.appending(path: "to")
                try FileManager.default.createDirectory(at: to, withIntermediateDirectories: true)
                try Data("hello".utf8).write(to: folder.appending(path: "a.txt"))
                try await lab.hexlist("h1", "send", "--to", uuid.other, folder.path + "/a.txt")
                let hex = try await Self.newest(lab, "h2")
                try await lab.stop("h1")
                let waits = try await lab.hexlist("h2", "fetch", "\(hex)", "--to", to.path, "--timeout", "1s", expecting: 3)
                #expect(waits.out.contains("waiting") && waits.err.contains("hexlist transfers cancel"), "\(waits)")
                try await lab.start("h1")
                try await lab.awaitEvent("h2", "transfer.done")
                #expect(try Data(contentsOf: to.appending(path: "a.txt")) == Data("hello".utf8))
            }
        }
    }
}
