import HexlistModel
import HostileTexts
import TestSupport
import Testing

@testable import HexlistFiles

@Suite("Links to files, and request targets") struct FileLinkTests {
    private static let peer = "5E3C0000-0000-8000-8000-00000000000A"
    private static let digits = "00112233445566778899aabbccddeeff"

    private static func peerID() throws -> PeerID { try #require(PeerID(peer)) }
    private static func offer() throws -> OfferID { try #require(OfferID(digits)) }

    @Test("an offer's name is 32 hex digits; either case is read, lower case is written")
    func offers() throws {
        #expect(try Self.offer().description == Self.digits)
        #expect(OfferID(Self.digits.uppercased()) == OfferID(Self.digits))
        for none in ["", "0", Self.digits + "0", String(Self.digits.dropLast()) + "g", String(Self.digits.dropLast()) + " "] {
            #expect(OfferID(none) == nil, "\(none)")
        }
        var random = SeededGenerator(seed: 1)
        let (first, second) = (OfferID.random(using: &random), OfferID.random(using: &random))
        #expect(first != second && OfferID(first.description) == first && first.bytes.count == 16)
        #expect(OfferID(bytes: [1, 2]) == nil && OfferID(bytes: first.bytes) == first)
    }

    @Test(
        "both forms of a link are unchanged by writing and reading",
        arguments: ["talk.pdf", "", "größe 中文 👩‍👩‍👧.txt", "a/b?c#d%e", "..", "\u{202E}gpj.exe"])
    func links(name: String) throws {
        let link = FileLink(peer: try Self.peerID(), target: .offer(try Self.offer(), name: name))
        let read = try #require(FileLink(link.description))
        #expect(read == link && link.description.utf8.allSatisfy { (0x21...0x7E).contains($0) })
        guard case .offer(_, let again) = read.target else { throw TestFault() }
        #expect(again.utf8.elementsEqual(name.utf8))
        #expect(link.requestTarget == "/offers/\(Self.digits)")
    }

    @Test("links into shares, with and without a path")
    func shares() throws {
        let path = try #require(SharePath(["2026", "größe", "a b.txt"]))
        let link = FileLink(peer: try Self.peerID(), target: .share(name: "talks", path: path))
        #expect(link.description == "hexlist://\(Self.peer)/share/talks/2026/gr%C3%B6%C3%9Fe/a%20b.txt")
        #expect(link.requestTarget == "/shares/talks/2026/gr%C3%B6%C3%9Fe/a%20b.txt")
        #expect(FileLink(link.description) == link)
        let root = FileLink(peer: try Self.peerID(), target: .share(name: "talks", path: .root))
        #expect(root.description == "hexlist://\(Self.peer)/share/talks" && FileLink(root.description) == root)
        #expect(FileLink("\(root.description)/") == root)
        #expect(FileLink("\(link.description)/") == link)
        #expect(FileLink("HEXLIST://\(Self.peer.lowercased())/\(Self.digits.uppercased())/x")?.requestTarget == "/offers/\(Self.digits)")
    }

    @Test(
        "invalid links",
        arguments: [
            "", "hexlist:", "hexlist://", "hexlist://peer/AB", "http://5E3C0000-0000-8000-8000-00000000000A/share/x",
            "hexlist://5E3C0000-0000-8000-8000-00000000000A", "hexlist://5E3C0000-0000-8000-8000-00000000000A/",
            "hexlist://5E3C0000-0000-8000-8000-00000000000A/share", "hexlist://5E3C0000-0000-8000-8000-00000000000A/share/",
            "hexlist://5E3C0000-0000-8000-8000-00000000000A/Share/x", "hexlist://5E3C0000-0000-8000-8000-00000000000A/0011/x",
            "hexlist://5E3C0000-0000-8000-8000-00000000000A:1/share/x", "hexlist://u@5E3C0000-0000-8000-8000-00000000000A/share/x",
            "hexlist://5E3C0000-0000-8000-8000-00000000000A/share/x//y", "hexlist://5E3C0000-0000-8000-8000-00000000000A/share/x/..",
            "hexlist://5E3C0000-0000-8000-8000-00000000000A/share/x/y//", "hexlist://5E3C0000-0000-8000-8000-00000000000A/share/x?y",
            "hexlist://5E3C0000-0000-8000-8000-00000000000A/00112233445566778899aabbccddeeff/a/b",
            "hexlist://5E3C0000-0000-8000-8000-00000000000A/00112233445566778899aabbccddeeff/a?b",
            "hexlist://5E3C0000-0000-8000-8000-00000000000A/00112233445566778899aabbccddeeff/%FF",
            "hexlist://5E3C0000-0000-8000-8000-00000000000A/00112233445566778899aabbccddeeff/é",
        ])
    func noLinks(text: String) { #expect(FileLink(text) == nil) }

    @Test("the length of a link is bounded when reading and writing")
    func bounds() throws {
        let long = FileLink(peer: try Self.peerID(), target: .offer(try Self.offer(), name: String(repeating: "é", count: 9_000)))
        #expect(long.description.utf8.count <= FileLink.maximumBytes && FileLink(long.description) != nil)
        #expect(FileLink("hexlist://\(Self.peer)/\(Self.digits)/" + String(repeating: "a", count: FileLink.maximumBytes)) == nil)
    }

    // MARK: Requests

    @Test(
        "a request target is read and written",
        arguments: [
            "/offers/00112233445566778899aabbccddeeff", "/shares", "/shares/a", "/shares/a/b",
            "/shares/a/b/c%20d?after=x%2Fy".replacing("%2F", with: "%25"),
            "/shares/a?after=%C3%A9", "/shares/a/b?sort=size", "/shares/a?sort=time&after=-5%3Ab%3Ac", "/shares/a/b?about", "/shares/...",
            "/shares/a/.hidden", "/shares/a/%5C",
        ])
    func targets(text: String) throws { #expect(try #require(FileRequestTarget(text)).description == text) }

    @Test(
        "an unusual target gets a 404",
        arguments: [
            "", "/", "*", "//", "/offers", "/offers/", "/offers/00112233445566778899AABBCCDDEEFF",
            "/Offers/00112233445566778899aabbccddeeff",
            "/offers/00112233445566778899aabbccddeeff/", "/offers/00112233445566778899aabbccddeeff?x",
            "/offers/%3000112233445566778899aabbccddeef",
            "/offers/../shares", "http://h/shares", "/shares/", "/shares?", "/shares//", "/shares/a/", "/shares/a//b", "/shares/a/b/",
            "/shares/.", "/shares/..", "/shares/a/..", "/shares/a/../b", "/shares/a/./b", "/shares/%2e%2e", "/shares/a/%2E%2E/b",
            "/shares/a/.%2e",
            "/shares/a/%2e", "/shares/a/x%2etxt", "/shares/a/b%2Fc", "/shares/a%2fb", "/shares/a/%00", "/shares/a/b%00.txt", "/shares/a/%",
            "/shares/a/%2", "/shares/a/%zz", "/shares/a/%C0%AE%C0%AE", "/shares/a/%E0%80%AF", "/shares/a/%FF", "/shares/a/%ED%A0%80",
            "/shares/a/b\\c", "/shares/a/b c", "/shares/a/é", "/shares/a#b", "/shares/a?after", "/shares/a?after=", "/shares/a?after=..",
            "/shares/a?about=", "/shares/a?about&after=b", "/shares?about", "/shares/a?sort=", "/shares/a?sort=Size",
            "/shares/a?sort=size&",
            "/shares/a?after=b&sort=size", "/shares/a?sort=size&after=b", "/shares/a?sort=size&after=1%3A..",
            "/shares/a?sort=size&after=+1%3Ab",
            "/shares/a?sort=size&after=01%3Ab", "/shares/a?sort=size&after=1%3Ab%2Fc", "/shares/a?sort=name&after=b&about",
            "/shares/a?after=b&after=c%26", "/shares/a?After=b", "/shares/a?after=b?c", "/shares/a?x=y", "/shares/a?after=b/c", "/SHARES/a",
            "/shares/a/%252e%252e/%2e", "\u{0}/shares",
        ])
    func strange(text: String) { #expect(FileRequestTarget(text) == nil) }

    @Test("escapes are decoded once")
    func once() throws {
        guard case .entry(let share, let path, .content) = try #require(FileRequestTarget("/shares/%2561/%252e%252e")) else {
            throw TestFault()
        }
        #expect(share == "%61" && path.names == ["%2e%2e"])
    }

    @Test("depth and length of a path are bounded")
    func deep() {
        let deepest = Array(repeating: "a", count: SharePath.maximumDepth)
        #expect(SharePath(deepest) != nil && SharePath(deepest + ["a"]) == nil)
        #expect(FileRequestTarget("/shares/s/" + deepest.joined(separator: "/")) != nil)
        #expect(FileRequestTarget("/shares/s/" + (deepest + ["a"]).joined(separator: "/")) == nil)
        #expect(FileRequestTarget("/shares/s/" + String(repeating: "a", count: 255)) != nil)
        #expect(FileRequestTarget("/shares/s/" + String(repeating: "a", count: 256)) == nil)
        let long = String(repeating: "é", count: 127)
        #expect(SharePath(Array(repeating: long, count: 15)) != nil && SharePath(Array(repeating: long, count: 16)) == nil)
        #expect(FileRequestTarget("/shares/s/" + Array(repeating: PercentEncoding.encode(long), count: 15).joined(separator: "/")) != nil)
        #expect(FileRequestTarget("/shares/" + String(repeating: "a/", count: 100_000)) == nil)
    }

    @Test("each hostile text is a valid path component, or refused")
    func hostile() throws {
        for text in HostileTexts.inContext {
            guard let path = SharePath([text]) else {
                #expect(!SharePath.isName(text))
                continue
            }
            let target = FileRequestTarget.entry(share: "s", path: path, .list(.name, after: text))
            #expect(FileRequestTarget(target.description) == target)
        }
    }
}

struct TestFault: Error {}
