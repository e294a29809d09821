// libFuzzer target: imported bookmarks in XBEL (FormatChecks.swift).

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzXBEL(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(data, count)
    FormatChecks.check(.xbel, input.all())
    return 0
}
