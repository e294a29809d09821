// libFuzzer's way into lists of links that are imported (FormatChecks.swift).

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLinkList(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(data, count)
    FormatChecks.check(.list, input.all())
    return 0
}
