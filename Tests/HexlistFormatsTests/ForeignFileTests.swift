import HexlistJSON
import HexlistModel
import TestSupport
import Testing

@testable import HexlistFormats

/// Files written by other programs and by people: no entry is lost, cut or changed without a message.
@Suite("Files of other programs") struct ForeignFileTests {
    /// `parent/hex`, then indented `title <url>` with its members in order.
    private static func outline(_ reading: FileReading?) -> [String] {
        guard let forest = reading?.forest else { return [] }
        func members(_ extra: [HexTree.Member]) -> String { extra.map { " \($0.name)=\($0.value.string ?? $0.value.text)" }.joined() }
        return forest.hexes.flatMap { hex in
            let parent = hex.parent.map { "\(forest.hexes[$0].description)/" } ?? ""
            return ["\(parent)\(hex.description)\(members(hex.extra))"] + hex.links.map { "  \($0.title) <\($0.url)>\(members($0.extra))" }
        }
    }

    /// `reason count: lines` for omitted entries.
    private static func skipped(_ reading: FileReading?) -> [String] {
        (reading?.skipped ?? []).map { "\($0.reason) \($0.count): \($0.items.map { "\($0.line)" }.joined(separator: " "))" }
    }

    private static func read(_ format: FileFormat, _ text: String) -> FileReading? { format.read(Array(text.utf8), name: "file") }

    // MARK: Lines

    @Test(
        "any line ends are accepted, and blank lines skipped",
        arguments: ["\n", "\r\n", "\r", "\n\n", " \n\t\n", "\n  \r\n\u{B}\n", "\r\r"])
    func lines(end: String) {
        let list = ["https://a.example/ one", "   ", "https://b.example/"].joined(separator: end)
        for text in [list, list + end, end + list, "\u{FEFF}" + list, list + "   "] {
            #expect(Self.outline(Self.read(.list, text)) == ["file", "  one <https://a.example/>", "   <https://b.example/>"])
        }
        let markdown = ["# H", "", "- [a](https://a.example/)", "  ", "* [b](https://b.example/)"].joined(separator: end)
        for text in [markdown, markdown + end, "\u{FEFF}" + markdown, markdown + "\t"] {
            #expect(Self.outline(Self.read(.markdown, text)) == ["H", "  a <https://a.example/>", "  b <https://b.example/>"])
        }
        let csv = ["url,title", "https://a.example/,one", "  ", "https://b.example/,"].joined(separator: end)
        for text in [csv, csv + end, "\u{FEFF}" + csv] {
            #expect(Self.outline(Self.read(.csv, text)) == ["file", "  one <https://a.example/>", "   <https://b.example/>"], "\(text)")
        }
    }

    @Test(
        "empty files and white space contain no entries",
        arguments: ["", " ", "\n", "  \n  ", "\t\r\n ", "\u{FEFF}", "\u{FEFF} \n"])
    func blank(text: String) throws {
        for format in FileFormat.allCases { #expect(Self.read(format, text)?.forest.linkCount ?? 0 == 0) }
        #expect(try JSONFile(Array(text.utf8.drop { $0 > 0x7F }), name: "x").hexes.isEmpty)
    }

    @Test("omitted entries are counted; the first five are named by line")
    func counted() {
        let reading = Self.read(
            .list, "https://a.example/\n" + (1...7).map { "no link \($0)\r\n" }.joined() + "localhost:8080\n12:30 x\nnote: y\n")
        #expect(Self.skipped(reading) == ["noLink 7: 2 3 4 5 6", "noScheme 3: 9 10 11"])
        #expect(reading?.skipped.first?.items.last?.text == "no link 5")
        #expect(Self.outline(reading) == ["file", "   <https://a.example/>"])
    }

    @Test(
        "a line with several URLs has several links",
        arguments: [
            ("https://a.example/ https://b.example/", ["https://a.example/|", "https://b.example/|"]),
            ("https://a.example/ one  two\thttps://b.example/ three", ["https://a.example/|one  two", "https://b.example/|three"]),
            ("https://a.example/ https://a.example/", ["https://a.example/|"]),
            ("https://a.example/ mailto:a@b.example or bb:c", ["https://a.example/|mailto:a@b.example or bb:c"]),
            ("  mailto:a@b.example\u{A0}x ", ["mailto:a@b.example|x"]), ("not https://a.example/", ["not|", "https://a.example/|"]),
            ("https://a.example/ a:// b", ["https://a.example/|a:// b"]), (" \u{2003} ", []),
        ])
    func parts(text: String, expected: [String]) { #expect(LinkLine.parts(text).map { "\($0.url)|\($0.description)" } == expected) }

    @Test(
        "links in a line of text",
        arguments: [
            ("- https://a.example/5", ["|https://a.example/5"]), ("* https://a.example/6 Six", ["Six|https://a.example/6"]),
            ("1. https://a.example/7", ["|https://a.example/7"]), ("12) [ ] https://a.example/7", ["|https://a.example/7"]),
            ("Title https://a.example/8", ["Title|https://a.example/8"]), ("Title: https://a.example/8", ["Title|https://a.example/8"]),
            ("see https://a.example/2 and https://b.example/3.", ["see|https://a.example/2", "and|https://b.example/3"]),
            ("A: https://a.example/ B: https://b.example/ end", ["A|https://a.example/", "B end|https://b.example/"]),
            ("\"https://a.example/9\"", ["|https://a.example/9"]), ("<https://a.example/9>", ["|https://a.example/9"]),
            ("“https://a.example/9”, he said", ["he said|https://a.example/9"]), ("**https://a.example/**", ["|https://a.example/"]),
            ("'https://a.example/it's'", ["|https://a.example/it's"]), ("日本「https://a.example/日」。", ["日本|https://a.example/日"]),
            ("(see https://a.example/x_(y))", ["see|https://a.example/x_(y)"]), ("see [https://a.example/].", ["see|https://a.example/"]),
            ("[Title](https://a.example/x_(y))", ["Title|https://a.example/x_(y)"]),
            ("Title (2020) - https://a.example/", ["Title (2020)|https://a.example/"]),
            ("https://a.example/, https://b.example/; c", ["|https://a.example/", "c|https://b.example/"]),
            ("Note:see https://a.example/", ["Note:see|https://a.example/"]), ("- mailto:a@b.example x", ["x|mailto:a@b.example"]),
            ("https://a.example/Inc. x", ["x|https://a.example/Inc."]), ("https://a.example/?q=\"x\" t", ["t|https://a.example/?q=\"x\""]),
            ("https://a.example/2020/https://b.example/", ["|https://a.example/2020/https://b.example/"]),
            ("mailto:a@b.example https://b.example/", ["|mailto:a@b.example", "|https://b.example/"]),
            ("- Title", []), ("see https:// x", []), ("localhost:8080", []), ("C://x", []),
        ])
    func textLinks(text: String, expected: [String]) {
        let reading = Self.read(.list, "  \(text) \n")
        #expect(reading?.forest.hexes.flatMap { $0.links.map { "\($0.title)|\($0.url)" } } == expected)
        #expect(Self.skipped(reading).count == (expected.isEmpty ? 1 : 0))
    }

    @Test("CSV rows that begin with a web URL need no header")
    func withoutHeader() {
        for text in ["https://a.example/,one\nhttps://b.example/,\n", "sep=;\n\nHTTPS://a.example/;one\nhttps://b.example/;\n"] {
            let links = Self.read(.csv, text)?.forest.hexes.flatMap(\.links) ?? []
            #expect(links.map(\.title) == ["one", ""])
            #expect(links.map { $0.url.lowercased() } == ["https://a.example/", "https://b.example/"])
        }
        #expect(Self.skipped(Self.read(.csv, "https://a.example/,one,more\n")) == ["moreCells 1: 1"])
        #expect(Self.read(.csv, "mailto:a@b.example,x\n") == nil)
        #expect(BookmarkCSV.firstCells(Array("\n Name ;Address\nx;y\n".utf8)) == ["Name", "Address"])
    }

    @Test("bookmarks as XBEL have folders, titles, notes and dates; entries without an address are counted")
    func xbel() {
        let text = """
            <?xml version="1.0"?>
            <!DOCTYPE xbel PUBLIC "+//IDN python.org//DTD XML Bookmark Exchange Language 1.0//EN//XML" "x.dtd">
            <xbel version="1.0"><title>All</title>
            <bookmark href="https://a.example/?x=1&amp;y=2" added="2023-01-05T10:11:12Z"><title>A &amp; &eacute;</title><desc>n</desc>
            <info><metadata owner="x"><title>no</title></metadata></info></bookmark>
            <folder><title>F</title><folder folded="no"><title>G</title><bookmark href="https://b.example/"/></folder>
            <separator/><bookmark href=""><title>none</title></bookmark><bookmark href="localhost:80"><title>bare</title>
            </folder><bookmark href="https://c.example/">
            """
        let reading = Self.read(.xbel, text)
        #expect(
            Self.outline(reading) == [
                "All", "  A & é <https://a.example/?x=1&y=2> addDate=1672913472 note=n", "   <https://c.example/>", "F", "F/G",
                "   <https://b.example/>",
            ])
        #expect(Self.skipped(reading) == ["noLink 1: 7", "noScheme 1: 7"])
        for name in ["x.xbel", "x"] { #expect(FileFormat.of(Array(text.utf8), name: name) == .xbel) }
    }

    @Test(
        "tags in CSV are separated as the file separates them",
        arguments: [
            ("url,tags\naa:b,db news\naa:c,x", ["[\"db\",\"news\"]", "[\"x\"]"]),
            ("url,tags\naa:b,to read\naa:c,\"x,y\"", ["[\"to read\"]", "[\"x\",\"y\"]"]),
            ("url,tags\naa:b,to read|x\naa:c,a b", ["[\"to read\",\"x\"]", "[\"a b\"]"]),
            ("url,tags,time_added\naa:b,to read,1", ["[\"to read\"]"]),
            ("url,tags\naa:b,\"[\"\"to read\"\"]\"", ["[\"to read\"]"]),
            ("folder,color,title,url,service,tags,created,note\nf,,t,aa:b,,to read,,", ["[\"to read\"]"]),
        ])
    func csvTags(text: String, tags: [String]) {
        let links = Self.read(.csv, text)?.forest.hexes.flatMap(\.links) ?? []
        #expect(links.map { $0.extra.value("tags")?.text } == tags)
    }

    @Test("a list of OneTab has a hex for each of its groups")
    func oneTab() {
        let text = "https://a.example/ | First\nhttps://b.example/ | Second | https://c.example/\n\n \nhttps://d.example/ |\n"
        #expect(
            Self.outline(Self.read(.list, text)) == [
                "file", "  First <https://a.example/>", "  Second | https://c.example/ <https://b.example/>", "file (2)",
                "   <https://d.example/>",
            ])
    }

    // MARK: Markdown

    @Test(
        "links in a line of Markdown",
        arguments: [
            ("- [Hop (networking)](https://a.example/Hop_(networking))", ["Hop (networking)|https://a.example/Hop_(networking)"]),
            ("- [x](https://a.example/a_(b_(c))_d)", ["x|https://a.example/a_(b_(c))_d"]),
            ("- [x](https://a.example/a\\)b)", ["x|https://a.example/a)b"]),
            ("* [x](<https://a.example/a b)> \"t\")", ["x|https://a.example/a b)"]),
            ("- [x]( https://a.example/ 'a (b)' )", ["x|https://a.example/"]),
            ("- [a [b] \\] c](https://a.example/)", ["a [b] ] c|https://a.example/"]),
            ("text [a](bb:c) and [d](ee:f)", ["a|bb:c", "d|ee:f"]),
            ("1. [a](bb:c)", ["a|bb:c"]), ("> - [ ] [a](bb:c)", ["a|bb:c"]), ("- [x] [a](bb:c)", ["a|bb:c"]),
            ("| [a](bb:c) | x |", ["a|bb:c"]),
            ("<https://a.example/(b)>", ["|https://a.example/(b)"]), ("<ada@b.example>", ["|mailto:ada@b.example"]),
            ("(see https://a.example/x_(y)).", ["|https://a.example/x_(y)"]),
            ("https://a.example/, **https://b.example/**", ["|https://a.example/", "|https://b.example/"]),
            ("- Title: https://a.example/", ["Title|https://a.example/"]), ("- https://a.example/ – Title", ["Title|https://a.example/"]),
            ("[![badge](https://i.example/)](https://a.example/)", ["badge|https://a.example/"]), ("[a](bb:c", []),
            ("[a](https://a.example/ b c)", ["a|https://a.example/ b c"]),
            ("[text][1] and [one]", ["text|https://one.example/", "one|https://one.example/"]), ("\\[a](bb:c)", []),
            ("-[a](bb:c)", ["a|bb:c"]),
        ])
    func markdown(line: String, expected: [String]) {
        let reading = Self.read(.markdown, "\(line)\n\n[1]: https://one.example/\n[ONE]: <https://one.example/> 'First'\n")
        let links = reading?.forest.hexes.flatMap(\.links).map { "\($0.title)|\($0.url)" } ?? []
        let unused = ["1|https://one.example/", "First|https://one.example/"]
        #expect(links.filter { !unused.contains($0) } == expected)
    }

    @Test("a URL, with or without spaces, and a title have at most 32 nested parentheses", arguments: [32, 33])
    func parentheses(depth: Int) {
        let parentheses = String(repeating: "(", count: depth) + String(repeating: ")", count: depth)
        for url in ["bb:c\(parentheses)", "bb:c d\(parentheses)"] {
            let links = MarkdownLinks.all(Array("[a](\(url))".utf8)[...], [:]).links
            #expect(links.map(\.url) == (depth == 32 ? [url] : []))
        }
        let titled = MarkdownLinks.all(Array("[a](bb:c (\(String(repeating: "(", count: depth))))".utf8)[...], [:]).links
        #expect(titled.map(\.url) == (depth == 32 ? ["bb:c"] : []))
    }

    @Test("a link label contains only escaped brackets")
    func labels() {
        func found(_ text: String) -> [String] {
            let references = Dictionary(
                uniqueKeysWithValues: ["n", "o[n]e", "o\\[n\\]e"].map { name in
                    let label = Array(name.utf8)
                    return (label, MarkdownLinks.Reference(label: label, url: "aa:\(name)", title: "", line: 1))
                })
            return MarkdownLinks.all(Array(text.utf8)[...], references).links.map { "\($0.title)|\($0.url)" }
        }
        #expect(found("[o[n]e]") == ["n|aa:n"] && found("[o[n]e][]") == ["n|aa:n"])
        #expect(found("[o\\[n\\]e]") == ["o[n]e|aa:o\\[n\\]e"] && found("[o[n]e][n]") == ["o[n]e|aa:n"])
    }

    @Test("all kinds of headings, notes, images and references in Markdown")
    func markdownFile() {
        let text = """
            ---
            title: no heading
            ---
            Top
            ===
            - [a](https://a.example/) — a note
            - ![i](https://i.example/)
            - [file](./b.md)

            ## [Sub](https://s.example/) ##
            ```sh
            # no heading
            curl https://c.example/
            ```
            Para
            ---
            [t][ref]

            [ref]: https://r.example/ "R"
            [unused]: https://u.example/
            """
        let reading = Self.read(.markdown, text)
        #expect(
            Self.outline(reading) == [
                "Top", "  a <https://a.example/> note=a note", "Top/Sub", "  Sub <https://s.example/>", "   <https://c.example/>",
                "Top/Para",
                "  t <https://r.example/>", "  unused <https://u.example/>",
            ])
        #expect(Self.skipped(reading) == ["image 1: 7", "noScheme 1: 8"])
    }

    // MARK: HTML

    @Test("sections with headings are folders, in lists and outside")
    func sections() {
        for list in ["ul", "OL", "dl"] {
            let text = """
                <html><title>Export</title><body><h1>Unread</h1><\(list)><li><a href="https://a.example/" time_added="1698568488">A</a></\(list)>
                <H1>Read</H1><\(list)><li><a href="https://b.example/">B</a></li></\(list)><h1>Empty</h1></body></html>
                """
            #expect(
                Self.outline(Self.read(.html, text)) == [
                    "Unread", "  A <https://a.example/> addDate=1698568488", "Read", "  B <https://b.example/>", "Empty",
                ],
                "\(list)")
        }
        let plain = """
            <h1>Links</h1><p><a href="https://top.example/">Top</a><h2>One</h2><p><a href="https://a.example/">A</a>
            <h3>Deep</h3><a href="https://b.example/">B</a><h2>Two</h2><ul><li><a href="https://c.example/">C</a></ul><a href="https://d.example/">D</a>
            """
        #expect(
            Self.outline(Self.read(.html, plain)) == [
                "Links", "  Top <https://top.example/>", "One", "  A <https://a.example/>", "One/Deep", "  B <https://b.example/>", "Two",
                "  C <https://c.example/>", "  D <https://d.example/>",
            ])
        // Lists without an end tag before the next heading.
        let open = "<h1>X</h1><ul><li><a href=aa:b>A</a><h1>Y</h1><ul><li><a href=cc:d>C</a>"
        #expect(Self.outline(Self.read(.html, open)) == ["X", "  A <aa:b>", "Y", "  C <cc:d>"])
    }

    @Test("folders named by an item's text, without DL or with unclosed elements")
    func nested() {
        let list = "<ul><li>Work<ul><li><a href='aa:b'>A</a><li>Deep<ol><li><a href=cc:d>C</a></ol></ul><li><a href=ee:f>E</a></ul>"
        #expect(Self.outline(Self.read(.html, list)) == ["Work", "  A <aa:b>", "Work/Deep", "  C <cc:d>", "file", "  E <ee:f>"])
        let netscape = """
            <DT><H3 ADD_DATE="1">Empty</H3>
            <DT><A HREF="aa:b">A</A>
            <DT><H3>F</H3>
            <DL>
            <DT><A HREF="cc:d">C
            <DT><A HREF='ee:f'>E</A>
            </DL>
            <DT><A HREF=gg:h>G</A>
            """
        #expect(
            Self.outline(Self.read(.html, netscape)) == [
                "Empty addDate=1", "file", "  A <aa:b>", "  G <gg:h>", "F", "  C <cc:d>", "  E <ee:f>",
            ])
    }

    @Test("a heading in an item ends earlier headings of the same and lower ranks, however many")
    func headingsOfItem() {
        let item = "<DT><H3>A</H3><H3>B</H3><H4>C</H4><H2>D</H2><DL><DT><A HREF=aa:b>x</A></DL><H3>E</H3>"
        #expect(Self.outline(Self.read(.html, "<DL>\(item)")) == ["A", "B", "B/C", "D", "  x <aa:b>", "E"])
        // Headings of the file around the item stay open.
        #expect(Self.outline(Self.read(.html, "<H4>F</H4>\(item)")) == ["F", "F/A", "F/B", "B/C", "F/D", "  x <aa:b>", "F/E"])
        let many = Self.read(.html, "<DL><DT>" + String(repeating: "<H3>a</H3>", count: 20_000))
        #expect(many?.forest.hexes.count == 20_000 && many?.forest.hexes.allSatisfy { $0.parent == nil } ?? false)
    }

    @Test(
        "a note is kept whole, whatever it contains",
        arguments: [
            ("See <a href=\"https://i.example/\">this</a> and the rest", "See this and the rest"), ("a<br>b<p>c", "a\nb\nc"),
            ("<h2>Head</h2> and <b>bold</b> &amp; <i>more</i>", "Head\n and bold & more"), ("<ul><li>one<li>two</ul>end", "one\ntwo\nend"),
            ("line\n  two &eacute;", "line\n  two é"), ("with <hr> a line", "with  a line"),
        ])
    func note(markup: String, text: String) {
        let reading = Self.read(
            .html, "<DL><p>\n<DT><A HREF=\"https://a.example/\">A</A>\n<DD>\(markup)\n<DT><A HREF=\"https://b.example/\">B</A>\n</DL><p>\n")
        let note = reading?.forest.hexes.first?.links.first?.extra.value("note")?.string?.replacing("\n\n", with: "\n").trimmingPrefix("\n")
        #expect(note.map(String.init) == text)
        #expect(reading?.forest.hexes.first?.links.map(\.url) == ["https://a.example/", "https://b.example/"])
        #expect(Self.skipped(reading) == (markup.contains("href") ? ["inNote 1: 3"] : []))
    }

    @Test("a bookmark without DT ends a note, and DD without a bookmark is not a note")
    func noNote() {
        let bare = "<DL><A HREF=aa:b>A</A><DD>note<A HREF=cc:d>C</A><DD>more <A HREF=ee:f ADD_DATE=1>E</A></DL>"
        #expect(Self.outline(Self.read(.html, bare)) == ["file", "  A <aa:b> note=note", "  C <cc:d> note=more", "  E <ee:f> addDate=1"])
        let terms = "<dl><dt>Search</dt><dd><a href=aa:b>A</a></dd><dt>Mail<dd><a href=cc:d>C</a></dl>"
        #expect(Self.outline(Self.read(.html, terms)) == ["file", "  A <aa:b>", "  C <cc:d>"])
    }

    @Test(
        "a URL with an unclosed quotation mark is omitted; other bookmarks are kept",
        arguments: [
            "<A HREF=\"https://x.example/1>One</A>", "<A HREF='https://x.example/1>One</A>",
            "<A HREF=\"https://x.example/1 ADD_DATE=\"17\">One</A>",
            "<A ADD_DATE=\"1\" HREF=\"https://x.example/1>One</A>", "<A HREF=\"https://x.example/1>Say \"hi\" there</A>",
        ])
    func openQuote(bookmark: String) {
        let text = """
            <DL><p>
            <DT>\(bookmark)
            <DT><A HREF="https://b.example/" TAGS="">Two</A>
            <DT><A HREF='https://c.example/'>Three</A>
            </DL>
            """
        let reading = Self.read(.html, text)
        #expect(reading?.forest.hexes.flatMap(\.links).map(\.url) == ["https://b.example/", "https://c.example/"])
        #expect(Self.skipped(reading) == ["openQuote 1: 2"])
    }

    @Test("invalid URLs are omitted; javascript: links are kept")
    func addresses() {
        let text = """
            <DL><DT><A HREF="https://a.example/
            b">x</A><DT><A HREF="https://a.example/<b>">x</A><DT><A HREF="/local">x</A><DT><A HREF="page.html">x</A>
            <DT><A HREF="">x</A><DT><A HREF="javascript:if(a<b)alert('x>y')">B</A><DT><A HREF=https://c.example/a=b&c>C</A></DL>
            """
        let reading = Self.read(.html, text)
        #expect(Self.outline(reading) == ["file", "  B <javascript:if(a<b)alert('x>y')>", "  C <https://c.example/a=b&c>"])
        #expect(Self.skipped(reading) == ["malformed 2: 1 2", "noScheme 2: 2 2", "noLink 1: 3"])
    }

    @Test(
        "character references are decoded",
        arguments: [
            ("&eacute;&ndash;&hellip;&#8211;&#x1F600;", "é–…–😀"), ("Tom & Jerry &amp; co &lt;b&gt; AT&T;", "Tom & Jerry & co <b> AT&T;"),
            ("&copy=1&lt=2", "&copy=1&lt=2"), ("&Auml;&auml;&euro;&rarr;&alpha;&Alpha;&NotEqualTilde;", "Ää€→αΑ≂\u{338}"),
            ("&#150;&#146;&#0;&#xD800;&#99999999999999999999;&;&#;&#x;", "–’\u{0}&#xD800;&#99999999999999999999;&;&#;&#x;"),
            ("&CounterClockwiseContourIntegral;", "∳"), ("&Eacute &bogus;", "&Eacute &bogus;"),
        ])
    func references(text: String, expected: String) {
        #expect(MarkupText.decoded(Array(text.utf8)).unicodeScalars.elementsEqual(expected.unicodeScalars))
    }

    @Test("unclosed comments and sections lose nothing behind them")
    func unclosed() {
        let text = "<DL><!-- <DT><A HREF=aa:b>A</A><![CDATA[ <DT><A HREF=cc:d>C</A><!-- x --><DT><A HREF=ee:f>E</A></DL"
        #expect(Self.outline(Self.read(.html, text)) == ["file", "  E <ee:f>"])
        let open = "<DL><!-- no end <p><DT><A HREF=aa:b>A</A><![CDATA[<DT><A HREF=cc:d>C</A>"
        #expect(Self.outline(Self.read(.html, open)) == ["file", "  A <aa:b>", "  C <cc:d>"])
    }

    // MARK: Dates

    @Test(
        "dates are seconds since 1970, in every format",
        arguments: [
            ("2023-01-05T10:11:12.345Z", "1672913472"), ("2023-01-05T10:11:12+01:00", "1672909872"),
            ("2023-01-05T10:11:12-0130", "1672918872"),
            ("2023-01-05 10:11:12", "1672913472"), ("2023-01-05T10:11Z", "1672913460"), ("2023-01-05", "1672876800"),
            ("2023-01-05 10:11:12 UTC", "1672913472"),
            ("1698568488", "1698568488"), ("1698568488.25", "1698568488"), ("1698568488123", "1698568488"),
            ("1698568488123456", "1698568488"),
            ("13343042088123456", "1698568488"), (" 17 ", "17"), ("0", "0"), ("2000-02-29", "951782400"), ("1969-12-31T23:59:59Z", "-1"),
            ("99999999999999999999", nil), ("", nil), ("-", nil), ("yesterday", nil), ("2023-13-05", nil), ("2023-01-05T", nil),
            ("1e9", nil), ("NaN", nil),
            ("2023-01-05T10:11:12Zx", nil), ("2023-01-05T10:11:12.", nil), ("01/05/2023", nil),
        ] as [(String, String?)])
    func dates(text: String, seconds: String?) { #expect(BookmarkDate.seconds(text) == seconds) }

    @Test(
        "an export has ADD_DATE in seconds, also for entries imported earlier",
        arguments: ["created", "time_added", "Timestamp", "date_added", "created_at"])
    func exported(column: String) throws {
        let csv = try #require(Self.read(.csv, "url,\(column)\naa:b,2023-01-05T10:11:12.345Z\ncc:d,1672913472000\nee:f,soon\n"))
        let html = String(decoding: BookmarkHTML.write(csv.forest), as: UTF8.self)
        #expect(html.components(separatedBy: "ADD_DATE=\"1672913472\"").count == 3 && html.components(separatedBy: "ADD_DATE").count == 3)
        #expect(csv.forest.hexes[0].links[2].extra.value("created")?.string == "soon")
        let old = HexTree(hexes: [
            HexTree.Hex(links: [HexTree.Link(url: "https://a.example/", extra: [.init("addDate", "2023-01-05T10:11:12.345Z")])])
        ])
        let written = BookmarkHTML.write(old)
        #expect(String(decoding: written, as: UTF8.self).contains(" ADD_DATE=\"1672913472\""))
        #expect(BookmarkHTML.read(written, name: "x").forest == old)
    }

    // MARK: CSV

    @Test(
        "an unclosed quotation mark affects no other row",
        arguments: [
            "\"Open,https://b.example/,1", "\"Open,https://b.example/,\"1\"", "Op\"en,https://b.example/,\"1",
            "\"Say \"hi\" there\",https://b.example/,1",
            "\"a \"\"b,https://b.example/,1", "\"\"Open\",https://b.example/,1", "O,\"https://b.example/\",\"1",
        ])
    func openCell(row: String) throws {
        for end in ["\n", "\r\n", "\r"] {
            let rows = [
                "title,url,created", "A,https://a.example/,1", row, "\"C, \"\"c\"\"\",https://c.example/,2",
                "\"D\nd\",\"https://d.example/\",3", "E,https://e.example/,",
            ]
            let reading = try #require(Self.read(.csv, rows.joined(separator: end)))
            let links = reading.forest.hexes.flatMap(\.links)
            #expect(links.map(\.url) == ["a", "b", "c", "d", "e"].map { "https://\($0).example/" }, "\(row)")
            #expect(links[2].title == "C, \"c\"" && links[3].title == "D\nd" && reading.skipped.isEmpty)
        }
    }

    @Test("separators, cells without a column, and duplicate columns")
    func columns() throws {
        for (text, separator) in [("sep=;\nURL;Title;Tags\n", ";"), ("\n URL \tTitle\tTags\n", "\t"), ("url,title,tags\n", ",")] {
            let row = ["\"https://a.example/?a=1\"", "\"T\(separator)t\"", "x|y"].joined(separator: separator)
            let reading = try #require(Self.read(.csv, text + row + "\n"))
            #expect(Self.outline(reading) == ["file", "  T\(separator)t <https://a.example/?a=1> tags=[\"x\",\"y\"]"])
        }
        let reading = try #require(
            Self.read(.csv, "url,url,note,x\nhttps://a.example/,https://b.example/,n,y,,more\nAlso, with comma,https://c.example/,,\n"))
        #expect(Self.outline(reading) == ["file", "   <https://a.example/> url=https://b.example/ note=n x=y"])
        #expect(Self.skipped(reading) == ["moreCells 1: 2", "noScheme 1: 3"])
        #expect(Self.read(.csv, "a,b\nhttps://a.example/,x\n") == nil)
        let open = Self.read(.csv, "title,url,tags\nA,\"https://a.example/,\n\"B,https://b.example/,\"[\"\"x\"\", \"\"y z\"\"]\"\n")
        #expect(Self.outline(open) == ["file", "  A <https://a.example/>", "  B <https://b.example/> tags=[\"x\", \"y z\"]"])
    }

    // MARK: OPML

    @Test("malformed outlines, and attributes of feeds")
    func outlines() {
        let text = """
            <OPML><BODY><OUTLINE TEXT="A"><outline text='F &eacute;' xmlUrl="https://a.example/feed" description="d" category="x,y" created="2024-01-02"/>
            <outline text="Open url="https://b.example/"/>
            <outline text="no" url="local"/></OUTLINE><outline url="https://c.example/"/></outline></outline>
            """
        let reading = Self.read(.opml, text)
        #expect(
            Self.outline(reading) == [
                "A", "  F é <https://a.example/feed> addDate=1704153600 note=d tags=[\"x\",\"y\"]", "file", "   <https://c.example/>",
            ])
        #expect(Self.skipped(reading) == ["openQuote 1: 2", "noScheme 1: 3"])
    }

    // MARK: Bounds

    @Test(
        "nesting depth is unlimited within the file size", .offPool,
        arguments: ["<DL><DT><H3>a</H3>", "<ul><li>a", "<outline text=a>", "<h1>a</h1><dl>", "> ", "- ", "[", "("])
    func deep(piece: String) {
        // Recursion over 40 000 levels would overflow the stack of a thread (8 MiB): a frame of the debug build has more than 200 bytes.
        let levels = LongTests.areWanted ? 100_000 : 40_000
        let bytes = Array((String(repeating: piece, count: levels) + "<a href=aa:b>x</a><outline url=aa:b>").utf8)
        for format in [FileFormat.html, .opml, .markdown, .list] { _ = format.read(bytes, name: "x")?.forest.divided() }
    }

    @Test(
        "reading time does not grow with nesting depth", .offPool, .timeLimit(.minutes(20)),
        arguments: [
            (FileFormat.html, "<DL><DT>", "<H3>a</H3>", 100_000), (.markdown, "", "[](", 50_000), (.markdown, "", "[](x (", 50_000),
            (.markdown, "[b]: aa:b\n\n", String(repeating: "[", count: 450) + "b" + String(repeating: "]", count: 450), 500),
            (.markdown, "[b]: aa:b\n\n", String(repeating: "[", count: 50_000) + "b" + String(repeating: "][]", count: 50_000), 1),
        ])
    func within(format: FileFormat, start: String, piece: String, count: Int) {
        _ = format.read(Array((start + String(repeating: piece, count: count)).utf8), name: "x")
    }
}
