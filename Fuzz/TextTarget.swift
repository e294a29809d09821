// libFuzzer target: text for display. Any input is a text, however malformed. Its cleaned form and its JSON are one printable line, and the
// JSON decodes to the text.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzText(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(data, count)
    let columns = Int(input.byte())
    let text = String(decoding: input.all(), as: UTF8.self)
    let clean = TerminalText.clean(text)
    check(clean, isLongerBy: 0, than: text)
    guard TerminalText.clean(clean).utf8.elementsEqual(clean.utf8) else { fatalError("cleaning twice cleans more") }
    let short = TerminalText.clean(text, columns: columns)
    check(short, isLongerBy: 1, than: text)
    guard short.count <= max(1, columns) else { fatalError("\(short.count) characters where \(columns) were allowed") }

    var json = JSONWriter()
    json.string(text)
    check(String(decoding: json.bytes, as: UTF8.self), isLongerBy: .max, than: text)
    guard let value = try? JSONValue(parsing: json.bytes), let string = value.string, string.utf8.elementsEqual(text.utf8) else {
        fatalError("a text in JSON is another text")
    }
    var minimal: [UInt8] = []
    JSONText.append(text, to: &minimal)
    guard let same = try? JSONValue(parsing: minimal), same.string?.utf8.elementsEqual(text.utf8) == true else {
        fatalError("a text in the wire's JSON is another text")
    }
    return 0
}

private func check(_ shown: String, isLongerBy more: Int, than text: String) {
    guard shown.unicodeScalars.allSatisfy(TerminalText.isShown) else { fatalError("it cannot be shown") }
    guard more == .max || shown.unicodeScalars.count <= text.unicodeScalars.count + more else { fatalError("it grew") }
}
