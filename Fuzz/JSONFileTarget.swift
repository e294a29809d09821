// libFuzzer target: imported JSON files, that is hexes and bookmarks of other programs. Each hex becomes one line of equivalent JSON.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzJSONFile(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(data, count)
    let bytes = input.all()
    guard let text = try? DecodedText(bytes).bytes, let file = try? JSONFile(text, name: "name") else { return 0 }
    if let bookmarks = file.bookmarks {
        FormatChecks.check(bookmarks)
        // A URL with escapes has another spelling in the file.
        guard !text.contains(UInt8(ascii: "\\")) else { return 0 }
        for link in bookmarks.forest.hexes.flatMap(\.links) {
            guard FormatChecks.occurs(Array(link.url.utf8), in: text) else { fatalError("an address is not in the file") }
        }
    }
    for hex in file.hexes {
        guard !hex.bytes.contains(0x0A), !hex.bytes.contains(0x0D) else { fatalError("a hex has several lines") }
        guard let again = try? JSONValue(parsing: Array(hex.bytes)), again.members != nil else { fatalError("a hex is no object") }
    }
    return 0
}
