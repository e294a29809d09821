import HexlistModel
import Testing

@Suite struct DocumentedExampleTests {
    @Test("the example of the page of HexlistModel makes a hex") func hex() {
        var hex = HexContent()
        hex.hexDescription = hex.add("Reading list")
        hex.links = [
            LinkContent(url: hex.add("https://www.sqlite.org/wal.html"), linkDescription: hex.add("WAL"), service: .empty)
        ]
        #expect(hex.string(hex.hexDescription) == "Reading list")
        #expect(hex.links.map { hex.string($0.url) } == ["https://www.sqlite.org/wal.html"])
    }
}
