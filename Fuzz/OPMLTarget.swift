// libFuzzer target: imported outlines (FormatChecks.swift).

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOPML(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(data, count)
    FormatChecks.check(.opml, input.all())
    return 0
}
