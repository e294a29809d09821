// libFuzzer target: texts that are sent, and identities of addresses (`NormalizedLinkAddress`). Must never trap. Each found address is in the
// text, and the identity of an identity is the same bytes.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLinkText(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(data, count)
    let text = String(decoding: input.all(), as: UTF8.self)
    let found = LinkText(text)
    let bytes = Array(text.utf8).filter { $0 != UInt8(ascii: "\\") }
    for link in found.links {
        let url = Array(link.url.utf8).filter { $0 != UInt8(ascii: "\\") }
        // The scheme of `www.example.org` is not in the text.
        let isThere = FormatChecks.occurs(url, in: bytes) || FormatChecks.occurs(Array(url.dropFirst(8)), in: bytes)
        guard isThere else { fatalError("an address is not in the text: \(link.url)") }
    }
    let identity = NormalizedLinkAddress.of(Array(text.utf8))
    guard NormalizedLinkAddress.of(identity) == identity else { fatalError("the identity has another identity: \(identity)") }
    return 0
}
