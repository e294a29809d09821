import Crypto
import HexlistModel
import TestSupport
import Testing

@testable import HexlistLists

@Suite("Digests of lists") struct ListDigestTests {
    private let list: ListNode.ID
    private var link: ListNode

    init() throws {
        list = try #require(ListNode.ID(UUIDBytes(high: 0x018B_CFE5_6800_8100, low: 0x8000_0000_0000_0001)))
        let hex = try #require(ListNode.ID(UUIDBytes(high: 0x018B_CFE5_6800_8100, low: 0x8000_0000_0000_0003)))
        let (first, second) = (
            ListVersion(clock: 1_795_615_200_123 << 16, replica: ReplicaNumber(0xAA)),
            ListVersion(clock: 1_795_615_200_124 << 16 + 7, replica: ReplicaNumber(0xBB))
        )
        link = ListNode(id: try #require(ListNode.ID(UUIDBytes(high: 0x018B_CFE5_6800_8200, low: 0x8000_0000_0000_0002))))
        (link.url, link.service) = ("https://a.example/?q=\"é\"", "Box")
        link.place = ListNode.Place(version: first, parent: hex, key: OrderKey(bytes: [1, 2, 3]), previousParent: list)
        link.title = ListNode.Register(version: second, value: "A\u{1}")
        link.registers = [
            "tag/b": ListNode.Register(version: first, value: "1"), "done": ListNode.Register(version: second, value: ""),
            "read": ListNode.Register(version: second, value: "private"),
        ]
        link.deletion = DeletionMark(version: first, with: hex)
    }

    @Test("the canonical form is that of Docs/Lists.md") func canonicalForm() {
        let form = String(decoding: ListDigest.canonicalForm(of: link, in: list), as: UTF8.self)
        #expect(
            form
                == #"{"gone":[1795615200123,0,"00000000000000aa"],"in":"AYvP5WgAgQCAAAAAAAAAAw","inAt":[1795615200123,0,"00000000000000aa"],"#
                + #""key":"AQID","n":"AYvP5WgAggCAAAAAAAAAAg","r":{"done":[[1795615200124,7,"00000000000000bb"],""],"#
                + #""tag/b":[[1795615200123,0,"00000000000000aa"],"1"]},"service":"Box","title":"A\u0001","#
                + #""titleAt":[1795615200124,7,"00000000000000bb"],"url":"https://a.example/?q=\"é\"","was":"","with":"AYvP5WgAgQCAAAAAAAAAAw"}"#
        )
        let hash = SHA256.hash(data: Array(form.utf8)).prefix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        #expect(ListDigest.hash(of: link, in: list) == hash)
        #expect(ListDigest(hash).description == "43ca58c1e4c41234")
    }

    @Test("of a link that was deleted on its own, only id and deletion mark count") mutating func deletedLink() throws {
        link.deletion = DeletionMark(version: try #require(link.version))
        let form = String(decoding: ListDigest.canonicalForm(of: link, in: list), as: UTF8.self)
        #expect(form == #"{"gone":[1795615200124,7,"00000000000000bb"],"n":"AYvP5WgAggCAAAAAAAAAAg"}"#)
    }

    @Test("the digest depends neither on the order of nodes nor on past states") mutating func order() {
        var (digest, other) = (ListDigest(), ListDigest())
        let old = link
        digest.toggle(link, in: list)
        link.title?.value = "B"
        digest.toggle(old, in: list)
        digest.toggle(link, in: list)
        other.toggle(link, in: list)
        #expect(digest == other && digest != ListDigest())
        digest.toggle(link, in: list)
        #expect(digest == ListDigest())
    }
}
