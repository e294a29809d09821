// libFuzzer target: imported bookmarks in CSV (FormatChecks.swift).

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzCSV(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(data, count)
    FormatChecks.check(.csv, input.all())
    return 0
}
