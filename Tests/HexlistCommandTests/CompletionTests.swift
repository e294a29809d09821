import ArgumentParser
import HexlistAPI
import HexlistModel
import Testing

@testable import hexlist

@Suite("Completion") struct CompletionTests {
    private static let uuid = PeerID(UUIDBytes(high: 0x1A2B_3C4D_0000_8000, low: 0x8000_0000_0000_0002))

    private static func peer(_ name: String, alias: String? = nil, _ state: PeerView.State = .verified) -> PeerView {
        PeerView(uuid: uuid, name: name, alias: alias, state: state, trust: alias == nil ? .stranger : .trusted)
    }

    @Test(
        "a peer is completed by its alias if no shell needs quotes for it, or by its short UUID",
        arguments: [
            ("Bob", "Bob"), ("bob-2.home_x", "bob-2.home_x"), ("Zoë", "Zoë"), ("日本", "日本"), ("Kitchen PC", "1A2B3C4D"),
            ("$(touch x)", "1A2B3C4D"), ("`id`", "1A2B3C4D"), ("a;b", "1A2B3C4D"), ("-rf", "1A2B3C4D"), ("a:b", "1A2B3C4D"),
            ("a\nb", "1A2B3C4D"), ("a\u{202E}b", "1A2B3C4D"), ("a\tb", "1A2B3C4D"), ("'", "1A2B3C4D"), ("*", "1A2B3C4D"),
            ("~x", "1A2B3C4D"),
            (String(repeating: "a", count: 65), "1A2B3C4D"),
        ]) func peers(alias: String, word: String)
    { #expect(Candidate(Self.peer("x", alias: alias), in: .bash)?.word == word) }

    @Test("a stranger is completed by its short UUID, a ghost not at all") func strangers() {
        let stranger = Candidate(Self.peer("Bob\n$(x)"))
        #expect(stranger?.word == "1A2B3C4D")
        #expect(stranger?.about == "Bob $(x) 1A2B3C4D (stranger)")
        #expect(Candidate(Self.peer("Bob", .ghost)) == nil)
    }

    @Test(
        "a group is completed by its name if no shell needs quotes for it",
        arguments: [
            ("team", "@team"), ("Zoë", "@Zoë"), ("a b", nil), ("$(x)", nil), ("`id`", nil), ("-rf", nil), ("*", nil), ("(a|b)", nil),
            ("a@b", nil), ("~", nil),
        ] as [(String, String?)])
    func groups(name: String, word: String?) {
        #expect(Candidate(GroupView(name: name, peers: []), isMarked: true, in: .bash)?.word == word)
        #expect(Candidate(GroupView(name: name, peers: []), isMarked: false, in: .bash)?.word == word.map { String($0.dropFirst()) })
    }

    @Test(
        "names with spaces are offered to shells that quote them",
        arguments: [(.zsh, true), (.fish, true), (.bash, false), (nil, false)] as [(CompletionShell?, Bool)])
    func spaces(shell: CompletionShell?, isOffered: Bool) {
        #expect(Candidate.isPlain("Kitchen PC", in: shell) == isOffered)
        #expect(!Candidate.isPlain("$(touch x)", in: shell) && Candidate.isPlain("Kitchen", in: shell))
    }

    @Test("formats and files are offered") func values() {
        let script = Hexlist.completionScript(for: .fish)
        #expect(script.contains("markdown") && script.contains("opml"))
        let send = Hexlist.completionScript(for: .bash).split(separator: "_hexlist_send() {").last?.split(separator: "\n}\n").first ?? ""
        #expect(send.contains("'--from')\n        __hexlist_add_completions -f"), "\(send)")
    }

    @Test("`cancel` offers waiting rows only") func states() {
        #expect(Candidates.states(["hexlist", "outbox", "cancel", ""]) == [.queued, .sending])
        #expect(Candidates.states(["hexlist", "outbox", "retry", ""]).contains(.failed))
        #expect(Candidates.states(["hexlist", "outbox", "show", ""]).isEmpty)
    }

    @Test("bash gets a fix for @ in words; other shells do not need it") func bash() {
        #expect(BashScript.completed("#!/bin/bash\n").contains("complete -o filenames -F _hexlist_whole_word hexlist"))
        #expect(BashScript.completed("#compdef hexlist") == "#compdef hexlist" && BashScript.completed("USAGE") == "USAGE")
    }

    @Test("descriptions are shown if the shell supports them, on one line and cut") func lines() {
        let candidate = Candidate(word: "7", about: "a:b\tc\nd \u{1B}[31m" + String(repeating: "x", count: 100))
        #expect(candidate.line(for: .bash) == "7")
        #expect(candidate.line(for: .zsh).hasPrefix("7:a:b c d \u{FFFD}[31mxxx") && candidate.line(for: .zsh).count == 62)
        #expect(candidate.line(for: .fish).hasPrefix("7\ta:b c d \u{FFFD}[31mxxx") && !candidate.line(for: .fish).contains("\n"))
    }
}
