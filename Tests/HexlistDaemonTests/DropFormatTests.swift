import HexlistModel
import Testing

@testable import HexlistDaemon

/// The bodies of drops: header fields with parameters, formats, fields.
@Suite("Drop formats") struct DropFormatTests {
    @Test(
        "a content type decides how a body is read",
        arguments: [
            (nil, .text), ("text/plain", .text), ("Text/Plain; charset=UTF-8", .text), ("text/uri-list", .text), ("", .text),
            ("application/x-www-form-urlencoded", .form), ("application/json;charset=utf-8", .json),
            ("multipart/form-data; boundary=x", .multipart(boundary: "x")),
            (#"multipart/form-data; charset=utf-8; boundary="a b""#, .multipart(boundary: "a b")),
            ("image/jpeg", .file(type: "image/jpeg")), ("text/html", .file(type: "text/html")),
            ("application/octet-stream", .file(type: "application/octet-stream")), ("nonsense", .file(type: "nonsense")),
        ] as [(String?, DropFormat)])
    func formats(_ contentType: String?, _ expected: DropFormat) throws {
        #expect(try DropFormat(contentType: contentType) == expected)
    }

    @Test("a form with files needs a boundary") func boundary() {
        #expect(throws: GuestRefusal.malformed) { try DropFormat(contentType: "multipart/form-data") }
    }

    @Test(
        "file names, as curl, browsers and apps write them",
        arguments: [
            (#"form-data; name="file"; filename="a.jpg""#, "a.jpg"), (#"attachment; filename=a.jpg"#, "a.jpg"),
            (#"form-data; name="file"; filename="a;b=\"c\".jpg""#, #"a;b="c".jpg"#),
            (#"form-data; filename="C:\dir\a.jpg"; name=x"#, #"C:\dir\a.jpg"#), (#"form-data; filename="Föhr 1.jpg""#, "Föhr 1.jpg"),
            ("attachment; filename=x; filename*=UTF-8''F%C3%B6hr.jpg", "Föhr.jpg"), ("attachment; filename*=utf-8''%FF", nil),
            ("form-data; name=text", nil), ("", nil), (";;;=;", nil), (#"a; filename="open"#, "open"), (#"a; filename="x\"#, #"x\"#),
        ] as [(String, String?)])
    func fileNames(_ field: String, _ expected: String?) {
        #expect(ParameterizedField(field).fileName == expected)
    }

    @Test(
        "forms, also those of `curl -d`, which are plain texts",
        arguments: [
            ("text=Hello+World%21&other=1", "Hello World!"),
            ("url=https%3A%2F%2Fexample.org%2F%3Fa%3D1&title=A", "A\nhttps://example.org/?a=1"),
            ("title=T&text=X&url=U", "T\nX\nU"), ("text=U&url=U", "U"), ("text=+&url=U", "U"), ("text=", ""),
            ("https://example.org/a", "https://example.org/a"), ("https://example.org/?a=1&text=2+2", "https://example.org/?a=1&text=2+2"),
            ("Hello World", "Hello World"), ("50% off = cheap", "50% off = cheap"), ("message=x", "message=x"), ("", ""),
        ])
    func forms(_ body: String, _ expected: String) throws {
        #expect(try DropFields.form(Array(body.utf8)) == expected)
    }

    @Test(
        "JSON, of which unknown members are ignored",
        arguments: [
            (#"{"text":"Hello"}"#, "Hello"), (#"{"url":"https://example.org/a","title":"A","when":[1]}"#, "A\nhttps://example.org/a"),
            (#"{"text":null}"#, ""), ("{}", ""), (#"{"text":1}"#, nil), ("[]", nil), (#""x""#, nil), ("{", nil), ("", nil),
        ] as [(String, String?)])
    func json(_ body: String, _ expected: String?) {
        #expect((try? DropFields.json(Array(body.utf8))) == expected)
    }

    @Test("a text is UTF-8") func text() {
        #expect((try? DropFields.text(Array("ö".utf8))) == "ö")
        #expect((try? DropFields.text([0xFF])) == nil && (try? DropFields.form([0xFF, 0xD8])) == nil)
    }

    @Test("equal contents have the same message id within a window, and the next window finds it") func messageIDs() throws {
        let content = DropContent(text: "a")
        let (first, _) = content.messageIDs(at: 1_200_000)
        #expect(content.messageIDs(at: 1_319_999).id == first)
        let next = content.messageIDs(at: 1_320_000)
        #expect(next.id != first && next.earlier == first)
        #expect(content.messageIDs(at: 1_440_000).earlier != first)
        #expect(DropContent(text: "b").messageIDs(at: 1_200_000).id != first)
        #expect(DropContent.messageID(key: "a") == DropContent.messageID(key: "a"))
        #expect(DropContent.messageID(key: "a") != DropContent.messageID(key: "b"))
    }
}

/// The parser of forms with files.
@Suite("Multipart") struct MultipartParserTests {
    private static let body =
        "preamble\r\n--b1\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nHello\r\n--c1x\r\n"
        + "\r\n--b1  \r\nContent-Type: image/png\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\n\r\n\r\r\n--b"
        + "\r\n--b1\r\nContent-Disposition: form-data; name=\"empty\"\r\n\r\n\r\n--b1--\r\nepilogue"

    private static let events: [MultipartParser.Event] = [
        .part(name: "text", fileName: nil), .bytes(Array("Hello\r\n--c1x\r\n".utf8)), .partEnd,
        .part(name: "file", fileName: "a.png"), .bytes(Array("\r\n\r\r\n--b".utf8)), .partEnd,
        .part(name: "empty", fileName: nil), .partEnd,
    ]

    /// The events of a body that arrives in chunks, with adjacent bytes joined.
    private func parse(_ body: String, chunk: Int, boundary: String = "b1") throws -> [MultipartParser.Event] {
        var parser = try MultipartParser(boundary: boundary)
        var events: [MultipartParser.Event] = []
        let bytes = Array(body.utf8)
        for start in stride(from: 0, to: bytes.count, by: chunk) {
            for event in try parser.feed(bytes[start..<min(start + chunk, bytes.count)]) {
                if case .bytes(let more) = event, case .bytes(let before)? = events.last {
                    events[events.count - 1] = .bytes(before + more)
                } else {
                    events.append(event)
                }
            }
        }
        try parser.finish()
        return events
    }

    @Test("chunks of any size give the same parts", arguments: [1, 2, 3, 5, 7, 50, 10_000]) func chunks(size: Int) throws {
        #expect(try parse(Self.body, chunk: size) == Self.events)
    }

    @Test("an empty part whose delimiter follows its head, in chunks of any size", arguments: 1...12) func emptyPart(size: Int) throws {
        let body =
            "--b1\r\nContent-Disposition: form-data; name=a\r\n\r\n--b1\r\nContent-Disposition: form-data; name=b\r\n\r\n--b2\r\n--b1--"
        let expected: [MultipartParser.Event] = [
            .part(name: "a", fileName: nil), .partEnd, .part(name: "b", fileName: nil), .bytes(Array("--b2".utf8)), .partEnd,
        ]
        #expect(try parse(body, chunk: size) == expected)
    }

    @Test("a body that begins with its first boundary, and one without parts") func beginning() throws {
        let body = "--b1\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--b1--"
        #expect(try parse(body, chunk: 4) == [.part(name: "a", fileName: nil), .bytes([0x31]), .partEnd])
        #expect(try parse("--b1--\r\n", chunk: 8).isEmpty)
    }

    @Test(
        "malformed bodies are refused",
        arguments: [
            "", "nothing", "--b1", "--b1\r\nContent-Disposition: form-data; name=a\r\n\r\n1", "--b1\r\n\r\nno name\r\n--b1--",
            "--b1garbage\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--b1--",
            "--b1\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--b2--", "--b1\r\n" + String(repeating: "x", count: 10_000),
            String(repeating: "--b1\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n", count: 65) + "--b1--",
        ])
    func malformed(_ body: String) {
        for chunk in [1, 100, 100_000] { #expect(throws: MultipartParser.Fault.self) { try parse(body, chunk: chunk) } }
    }

    @Test("a boundary has 1 to 70 bytes") func boundaries() {
        for length in [0, 71] {
            #expect(throws: MultipartParser.Fault.self) { _ = try MultipartParser(boundary: String(repeating: "b", count: length)) }
        }
    }
}
