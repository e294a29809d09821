import ArgumentParser
import HexlistAPI
import HexlistModel
import Testing

@testable import hexlist

@Suite("Search on the command line")
struct SearchTextTests {
    private static let now: Int64 = 1_700_000_000_000

    @Test("durations before now, days, and instants of local time")
    func times() throws {
        func time(_ text: String, end: Bool = false) throws -> Int64 { try TimeInput.parse(text, isEnd: end, now: Self.now).milliseconds }
        #expect(try time("7d") == Self.now - 7 * 86_400_000)
        #expect(try time("1.5h") == Self.now - 5_400_000)
        #expect(try time("2031-04-05T06:07:08.009Z") == Timestamp("2031-04-05T06:07:08.009Z")?.milliseconds)
        let day = try time("2031-04-05")
        #expect(try time("2031-04-05", end: true) == time("2031-04-06") && time("2031-04-05T00:00", end: true) == day)
        #expect(try time("2031-04-05 06:07:08") - day == ((6 * 60 + 7) * 60 + 8) * 1_000)
        #expect(try time("2032-02-29", end: true) == time("2032-03-01"))
    }

    @Test(
        "an invalid time is refused with examples",
        arguments: [
            "", "7", "yesterday", "2031-4-5", "2031-02-29", "2031-13-01", "2031-04-05T24:00", "2031-04-05T", "-7d", "2031-04-05T6:07", "d",
        ])
    func noTime(text: String) throws {
        let error = try #require(throws: HexlistError.self) { try TimeInput.parse(text, isEnd: false) }
        #expect(error.code == .badRequest && error.hint?.contains("2031-04-05") == true)
    }

    @Test("a hex of My Hexlist has no sender unless it names one") func senders() {
        func sender(_ location: String, uuid: String = "", name: String = "", alias: String? = nil) -> String {
            HexText.sender(
                HexJSON(
                    id: 1, location: location, senderUUID: uuid, senderName: name, senderAlias: alias, description: "", color: "",
                    linkCount: 0,
                    unread: false, receivedAt: Timestamp(milliseconds: 0)), columns: 44)
        }
        let uuid = "1A2B3C4D-0000-8000-8000-000000000002"
        #expect(sender("mine") == "" && sender("inbox") == "unknown")
        #expect(sender("mine", name: "Bob") == "says Bob")
        #expect(sender("mine", uuid: uuid, name: "Bob", alias: "desk").hasPrefix("says desk"))
        #expect(sender("mine", uuid: uuid, name: "Bob").contains("1A2B3C4D"))
    }

    @Test("no match: the message suggests other searches")
    func nothing() throws {
        func nothing(_ text: String, isEnd: Bool = false, isHeld: Bool = false) throws -> String {
            SearchText.nothing(try SearchExpression(parsing: text).terms, isEnd: isEnd, isHeld: isHeld)
        }
        #expect(try nothing("about:ada").contains("Unknown filter `about:`; the filters are `host:`, `tag:`, `from:`"))
        #expect(
            try !nothing("from:ada").contains("Unknown") && !nothing("host:example.org").contains("Unknown")
                && !nothing(": a").contains("Unknown"))
        #expect(try nothing("riv").hasPrefix("No match. Try `riv*` for words starting with \"riv\". Use --in held"))
        #expect(try nothing("riv*", isHeld: true) == "No match.")
        #expect(try nothing("host:a.example", isHeld: true) == "No match.")
        #expect(try nothing("riv", isEnd: true) == "No more matches.")
        #expect(SearchText.behind(0) == nil && SearchText.behind(1)?.hasPrefix("1 hex is not searched yet") == true)
    }

    @Test("conflicting flags, and words that look like flags")
    func flags() throws {
        #expect(throws: (any Error).self) { try SearchCommand.parse(["--best", "--after", "3", "a"]) }
        #expect(throws: (any Error).self) { try SearchCommand.parse([]) }
        #expect(throws: (any Error).self) { try SearchCommand.parse(["--in", "attic", "a"]) }
        #expect(throws: (any Error).self) { try InboxCommand.parse(["--unique"]) }
        #expect(try SearchCommand.parse(["--", "-z", "--best"]).text == ["-z", "--best"])
    }
}
