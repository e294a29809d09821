import HexlistModel
import Testing

@Suite("Texts of peers") struct PeerTextTests {
    @Test("texts are equal if their bytes are, regardless of Unicode equivalence")
    func equality() {
        #expect(PeerTextComparison.areEqual("\u{E9}", "\u{E9}"))
        #expect(!PeerTextComparison.areEqual("\u{E9}", "e\u{301}"))  // equal as `String`
        #expect(!PeerTextComparison.areEqual("a", "A") && !PeerTextComparison.areEqual("a", "a\u{0}"))
        #expect(PeerTextComparison.areEqual(nil, nil) && !PeerTextComparison.areEqual(nil, "") && !PeerTextComparison.areEqual("", nil))
    }

    @Test("an enumeration case is matched by exactly its bytes")
    func cases() {
        for code in ByeCode.allCases { #expect(ByeCode(utf8: code.rawValue.utf8) == code) }
        for text in ["", "Idle", "idle ", "idle\u{0}", "idl", "idl\u{65}\u{301}"] { #expect(ByeCode(utf8: text.utf8) == nil) }
    }
}
