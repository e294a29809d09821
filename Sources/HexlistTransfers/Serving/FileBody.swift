import HexlistFiles
public import HexlistStore
public import HexlistTransport
public import NIOCore
import Synchronization

/// An offered or shared file as the body of a response.
final class FileBody: FileSource {
    let file: OfferedFile

    init(_ file: OfferedFile) { self.file = file }

    func read(_ count: Int, at offset: Int64, isLast: Bool) throws -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(capacity: count)
        let read = try buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { bytes in
            try file.read(into: UnsafeMutableRawBufferPointer(rebasing: bytes[..<count]), at: offset)
        }
        guard read == count else { throw FileFault.changed }
        if isLast { try file.check() }
        return buffer
    }
}

/// An offered file as the body of a request that this machine sends. It is opened at the first read.
public final class UploadBody: FileSource {
    private let offer: OfferRow
    private let opened = Mutex<FileBody?>(nil)

    public init(_ offer: OfferRow) { self.offer = offer }

    public func read(_ count: Int, at offset: Int64, isLast: Bool) throws -> ByteBuffer {
        let source = try opened.withLock { opened throws(FileFault) in
            if let opened { return opened }
            let source = FileBody(try OfferedFile(offered: offer.path, offer.identity))
            opened = source
            return source
        }
        return try source.read(count, at: offset, isLast: isLast)
    }
}

/// The HTTP responses for files, with ranges, entity tags and conditions as in RFC 9110.
enum FileAnswers {
    static let notFound = FileAnswer(status: 404)
    /// The file no longer exists, or has changed since it was offered.
    static let changed = FileAnswer(status: 410, fields: [("Content-Type", "text/plain")], body: .text("changed"))
    /// The file cannot be read, or the list cannot be sent now.
    static let broken = FileAnswer(status: 503)

    /// Returns the response with a listing. It has no entity tag, unlike the response with a file.
    static func list(_ listing: FolderListing) -> FileAnswer { json(listing.wireBytes) }

    /// Returns a response about lists. It has no entity tag.
    static func json(_ bytes: [UInt8]) -> FileAnswer {
        FileAnswer(
            status: 200, fields: [("Content-Type", "application/json")], body: .text(String(decoding: bytes, as: UTF8.self)))
    }

    /// Returns the response with a file, or with the requested range of it.
    /// - Parameter sent: called when the kernel has accepted the last byte of the file.
    static func answer(
        _ request: FileRequest, size: Int64, tag: EntityTag, mediaType: String?, source: any FileSource,
        sent: (@Sendable () -> Void)?
    ) -> FileAnswer {
        var fields = [("ETag", tag.description), ("Accept-Ranges", "bytes")]
        if let match = request.ifMatch, !tag.isListed(in: match) { return FileAnswer(status: 412, fields: fields) }
        if let none = request.ifNoneMatch, tag.isListed(in: none) { return FileAnswer(status: 304, fields: fields) }
        fields.append(("Content-Type", mediaType ?? "application/octet-stream"))
        let isStill = request.ifRange.map { EntityTag($0) == tag } ?? true
        guard isStill, let range = request.range.flatMap({ FileRange($0) }) else {
            return FileAnswer(status: 200, fields: fields, body: .file(source, 0..<size), sent: sent)
        }
        guard let bytes = range.bytes(ofSize: size) else {
            return FileAnswer(status: 416, fields: [("Content-Range", ContentRange.none(of: size).description)])
        }
        fields.append(("Content-Range", ContentRange.bytes(bytes, of: size).description))
        return FileAnswer(status: 206, fields: fields, body: .file(source, bytes), sent: bytes.upperBound == size ? sent : nil)
    }
}
