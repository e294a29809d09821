import HexlistModel
import HexlistWire
import Testing

@testable import HexlistDaemon

@Suite("Hints about bulk lines")
struct MemberHintsTests {
    private func hints(_ lines: [String]) -> [String] {
        var (hints, decoder) = (BulkLineHints(), BulkLineDecoder(allowsEmpty: true))
        return lines.flatMap { line -> [String] in
            guard case .hex(let hex) = decoder.decode(Array(line.utf8)) else { return ["refused"] }
            return hints.hints(of: hex.content)
        }
    }

    @Test(
        "a near miss suggests the known name",
        arguments: [
            (#"{"colour":"x","links":[]}"#, "`color`"), (#"{"desc":"x","links":[]}"#, "`description`"), (#"{"link":["a:b"]}"#, "`links`"),
            (#"{"links":[{"url":"https://a.example","description":"x"}]}"#, "`linkDescription`"), (#"{"links":[{"URL":"a:b"}]}"#, "`url`"),
        ])
    func near(line: String, meant: String) {
        let hints = hints([line])
        #expect(hints.count == 1 && hints[0].hasSuffix("Did you mean \(meant)?"), "\(hints)")
    }

    @Test("links without a scheme are reported once, and not too many of them") func links() {
        let line = #"{"links":["https://a.example","avahi.org","mailto:a@b.example",{"url":"note"},"avahi.org"]}"#
        #expect(
            hints([line, line]) == [
                "`avahi.org` is not a link (no https://); it is sent unchanged.",
                "`note` is not a link (no https://); it is sent unchanged.",
            ])
        #expect(hints((0..<100).map { #"{"links":["note\#($0)"]}"# }).count == 20)
    }

    @Test("unrelated names and repeated names give no hint; the cost is bounded")
    func others() {
        #expect(
            hints([#"{"tags":[1],"x":2,"weather":{},"children":[],"links":[]}"#, #"{"description":"d","color":"c","links":[]}"#]) == [])
        #expect(hints(Array(repeating: #"{"colour":"x","links":[]}"#, count: 5)).count == 1)
        #expect(hints((0..<500).map { #"{"colo\#(Character(Unicode.Scalar(0x61 + $0 % 26)!))\#($0)":1,"links":[]}"# }).count <= 20)
    }
}
