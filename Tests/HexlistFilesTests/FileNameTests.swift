import HexlistModel
import HostileTexts
import Testing

@testable import HexlistFiles

@Suite("Names of received files") struct FileNameTests {
    @Test(
        "a name becomes one component that can be typed and shown",
        arguments: [
            ("talk.pdf", "talk.pdf"), ("größe 中文 👩‍👩‍👧.txt", "größe 中文 👩‍👩‍👧.txt"), ("שלום عالم.odt", "שלום عالم.odt"), ("", "file"), (".", "file"),
            ("..", "file"), ("...", "file"), ("-", "file"), (" ", "file"), (".profile", "profile"), ("..-. -rf", "rf"), ("--help", "help"),
            ("/etc/passwd", "_etc_passwd"), ("../../x", "_.._x"), ("a/b\\c", "a_b_c"), ("a\u{0}b", "a_b"), ("a\nb\tc", "a b c"),
            ("\u{1B}[31mred", "_[31mred"), ("\u{202E}gpj.exe", "_gpj.exe"), ("a\u{2066}b", "a_b"), ("\u{200D}.x", "x"), ("x  ", "x"),
            ("a\u{FFFD}b", "a_b"), ("\u{E000}", "_"), ("a\u{2028}b", "a b"), ("\u{3000}x\u{A0}y\u{3000}", "x\u{A0}y"),
        ])
    func cleaned(raw: String, name: String) { #expect(FileName(raw).description.utf8.elementsEqual(name.utf8), "\(FileName(raw))") }

    @Test("invalid UTF-8") func bytes() {
        #expect(FileName(bytes: Array("a".utf8) + [0xFF, 0xC0] + Array("b.txt".utf8)).description == "a__b.txt")
    }

    @Test("a number goes before the suffix")
    func numbers() {
        for (name, second) in [
            ("a.txt", "a (2).txt"), ("a", "a (2)"), ("a.tar.gz", "a (2).tar.gz"), ("tar.gz", "tar (2).gz"), ("x.TAR.xz", "x (2).TAR.xz"),
            ("a.b c", "a.b c (2)"), ("v1.2 (final)", "v1.2 (final) (2)"), ("a.", "a. (2)"),
            ("a.12345678901234567", "a.12345678901234567 (2)"),
        ] {
            #expect(FileName(name).numbered(2).description == second)
            #expect(FileName(name).numbered(1).description == name)
        }
    }

    @Test("a name has at most 255 bytes, is cut between characters, and keeps its suffix", arguments: ["a", "é", "中", "👩‍👩‍👧", "e\u{301}"])
    func cut(character: String) {
        for count in [10, 63, 84, 85, 127, 128, 254, 255, 256, 400, 3_000] {
            for suffix in ["", ".pdf", ".tar.gz"] {
                let raw = String(repeating: character, count: count) + suffix
                for name in [FileName(raw), FileName(raw).numbered(2), FileName(raw).numbered(10_000)] {
                    let text = name.description
                    #expect(text.utf8.count <= 255 && text.hasSuffix(suffix))
                    let stem = text.dropLast(suffix.count)
                    #expect(stem.prefix { $0 != " " }.allSatisfy { $0 == Character(character) })
                }
                if raw.utf8.count <= 255 { #expect(FileName(raw).description == raw) }
            }
        }
        #expect(FileName(String(repeating: "a", count: 600) + ".a b").description == String(repeating: "a", count: 255))
    }

    @Test("an overlong character and long hostile texts take linear time", .timeLimit(.minutes(20)))
    func long() {
        let marks = "a" + String(repeating: "\u{301}", count: 400_000)
        #expect((200...255).contains(FileName(marks).description.utf8.count))
        #expect(FileName(String(repeating: ".", count: 1_000_000)).description == "file")
    }

    @Test("no control character or separator remains")
    func hostile() {
        for text in HostileTexts.inContext {
            for name in [FileName(text), FileName(text).numbered(2)].map(\.description) + [FileName(text).partName("0a")] {
                #expect((1...255).contains(name.utf8.count) && SharePath.isName(name))
                #expect(name.unicodeScalars.allSatisfy { TerminalText.isShown($0) && $0 != "\\" })
            }
            let name = FileName(text).description
            #expect(!name.hasPrefix("-") && !name.hasPrefix(".") && !name.hasPrefix(" "))
            #expect(FileName(name).description.utf8.elementsEqual(name.utf8), "cleaning twice cleans more: \(name)")
        }
    }

    @Test("a free number is found in few attempts, however many are taken")
    func free() throws {
        var taken: Set<String> = []
        var looks = 0
        for number in 1...5_000 {
            let name = try FileName("a.txt").firstFree { name in
                looks += 1
                return taken.contains(name.description)
            }
            let found = try #require(name?.description)
            #expect(taken.insert(found).inserted && found == (number == 1 ? "a.txt" : "a (\(number)).txt"))
        }
        // Trying each number in turn took 12 million attempts.
        #expect(looks < 5_000 * 30, "\(looks)")
        // A free number is found even if the taken ones have gaps.
        for name in ["a (3).txt", "a (77).txt"] { taken.remove(name) }
        let other = try FileName("a.txt").firstFree { taken.contains($0.description) }
        #expect(other.map { !taken.contains($0.description) } ?? false)
        var all = 0
        let none = try FileName("a.txt").firstFree { _ in
            all += 1
            return true
        }
        #expect(none == nil && all <= 40)
    }

    @Test("the partial file's name is hidden, contains the id, and fits")
    func parts() {
        #expect(FileName("a.txt").partName("00ff") == ".a.txt.00ff.part")
        #expect(FileName("a").partName("../x") == ".a.x.part")
        let long = FileName(String(repeating: "中", count: 85)).partName(String(repeating: "f", count: 32))
        #expect(long.utf8.count <= 255 && long.hasSuffix(".\(String(repeating: "f", count: 32)).part"))
    }
}
