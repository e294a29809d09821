// libFuzzer target: file requests, file links, file names and file lists of a peer. Must never trap. Accepted values are unchanged by
// writing and reading, no name leads out of a folder, and the work for a list is bounded.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzFiles(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(data, count)
    let choice = input.byte()
    let bytes = input.all()
    switch choice % 4 {
    case 0: readTarget(bytes)
    case 1: readLink(String(decoding: bytes, as: UTF8.self))
    case 2: readListing(bytes, after: choice & 4 == 0 ? nil : "m")
    default: readTexts(bytes)
    }
    return 0
}

private func readTarget(_ bytes: [UInt8]) {
    guard let target = FileRequestTarget(bytes) else { return }
    guard FileRequestTarget(target.description) == target, target.description.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
        fatalError("a target is not read as it was written")
    }
    if case .entry(let share, let path, let query) = target {
        check([share] + path.names)
        if case .list(.name, let after?) = query { check([after]) }
        guard path.names.count <= SharePath.maximumDepth, path.description.utf8.count <= SharePath.maximumBytes else {
            fatalError("a long path")
        }
        guard !path.names.isEmpty || path == .root else { fatalError("another root") }
    }
}

private func readLink(_ text: String) {
    guard let link = FileLink(text) else { return }
    guard let again = FileLink(link.description), again == link else { fatalError("a link is not read as it was written") }
    guard FileRequestTarget(link.requestTarget) != nil else { fatalError("what a link asks for is no request") }
    if case .offer(_, let name) = link.target { check(FileName(name)) }
}

private func readListing(_ bytes: [UInt8], after: String?) {
    guard let listing = FolderListing(jsonBytes: bytes, after: after) else { return }
    guard listing.entries.count + listing.leftOut <= FolderListing.maximumEntries else { fatalError("\(listing.entries.count) entries") }
    check(listing.entries.map(\.name) + (listing.next.map { [$0] } ?? []))
    if let next = listing.next, let after, !after.utf8.lexicographicallyPrecedes(next.utf8) { fatalError("a list leads back") }
    let written = listing.wireBytes
    guard let again = FolderListing(jsonBytes: written, after: after), again.wireBytes == written, again.leftOut == 0 else {
        fatalError("a list is not read as it was written")
    }
}

private func readTexts(_ bytes: [UInt8]) {
    let name = FileName(bytes: bytes)
    check(name)
    guard FileName(name.description) == name else { fatalError("cleaning twice cleans more") }
    let text = String(decoding: bytes, as: UTF8.self)
    if let range = FileRange(text) {
        guard FileRange(range.description) == range else { fatalError("a range is not read as it was written") }
        for size in [0, 1, 10, Int64.max] {
            guard let part = range.bytes(ofSize: size) else { continue }
            guard !part.isEmpty, part.lowerBound >= 0, part.upperBound <= size else { fatalError("bytes that are not there") }
            guard size == .max || ContentRange(ContentRange.bytes(part, of: size).description) == .bytes(part, of: size) else {
                fatalError("what is sent is not read as it was written")
            }
        }
    }
    if let range = ContentRange(text) {
        guard ContentRange(range.description) == range else { fatalError("what is sent is not read as it was written") }
    }
}

private func check(_ name: FileName) {
    for text in [name.description, name.numbered(2).description, name.numbered(10_000).description, name.partName("0")] {
        check([text])
        guard text.unicodeScalars.allSatisfy(TerminalText.isShown), !text.utf8.contains(UInt8(ascii: "\\")) else {
            fatalError("a name that is not shown")
        }
    }
    guard !name.description.hasPrefix("."), !name.description.hasPrefix("-") else { fatalError("a hidden name") }
}

private func check(_ names: [String]) {
    for name in names {
        let bytes = Array(name.utf8)
        guard (1...255).contains(bytes.count), !bytes.contains(0), !bytes.contains(UInt8(ascii: "/")), bytes != Array(".".utf8),
            bytes != Array("..".utf8)
        else { fatalError("no name of an entry") }
    }
}
