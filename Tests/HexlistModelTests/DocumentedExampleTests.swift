import HexlistModel
import Testing

@Suite struct DocumentedExampleTests {
    @Test("the example in HexlistModel's page creates a hex") func hex() {
        var hex = HexContent()
        hex.hexDescription = hex.add("Reading list")
        hex.links = [
            LinkContent(url: hex.add("https://www.sqlite.org/wal.html"), linkDescription: hex.add("WAL"), service: .empty)
        ]
        #expect(hex.string(hex.hexDescription) == "Reading list")
        #expect(hex.links.map { hex.string($0.url) } == ["https://www.sqlite.org/wal.html"])
    }
}
