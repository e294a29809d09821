// libFuzzer target: imported bookmarks in HTML (FormatChecks.swift).

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTML(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(data, count)
    FormatChecks.check(.html, input.all())
    return 0
}
