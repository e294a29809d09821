// libFuzzer target: imported links in Markdown (FormatChecks.swift).

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzMarkdown(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(data, count)
    FormatChecks.check(.markdown, input.all())
    return 0
}
