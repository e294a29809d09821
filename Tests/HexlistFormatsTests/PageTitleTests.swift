import HexlistFormats
import Testing

@Suite("Titles of pages") struct PageTitleTests {
    private func title(_ page: [UInt8], type: String? = "text/html", step: Int = .max) -> String? {
        guard var title = PageTitle(contentType: type) else { return nil }
        var rest = page[...]
        while !rest.isEmpty {
            let isOpen = title.append(rest.prefix(step))
            rest = rest.dropFirst(step)
            if !isOpen { break }
        }
        return title.text
    }

    private func utf16(_ text: String, isBigEndian: Bool) -> [UInt8] {
        text.utf16.flatMap { isBigEndian ? [UInt8($0 >> 8), UInt8($0 & 0xFF)] : [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
    }

    @Test(
        "markup",
        arguments: [
            ("<title>Chocolate cake</title>", "Chocolate cake"), ("<TITLE lang=de>\n  A\t b \r\n</TITLE >", "A b"),
            ("<title>A &amp; B &lt;i&gt; &#39;x&#x27; &eacute; &unknown; &</title>", "A & B <i> 'x' é &unknown; &"),
            ("<title>a <b>bold</b> c</title>", "a <b>bold</b> c"), ("<title>a<!-- b --></title>", "a<!-- b -->"),
            ("<!-- <title>no</title> --><title>yes</title>", "yes"), ("<script>x = '<title>no</title>'</script><title>yes</title>", "yes"),
            ("<svg><title>no</title></svg><title>yes</title>", "yes"), ("<titles>no</titles><title>yes</title>", "yes"),
            ("<title>first</title><title>second</title>", "first"), ("<title>no end", "no end"), ("<title", nil), ("<title>", nil),
            ("<title>  </title>", nil), ("<title></title>", nil), ("", nil), ("plain text", nil), ("<!-- <title>no</title>", nil),
            ("<body><title>late</title>", nil), ("<title>a\u{0}b\u{1B}[31mc\u{202E}d\u{200B}e\u{7F}</title>", "a b[31mcde"),
            ("<title>&#0;&#27;&#xD800;&#1114112;x&#8238;</title>", "&#xD800;&#1114112;x"),
            ("<title>e\u{301}\u{1F469}\u{200D}\u{1F52C}</title>", "e\u{301}\u{1F469}\u{200D}\u{1F52C}"),
        ] as [(String, String?)])
    func markup(page: String, expected: String?) {
        for step in [Int.max, 1, 7] {
            #expect(title(Array(page.utf8), step: step)?.unicodeScalars.map(\.value) == expected?.unicodeScalars.map(\.value))
        }
    }

    @Test("encodings by mark, header and declaration")
    func encodings() {
        let page = "<title>Stra\u{df}e</title>"
        let latin: [UInt8] = Array("<title>Stra".utf8) + [0xDF] + Array("e</title>".utf8)
        let (big, little) = (utf16(page, isBigEndian: true), utf16(page, isBigEndian: false))
        let meta = Array("<meta http-equiv=Content-Type content='text/html; charset = ISO-8859-1'>".utf8)
        for (bytes, type, expected) in [
            (Array(page.utf8), "text/html", "Stra\u{df}e"), (Array(page.utf8), "Text/HTML; Charset=\"UTF-8\"", "Stra\u{df}e"),
            ([0xEF, 0xBB, 0xBF] + Array(page.utf8), "text/html; charset=latin1", "Stra\u{df}e"), (latin, "text/html", "Stra\u{df}e"),
            (latin, "text/html; charset=windows-1252", "Stra\u{df}e"), (meta + latin, "text/html", "Stra\u{df}e"),
            (latin, "text/html; charset=utf-8", "Strae"), (Array(page.utf8), "text/html; charset=iso-8859-1", "Stra\u{c3}\u{178}e"),
            ([0xFE, 0xFF] + big, "text/html", "Stra\u{df}e"), ([0xFF, 0xFE] + little, "text/html", "Stra\u{df}e"),
            (big, "text/html; charset=utf-16be", "Stra\u{df}e"), (little, "text/html; charset=UTF-16", "Stra\u{df}e"),
            ([0xFF, 0xFE] + little.dropLast(), "text/html", "Stra\u{df}e"), (latin, "text/html; charset=shift_jis", nil),
            (Array("<meta charset=utf-16>".utf8) + Array(page.utf8), "text/html", "Stra\u{df}e"),
            (Array(page.utf8), "application/xhtml+xml", "Stra\u{df}e"), (Array(page.utf8), nil, "Stra\u{df}e"),
            (Array(page.utf8), "application/json", nil), (Array(page.utf8), "text/plain; charset=utf-8", nil), (Array(page.utf8), "", nil),
        ] as [([UInt8], String?, String?)] {
            #expect(title(bytes, type: type) == expected, "\(type ?? "") \(bytes.prefix(4))")
        }
    }

    @Test("a page is read to its title or to a bound, and a title is cut at a character")
    func bounds() throws {
        var endless = try #require(PageTitle(contentType: nil))
        let chunk = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 16)
        for number in 1...8 { #expect(endless.append(chunk) == (number < 8)) }
        #expect(!endless.append(chunk) && endless.text == nil)
        var page = try #require(PageTitle(contentType: nil))
        #expect(page.append(Array("<head><tit".utf8)) && page.append(Array("le>a</ti".utf8)) && !page.append(Array("tle>".utf8)))
        let long = try #require(title(Array("<title>\(String(repeating: "\u{4eac}", count: 200_000))".utf8)))
        #expect(
            long.utf8.count <= PageTitle.titleBytes && long.utf8.count > PageTitle.titleBytes - 3 && long.allSatisfy { $0 == "\u{4eac}" })
        // Many beginnings of tags, comments and scripts take linear time.
        for part in ["<", "<!--", "<script>", "<title", "&", "&#"] {
            _ = title(Array(String(repeating: part, count: (1 << 16) / part.utf8.count).utf8), step: 1 << 12)
        }
    }
}
