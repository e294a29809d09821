import HexlistModel
import TestSupport
import Testing

@testable import HexlistFiles

@Suite("Links to files on remotes") struct RemoteLinkTests {
    @Test(
        "a link is unchanged by writing and reading, whatever the names", arguments: ["a.txt", "größe 中文.txt", "a?b#c%d.txt", "-x", "…‛／␀"])
    func links(name: String) throws {
        let link = RemoteLink(remote: "my dav + 1", path: try #require(SharePath(["sub folder", name])))
        #expect(link.description.utf8.allSatisfy { (0x21...0x7E).contains($0) } && link.description.hasPrefix("rclone://my%20dav"))
        let read = try #require(RemoteLink(link.description))
        #expect(PeerTextComparison.areEqual(read.remote, link.remote) && read.path == link.path)
        #expect(FileLink(link.description) == nil)
    }

    @Test(
        "invalid links",
        arguments: [
            "", "rclone://", "rclone://dav", "rclone://dav/", "rclone:///a", "rclone://dav/..", "rclone://dav/a//b", "rclone://dav/%2e%2e",
            "hexlist://dav/a", "https://dav/a", "rclone://dav/a b", "rclone://%FF/a",
        ])
    func none(text: String) { #expect(RemoteLink(text) == nil) }

    @Test("each remote has its own lane, always the same") func lanes() throws {
        let path = try #require(SharePath(["a"]))
        let other = RemoteLink(remote: "a", path: try #require(SharePath(["b"])))
        let lanes = ["a", "b", "ä"].map { RemoteLink(remote: $0, path: path).lane }
        #expect(Set(lanes).count == 3 && other.lane == lanes[0])
    }
}
