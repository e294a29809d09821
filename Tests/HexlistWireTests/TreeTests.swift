import HexlistModel
import HexlistWire
import Testing

/// Inner hexes: bounds, order, and that decoding and encoding changes nothing.
struct TreeTests {
    /// A hex of `levels` levels. The innermost hex has the given numbers of links and empty hexes.
    static func deep(_ levels: Int, links: Int = 0, children: Int = 0) -> String {
        let inner = Array(repeating: #""u""#, count: links).joined(separator: ",")
        let empty = Array(repeating: "{}", count: children).joined(separator: ",")
        return String(repeating: #"{"children":["#, count: levels - 1) + #"{"links":[\#(inner)],"children":[\#(empty)]}"#
            + String(repeating: "]}", count: levels - 1)
    }

    private func decoded(_ hex: String) -> DecodedFrame { decode(#"{"operationType":"Store","jmObject":\#(hex)}"#) }

    @Test(
        "the bounds apply to the whole tree",
        arguments: [
            (deep(8), nil), (deep(9), "levels"), (deep(40), "nested"), (deep(8, links: 5_000), nil), (deep(8, links: 5_001), "links"),
            (deep(7, children: 1), nil), (deep(8, children: 1), "levels"), (deep(1, children: 5_000), nil),
            (deep(1, children: 5_001), "hexes in it"), (deep(7, children: 4_994), nil), (deep(7, children: 4_995), "hexes in it"),
            (#"{"links":["a"],"children":[\#(deep(1, links: 4_999))]}"#, nil),
            (#"{"links":["a"],"children":[\#(deep(1, links: 5_000))]}"#, "links"),
            (#"{"children":[\#(deep(1, links: 5_000)),{}],"links":["a"]}"#, "links"),
            // Overridden members do not count (T19).
            (#"{"children":[\#(deep(9))],"children":[]}"#, nil), (#"{"children":[{"links":[\#(deep(1))],"links":[]}]}"#, nil),
        ] as [(String, String?)]) func bounds(_ hex: String, _ excess: String?) throws
    {
        switch decoded(hex) {
        case .wrapper: #expect(excess == nil)
        case .refused(let refusal):
            #expect(excess.map { refusal.message.contains($0) } == true, "\(refusal)")
            #expect(refusal.code == (excess == "nested" ? .malformed : .tooManyLinks))
        }
    }

    @Test("a text of an inner hex that is too long is named") func longText() throws {
        let long = String(repeating: "x", count: ProtocolLimits.stringBytes + 1)
        let inside = #"{"children":[{},{"children":[{"hexDescription":"\#(long)"}]}]}"#
        #expect(try refusal(decoded(inside)).message.contains("`children[1].children[0].hexDescription`"))
        let link = #"{"links":["a"],"children":[7,{"links":["b","\#(long)"]}]}"#
        let found = try refusal(decoded(link))
        #expect(found.code == .tooLarge && found.message.contains("`children[1].links[1]`"))
    }

    @Test("a decoded tree is encoded unchanged, with its hexes in order")
    func roundTrip() throws {
        let text = #"""
            {"senderUUID":"a","senderName":"b","hexDescription":"c","hexColor":"d","links":[],"children":[\#
            {"senderUUID":"","senderName":"","hexDescription":"1","hexColor":"","links":[{"url":"u","linkDescription":"","service":"Unknown",\#
            "y":[2]}],"children":[\#
            {"senderUUID":"","senderName":"","hexDescription":"1.1\n","hexColor":"","links":[],"z":"q"},\#
            {"senderUUID":"","senderName":"","hexDescription":"1.2","hexColor":"","links":[{"url":"v","linkDescription":"","service":"Box"}]}]},\#
            {"senderUUID":"","senderName":"","hexDescription":"2","hexColor":"","links":[],"children":[\#
            {"senderUUID":"","senderName":"","hexDescription":"2.1","hexColor":"","links":[],"children":7}],"x":1}],"w":0}
            """#
        let hex = try hex(decoded(text))
        #expect(String(decoding: HexEncoder.encode(hex), as: UTF8.self) == text)
        #expect(hex.children.map { hex.string($0.hexDescription) } == ["1", "2", "1.1\n", "1.2", "2.1"])
        #expect(hex.children.map(\.parent) == [nil, nil, 0, 0, 1])
        #expect(hex.children(of: nil) == 0..<2 && hex.children[0].children == 2..<4 && hex.children[1].children == 4..<5)
        #expect(hex.links(of: 3).map { hex.string($0.url) } == ["v"])
        #expect(hex.hexCount == 6 && hex.allLinkCount == 2 && hex.levels == 3)
        // The same object embedded in a string (rule T5) gives the same result, although its slices refer to other bytes.
        let quoted = "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
        #expect(try HexEncoder.encode(self.hex(decoded(quoted))) == Array(text.utf8))
    }

    @Test("the largest tree is encoded unchanged, and its weight is its size in memory") func largest() throws {
        let hex = try hex(decoded(Self.deep(7, links: 5_000, children: 4_994)))
        #expect(hex.children.count == 5_000 && hex.childLinks.count == 5_000 && hex.levels == 8)
        #expect(hex.weight(frame: 100) == 100 + hex.arena.count + 5_000 * 64 + 5_001 * 512)
        let encoded = HexEncoder.encode(hex)
        #expect(try HexEncoder.encode(self.hex(decoded(String(decoding: encoded, as: UTF8.self)))) == encoded)
    }

    @Test("the key is extracted from the hex itself, local names from inner hexes too") func localNames() throws {
        var decoder = WrapperDecoder()
        let text = #"{"key":"k","description":"d","children":[{"key":"l","description":"e","color":"f"}]}"#
        let local = try decoder.decodeHex(Array(text.utf8), acceptsLocalNames: true).get()
        #expect(local.key == "k")
        let child = try #require(local.content.children.first)
        #expect(local.content.string(child.hexDescription) == "e" && local.content.string(child.hexColor) == "f")
        #expect(local.content.string(child.extra) == #"{"key":"l"}"#)
    }

    private func hex(_ frame: DecodedFrame) throws -> HexContent {
        guard case .hex(let hex) = try wrapper(frame).object else { throw TestFailure() }
        return hex
    }
}
