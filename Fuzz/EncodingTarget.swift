// libFuzzer target: encodings of imported files. An accepted text is UTF-8, and each line has one number.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzEncoding(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(data, count)
    let bytes = input.all()
    guard let text = try? DecodedText(bytes) else { return 0 }
    guard String(validating: text.bytes, as: UTF8.self) != nil else { fatalError("a text is not UTF-8") }
    var numbers = LineNumbers(text.bytes)
    for line in TextLines(text.bytes) {
        guard line.number == numbers.number(at: line.text.startIndex) else { fatalError("a line has two numbers") }
    }
    return 0
}
