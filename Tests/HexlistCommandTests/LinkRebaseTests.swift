import HexlistAPI
import Testing

@testable import hexlist

@Suite struct LinkRebaseTests {
    private func links(_ nodes: String...) -> [LinkJSON] {
        nodes.map { node in
            var link = LinkJSON(url: "https://\(node).example/")
            link.node = node
            return link
        }
    }

    private func rebased(_ edits: [LinkEdit], onto current: [LinkJSON]) -> [LinkEdit] {
        edits.rebased(from: links("a", "b", "c"), onto: current)
    }

    private let new = LinkEdit(url: "https://new.example/")

    @Test("links that others added stay, before the added ones") func added() {
        let edits = [LinkEdit(from: 1), LinkEdit(from: 2), LinkEdit(from: 3), new]
        #expect(
            rebased(edits, onto: links("x", "a", "b", "c", "y"))
                == [LinkEdit(from: 2), LinkEdit(from: 3), LinkEdit(from: 4), LinkEdit(from: 1), LinkEdit(from: 5), new])
    }

    @Test("links that others removed stay removed, and so do those of the edit") func removed() {
        #expect(rebased([LinkEdit(from: 1), LinkEdit(from: 3)], onto: links("b", "c")) == [LinkEdit(from: 2)])
    }

    @Test("values and order of the edit are kept") func values() {
        let edits = [LinkEdit(from: 3, linkDescription: "C"), LinkEdit(from: 1, tags: ["t"]), LinkEdit(from: 2)]
        #expect(
            rebased(edits, onto: links("c", "b", "a"))
                == [LinkEdit(from: 1, linkDescription: "C"), LinkEdit(from: 3, tags: ["t"]), LinkEdit(from: 2)])
    }

    @Test("an edit that removes all links keeps those that others added") func all() {
        #expect(rebased([], onto: links("a", "x", "c")) == [LinkEdit(from: 2)])
        #expect(rebased([new], onto: links("x")) == [LinkEdit(from: 1), new])
    }
}
