import Crypto
import Testing

@testable import HexlistFiles

@Suite("Byte ranges and entity tags") struct FileRangeTests {
    @Test(
        "a range is read, written and applied to a file of 10 bytes",
        arguments: [
            ("bytes=0-", "bytes=0-", 0..<10), ("bytes=3-", "bytes=3-", 3..<10), ("bytes=3-5", "bytes=3-5", 3..<6),
            ("bytes=9-9", "bytes=9-9", 9..<10),
            ("bytes=0-99", "bytes=0-99", 0..<10), ("bytes=-3", "bytes=-3", 7..<10), ("bytes=-99", "bytes=-99", 0..<10),
            ("Bytes= 3-5 ", "bytes=3-5", 3..<6), ("bytes=003-5", "bytes=3-5", 3..<6),
            ("bytes=2-99999999999999999999", "bytes=2-9223372036854775807", 2..<10), ("bytes=10-", "bytes=10-", nil),
            ("bytes=99999999999999999999-", "bytes=9223372036854775807-", nil), ("bytes=-0", "bytes=-0", nil),
        ] as [(String, String, Range<Int64>?)])
    func ranges(field: String, written: String, bytes: Range<Int64>?) throws {
        let range = try #require(FileRange(field))
        #expect(range.description == written && FileRange(written) == range)
        #expect(range.bytes(ofSize: 10) == bytes)
        #expect(range.bytes(ofSize: 0) == nil)
        if let bytes = range.bytes(ofSize: .max) { #expect(!bytes.isEmpty) }
    }

    @Test(
        "ignored ranges",
        arguments: [
            "", "bytes", "bytes=", "bytes=-", "bytes=a-", "bytes=1", "bytes=5-3", "bytes=1-2,4-5", "bytes=1-2-3", "bytes=--1", "lines=1-2",
            "bytes=1 -2",
            "bytes=+1-2", "bytes=1-\u{0664}", "bytes=" + String(repeating: "0", count: 100) + "-",
        ])
    func passedOver(field: String) { #expect(FileRange(field) == nil) }

    @Test("the Content-Range of a server")
    func contentRanges() {
        #expect(ContentRange("bytes 2-4/10") == .bytes(2..<5, of: 10) && ContentRange("bytes */0") == ContentRange.none(of: 0))
        #expect(ContentRange.bytes(0..<1, of: 1).description == "bytes 0-0/1" && ContentRange.none(of: 7).description == "bytes */7")
        for none in [
            "", "bytes", "bytes 2-4", "bytes 2-4/*", "bytes 4-2/10", "bytes 2-10/10", "bytes 2-/10", "bytes -2/10", "bytes 2-4/10/11",
            "bytes 2-4/1x",
            "2-4/10", "bytes 2-4/9999999999999999999", "bytes=2-4/10", "bytes  2-4/10", "bytes 1-2-3/10",
        ] { #expect(ContentRange(none) == nil, "\(none)") }
    }

    private static let identity = FileIdentity(device: 1, inode: 2, size: 3, modified: 4, changed: 5)

    @Test("an entity tag depends on each part of the file's identity and on the key, and on nothing else")
    func tags() throws {
        let key = SymmetricKey(data: [UInt8](repeating: 7, count: 32))
        let tag = EntityTag(of: Self.identity, key: key)
        #expect(tag == EntityTag(of: Self.identity, key: key) && tag.description.utf8.count == 34 && EntityTag(tag.description) == tag)
        #expect(tag != EntityTag(of: Self.identity, key: SymmetricKey(data: [UInt8](repeating: 8, count: 32))))
        var others: [FileIdentity] = Array(repeating: Self.identity, count: 5)
        others[0].device = 9
        others[1].inode = 9
        others[2].size = 9
        others[3].modified = 9
        others[4].changed = 9
        #expect(Set(others.map { EntityTag(of: $0, key: key) } + [tag]).count == 6)
        #expect(others.allSatisfy { !$0.isSame(as: Self.identity) })
    }

    @Test("foreign tags and lists of tags")
    func fields() throws {
        for none in [
            "", "\"", "abc", "W/\"a\"", "\"a", "\"a\"b\"", "\"a b\"", "\"é\"", "Sun, 06 Nov 1994 08:49:37 GMT",
            "\"\(String(repeating: "a", count: 127))\"",
        ] {
            #expect(EntityTag(none) == nil, "\(none)")
        }
        let tag = try #require(EntityTag("\"ab\""))
        for (field, isListed) in [
            ("\"ab\"", true), ("*", true), (" * ", true), ("W/\"ab\"", true), ("\"x\", \"ab\" ,\"y\"", true), ("\"x\"", false), ("", false),
            ("ab", false),
            ("\"x\",*", false), ("\"ab", false), (String(repeating: "\"x\",", count: 2_000) + "\"ab\"", false),
        ] { #expect(tag.isListed(in: field) == isListed, "\(field)") }
        #expect(try #require(EntityTag("\"\"")).description == "\"\"")
    }

    @Test("an identity is unchanged by writing to the store and reading")
    func identities() {
        var identity = Self.identity
        (identity.modified, identity.changed, identity.inode) = (.min, -1, .max)
        #expect(FileIdentity(identity.description) == identity)
        for none in ["", "1 2 3 4", "1 2 3 4 5 6", "-1 2 3 4 5", "1 2 3 4 x", "1  2 3 4 5"] { #expect(FileIdentity(none) == nil) }
    }
}
