// libFuzzer target: imported lists of links (FormatChecks.swift).

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLinkList(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(data, count)
    FormatChecks.check(.list, input.all())
    return 0
}
