import HexlistAPI
import HexlistJSON
import HexlistModel
import Testing

/// The lines of a bulk reply, which scripts parse.
@Suite("JSON of a bulk send")
struct BulkShapeTests {
    private static let uuid = PeerID(UUIDBytes(high: 0x5E3C_1234_0000_8000, low: 0x8000_0000_0000_000A))

    private func check(_ line: BulkReplyLine, _ json: String) throws {
        #expect(line.jsonText == json)
        #expect(line.lineBytes == Array("\(json)\n".utf8))
        #expect(try BulkReplyLine(jsonBytes: Array(json.utf8)) == line)
    }

    @Test func lines() throws {
        try check(
            .refused(BulkRefusal(line: 17, code: "malformed", message: "no \"}\"")), #"{"line":17,"code":"malformed","message":"no \"}\""}"#
        )
        try check(.warning(BulkWarning(line: 3, warning: "w")), #"{"line":3,"warning":"w"}"#)
        let send = SendOutcome(
            outboxID: 4, messageID: MessageID(Self.uuid.uuid), peer: Self.uuid, state: .rejected, code: "tooLarge", message: "m")
        let members =
            #""outboxID":4,"messageID":"\#(Self.uuid)","peer":"\#(Self.uuid)","state":"rejected","code":"tooLarge","message":"m"}"#
        try check(.outcome(BulkOutcome(line: nil, send: send)), "{" + members)
        try check(.outcome(BulkOutcome(line: 9, send: send)), #"{"line":9,"# + members)
        let summary = BulkSummary(
            lines: 9, invalid: 1, accepted: 16, stored: 5, held: 4, rejected: 3, failed: 2, queued: 2, seconds: 1.5)
        let numbers =
            #"{"lines":9,"invalid":1,"accepted":16,"stored":5,"held":4,"rejected":3,"failed":2,"queued":2,"seconds":1.5"#
        try check(.progress(summary), #"{"progress":"# + numbers + "}}")
        try check(.summary(summary), #"{"summary":"# + numbers + "}}")
        var ended = summary
        ended.ended = true
        try check(.progress(ended), #"{"progress":"# + numbers + #","ended":true}}"#)
        try check(
            .error(ErrorJSON(code: "outboxFull", message: "m", hint: "h")), #"{"error":{"code":"outboxFull","message":"m","hint":"h"}}"#)
    }

    @Test("an unknown type of line is ignored; a known type without a required member is an error")
    func tolerance() throws {
        #expect(
            try BulkReplyLine(jsonBytes: Array(#"{"weather":{"rain":1}}"#.utf8)) == .other(JSONValue(parsing: #"{"weather":{"rain":1}}"#)))
        let more = #"{"line":1,"code":"c","message":"m","more":[]}"#
        #expect(try BulkReplyLine(jsonBytes: Array(more.utf8)) == .refused(BulkRefusal(line: 1, code: "c", message: "m")))
        for json in ["[]", "1", #"{"line":1,"code":"c"}"#, #"{"summary":{}}"#, #"{"progress":1}"#, #"{"outboxID":1}"#] {
            #expect(throws: JSONFault.self) { try BulkReplyLine(jsonBytes: Array(json.utf8)) }
        }
    }

    @Test(
        "the worst outcome decides, in the order 1, 4, 2, 3, 0",
        arguments: [
            (BulkSummary(lines: 2, accepted: 2, stored: 2), SendWaitGoal.stored, HexlistAPI.ExitStatus.done),
            (BulkSummary(), .stored, .done),
            (BulkSummary(stored: 2, queued: 1), .stored, .pending), (BulkSummary(stored: 2, queued: 1), .queued, .done),
            (BulkSummary(stored: 2, held: 1), .stored, .pending), (BulkSummary(invalid: 1, queued: 1), .stored, .usage),
            (BulkSummary(invalid: 1, rejected: 1, queued: 1), .stored, .refused),
            (BulkSummary(invalid: 1, rejected: 1, failed: 1, queued: 1), .stored, .failed), (BulkSummary(invalid: 1), .queued, .usage),
        ])
    func exitStatus(summary: BulkSummary, wait: SendWaitGoal, status: HexlistAPI.ExitStatus) {
        #expect(summary.exitStatus(wait: wait) == status)
    }
}

@Suite("Splitting a stream into lines")
struct LineSplitterTests {
    private struct Line: Equatable {
        var number: Int
        var text: String?
    }

    private func split(_ pieces: [String], limit: Int) -> [Line] {
        var splitter = LineSplitter(limit: limit)
        var lines: [Line] = []
        for piece in pieces {
            splitter.feed(Array(piece.utf8)) { lines.append(Line(number: $0, text: $1.map { String(decoding: $0, as: UTF8.self) })) }
        }
        splitter.finish { lines.append(Line(number: $0, text: $1.map { String(decoding: $0, as: UTF8.self) })) }
        #expect(splitter.count == lines.count)
        return lines
    }

    @Test(
        "lines do not depend on chunk sizes; a line that is too long is reported and the others are read",
        arguments: [
            ("", []), ("\n", [""]), ("a", ["a"]), ("a\n", ["a"]), ("a\nb", ["a", "b"]), ("a\r\n\n b\n", ["a\r", "", " b"]),
            ("12345\n123456\n1", ["12345", nil, "1"]), ("123456789", [nil]), ("123456789\n\nx\n", [nil, "", "x"]),
        ] as [(String, [String?])])
    func lines(text: String, expected: [String?]) {
        let lines = expected.enumerated().map { Line(number: $0 + 1, text: $1) }
        #expect(split([text], limit: 5) == lines)
        #expect(split(text.unicodeScalars.map { String($0) }, limit: 5) == lines)
    }
}

@Suite("Chunks that end at line ends")
struct WholeLinesTests {
    @Test("a chunk ends at a line end, the remainder is kept, and nothing is lost")
    func pieces() {
        var whole = LineAlignedStream(limit: 8)
        func feed(_ text: String) -> String { String(decoding: whole.feed(Array(text.utf8)), as: UTF8.self) }
        #expect(feed("ab") == "")
        #expect(feed("c\nde") == "abc\n")
        #expect(feed("") == "")
        #expect(feed("\n") == "de\n")
        #expect(feed("f\ng\n") == "f\ng\n")
        #expect(whole.lines == 4)
        // A line over the bound is passed on in parts, so that the buffer stays within the bound.
        #expect(feed("12345678") == "")
        #expect(feed("9") == "123456789")
        #expect(feed("0\nx") == "0\n")
        #expect(whole.lines == 5)
        #expect(whole.finish() == Array("x".utf8))
        #expect(whole.lines == 6)
        #expect(whole.finish().isEmpty)
        #expect(whole.lines == 6)
    }
}

@Suite("Changes of many outbox rows")
struct OutboxChangeTests {
    @Test func shapes() throws {
        for (rows, json) in [
            (OutboxRowsRequest.ids([1, 2]), #"{"ids":[1,2]}"#), (.peer("ada", after: nil), #"{"peer":"ada"}"#),
            (.peer("ada", after: "7"), #"{"peer":"ada","after":"7"}"#),
        ] {
            #expect(rows.jsonText == json)
            #expect(try OutboxRowsRequest(jsonBytes: Array(json.utf8)) == rows)
        }
        for json in ["{}", #"{"ids":[1],"peer":"x"}"#, #"{"peer":"x","all":true}"#] {
            #expect(throws: JSONFault.self) { try OutboxRowsRequest(jsonBytes: Array(json.utf8)) }
        }
        let change = OutboxChange(changed: 3, mayHaveArrived: 1, passedOver: 2, next: "9")
        #expect(change.jsonText == #"{"changed":3,"mayHaveArrived":1,"passedOver":2,"next":"9"}"#)
        #expect(try OutboxChange(jsonBytes: change.jsonBytes) == change)
        #expect(try OutboxChange(jsonBytes: Array(#"{"changed":3}"#.utf8)) == OutboxChange(changed: 3))
    }
}
