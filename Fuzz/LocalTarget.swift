// libFuzzer target: input of the local API and the command line, that is JSON, requests and replies, queries, lines and event streams. Must
// never trap. Valid JSON is written as equivalent JSON.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLocal(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(data, count)
    let choice = input.byte()
    let bytes = input.all()
    switch choice % 4 {
    case 0: readQuery(bytes)
    case 1: readLines(bytes, step: 1 + Int(choice >> 2))
    default: readJSON(bytes)
    }
    return 0
}

private func readJSON(_ bytes: [UInt8]) {
    guard let value = try? JSONValue(parsing: bytes) else { return }
    let written = JSONValue(value)
    guard written.bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { fatalError("written JSON has a control character") }
    guard String(decoding: written.bytes, as: UTF8.self).unicodeScalars.allSatisfy(TerminalText.isShown) else {
        fatalError("written JSON cannot be shown")
    }
    guard let again = try? JSONValue(parsing: Array(written.bytes)) else { fatalError("written JSON is no JSON") }
    compare(value, again, depth: 0)
    func read<Shape: JSONShape>(_: Shape.Type) {
        guard let shape = try? Shape(json: value) else { return }
        guard let copy = try? Shape(jsonBytes: shape.jsonBytes), copy.jsonBytes == shape.jsonBytes else {
            fatalError("\(Shape.self) is not read as it was written")
        }
    }
    read(TrustRequest.self)
    read(PeerChange.self)
    read(UnreadPatch.self)
    read(HexSelection.self)
    read(ExportSelection.self)
    read(HexJSON.self)
    read(LinkJSON.self)
    read(PeerView.self)
    read(EventJSON.self)
    read(OutboxView.self)
    read(StatusJSON.self)
    read(RosterPeer.self)
}

/// Compares level by level, texts as bytes.
private func compare(_ left: JSONValue, _ right: JSONValue, depth: Int) {
    if let texts = left.string {
        guard let other = right.string, texts.utf8.elementsEqual(other.utf8) else { fatalError("another text") }
    } else if let elements = left.elements {
        guard let others = right.elements, elements.count == others.count else { fatalError("other elements") }
        if depth < 8 { for (left, right) in zip(elements, others) { compare(left, right, depth: depth + 1) } }
    } else if let members = left.members {
        guard let others = right.members, members.map(\.nameBytes) == others.map(\.nameBytes) else { fatalError("other members") }
        if depth < 8 { for (left, right) in zip(members, others) { compare(left.value, right.value, depth: depth + 1) } }
    } else {
        guard left == right, left.integer == right.integer, left.bool == right.bool else { fatalError("another value") }
    }
}

private func readQuery(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    guard let query = URLQuery(parsing: text) else { return }
    guard let again = URLQuery(parsing: query.text.drop { $0 == "?" }), again.items.count == query.items.count else {
        fatalError("a query is not read as it was written")
    }
    for (left, right) in zip(query.items, again.items) {
        guard left.name.utf8.elementsEqual(right.name.utf8), left.value.utf8.elementsEqual(right.value.utf8) else {
            fatalError("another query")
        }
    }
}

/// Lines and events do not depend on chunk sizes.
private func readLines(_ bytes: [UInt8], step: Int) {
    var (whole, cut) = (ServerSentEventParser(limit: 300), ServerSentEventParser(limit: 300))
    var (wholeLines, cutLines) = (LineAlignedStream(limit: 50), LineAlignedStream(limit: 50))
    let all = try? whole.feed(bytes)
    var pieces: [ServerSentEvent]? = []
    var lines: [UInt8] = []
    var start = 0
    while start < bytes.count {
        let piece = Array(bytes[start..<min(bytes.count, start + step)])
        if let more = try? cut.feed(piece) { pieces?.append(contentsOf: more) } else { pieces = nil }
        lines += cutLines.feed(piece)
        start += step
        if pieces == nil { break }
    }
    guard (all == nil) == (pieces == nil), all == nil || all == pieces else { fatalError("cutting a stream changes its events") }
    guard pieces == nil || lines + cutLines.finish() == wholeLines.feed(bytes) + wholeLines.finish() else {
        fatalError("cutting changes the lines")
    }
}
