import Crypto
import HexlistFiles
@testable import HexlistTransport
import NIOCore
import Testing

@testable import HexlistTransfers

/// Replies to requests for a file of ten bytes.
@Suite struct FileReplyTests {
    private final class Nothing: FileSource {
        func read(_ count: Int, at offset: Int64, isLast: Bool) throws -> ByteBuffer { ByteBuffer() }
    }

    private static let tag = EntityTag(
        of: FileIdentity(device: 1, inode: 2, size: 10, modified: 3, changed: 4), key: SymmetricKey(data: Array(repeating: 7, count: 32)))

    private func answer(
        range: String? = nil, ifRange: String? = nil, ifNoneMatch: String? = nil, ifMatch: String? = nil
    ) -> (status: Int, range: Range<Int64>?, contentRange: String?) {
        let request = FileRequest(isHead: false, target: "/", range: range, ifRange: ifRange, ifNoneMatch: ifNoneMatch, ifMatch: ifMatch)
        let answer = FileAnswers.answer(request, size: 10, tag: Self.tag, mediaType: nil, source: Nothing()) {}
        var bytes: Range<Int64>?
        if case .file(_, let range) = answer.body { bytes = range }
        return (answer.status, bytes, answer.fields.first { $0.0 == "Content-Range" }?.1)
    }

    @Test(arguments: [
        (range: String?.none, status: 200, bytes: 0..<10 as Range<Int64>?, field: String?.none),
        ("bytes=3-", 206, 3..<10, "bytes 3-9/10"), ("bytes=3-4", 206, 3..<5, "bytes 3-4/10"), ("bytes=-4", 206, 6..<10, "bytes 6-9/10"),
        ("bytes=9-99", 206, 9..<10, "bytes 9-9/10"), ("bytes=10-", 416, nil, "bytes */10"), ("bytes=0-1,3-4", 200, 0..<10, nil),
        ("lines=1-2", 200, 0..<10, nil), ("bytes=5-2", 200, 0..<10, nil),
    ])
    func ranges(range: String?, status: Int, bytes: Range<Int64>?, field: String?) {
        let answer = answer(range: range)
        #expect(answer.status == status && answer.range == bytes && answer.contentRange == field)
    }

    @Test func conditions() {
        let tag = Self.tag.description
        #expect(answer(range: "bytes=3-", ifRange: tag).status == 206)
        #expect(answer(range: "bytes=3-", ifRange: "\"other\"").range == 0..<10)
        #expect(answer(ifNoneMatch: "\"a\", \(tag)").status == 304)
        #expect(answer(ifNoneMatch: "\"a\"").status == 200)
        #expect(answer(ifMatch: "\"a\"").status == 412)
        #expect(answer(ifMatch: tag).status == 200)
    }
}
