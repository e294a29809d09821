import Crypto
import HexlistAPI
import HexlistFiles
import HexlistModel
import HexlistNode
import HexlistStore
import HexlistTransfers
import Hummingbird
import NIOCore

/// The content of a drop: its text and its received files.
struct DropContent: Sendable {
    var text = ""
    var files: [KeylessHex.File] = []

    var isEmpty: Bool { files.isEmpty && text.allSatisfy(\.isWhitespace) }

    /// Length of a time window in milliseconds. Time is divided into windows of this length. Equal content in the same or the next window
    /// counts as a repeated request, so a repetition is recognised for one to two lengths.
    private static let window: Int64 = 120_000

    /// Returns the message ids of this content: `id` for the current window, and `earlier` for the window before it, in which equal content
    /// may have been stored.
    func messageIDs(at now: Int64) -> (id: MessageID, earlier: MessageID) {
        func id(_ window: Int64) -> MessageID {
            let parts = ["\(window)", text] + files.flatMap { [$0.file.name, $0.file.sha256.map { "\($0)" }.joined(separator: " ")] }
            return Self.messageID(parts)
        }
        return (id(now / Self.window), id(now / Self.window - 1))
    }

    /// Returns the message id for the `Idempotency-Key` of a request.
    static func messageID(key: String) -> MessageID { messageID([key]) }

    private static func messageID(_ parts: [String]) -> MessageID {
        var hash = SHA256()
        for part in parts { hash.update(data: Array("\(part.utf8.count) \(part)".utf8)) }
        let bytes = Array(hash.finalize())
        let half = { (bytes: ArraySlice<UInt8>) in bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
        return MessageID(UUIDBytes(high: half(bytes[0..<8]), low: half(bytes[8..<16])))
    }
}

/// Reads the body of a drop: its text into memory, its files into partial files.
struct DropReceiver: Sendable {
    let transfers: FileTransfers
    /// Number of bytes that have to stay free on the disk.
    let diskReserve: Int64

    /// Maximum bytes of all files of a drop.
    static let fileBytes: Int64 = 32 << 20
    /// Maximum number of files of a drop.
    static let fileLimit = 20
    /// Maximum bytes of the body of a drop, with its files, its text and the heads of its parts.
    static let bodyBytes = Int(fileBytes) + 512 << 10
    /// Maximum bytes of a body that is JSON or a form. Escapes can make a text in JSON up to six times as long.
    private static let fieldBytes = 448 << 10
    /// Number of bytes that are buffered before they are written to the disk.
    private static let chunk = 512 << 10

    private static let tooLarge = GuestRefusal(status: 413, message: "All files together can have at most \(fileBytes >> 20) MiB.")
    private static let longText = GuestRefusal(
        status: 413, message: "The text is longer than \(ProtocolLimits.stringBytes >> 10) KiB. Send it as a file.")

    /// A file that is being received. At the end, the caller has to call `finish` for it, or delete it with `discard`.
    private struct OpenFile {
        let id: OfferID
        let name: String
        let part: PartFile
        var pending = ByteBuffer()
    }

    /// Reads the body of a request.
    /// - Returns: the content. The caller has to store it or to call `discard`.
    /// - Throws: `GuestRefusal`, `FileFault`, or an error of the connection. The files are then deleted.
    func read(_ request: Request) async throws -> DropContent {
        var content = DropContent()
        var open: OpenFile?
        do {
            switch try DropFormat(contentType: request.headers[.contentType]) {
            case .text: content.text = try DropFields.text(try await bytes(request, ProtocolLimits.stringBytes))
            case .form: content.text = try DropFields.form(try await bytes(request, Self.fieldBytes))
            case .json: content.text = try DropFields.json(try await bytes(request, Self.fieldBytes))
            case .multipart(let boundary): try await readParts(request, boundary, &content, &open)
            case .file(let type):
                try checkLength(request)
                open = try await begin(Self.name(request, type))
                for try await bytes in request.body { try await append(bytes, to: &open, after: content) }
                try await finish(&open, &content)
            }
            guard content.text.utf8.count <= ProtocolLimits.stringBytes else { throw Self.longText }
            return content
        } catch {
            if let open { content.files.append(Self.file(open, sha256: [], name: "")) }
            await discard(content)
            throw error
        }
    }

    /// Deletes the files of content that is not stored.
    func discard(_ content: DropContent) async {
        let folder = transfers.guestFiles.folder
        try? await transfers.onFileThread { for file in content.files { folder.remove(file.file.session) } }
    }

    // MARK: Parts

    private func readParts(
        _ request: Request, _ boundary: String, _ content: inout DropContent, _ open: inout OpenFile?
    ) async throws {
        try checkLength(request)
        var fields = DropFields()
        /// The form field whose value is being read; `nil` while a file is being read.
        var field: (name: String, value: [UInt8])?
        do {
            var parser = try MultipartParser(boundary: boundary)
            for try await bytes in request.body {
                for event in try parser.feed(bytes.readableBytesView) {
                    switch event {
                    case .part(let name, let fileName?):
                        // A file without a name gets the name of its field.
                        open = try await begin(fileName.isEmpty ? name : fileName, after: content)
                    case .part(let name, nil): field = (name, [])
                    case .bytes(let bytes):
                        if open != nil {
                            try await append(ByteBuffer(bytes: bytes), to: &open, after: content)
                        } else {
                            field?.value += bytes
                            guard field?.value.count ?? 0 <= ProtocolLimits.stringBytes else { throw Self.longText }
                        }
                    case .partEnd:
                        if let read = field { _ = fields.set(read.name, try DropFields.text(read.value)) }
                        field = nil
                        try await finish(&open, &content)
                    }
                }
            }
            try parser.finish()
        } catch is MultipartParser.Fault {
            throw GuestRefusal.malformed
        }
        content.text = fields.joined
    }

    // MARK: Files

    private func begin(_ name: String, after content: DropContent = DropContent()) async throws -> OpenFile {
        guard content.files.count < Self.fileLimit else {
            throw GuestRefusal(status: 413, message: "At most \(Self.fileLimit) files can be sent at once.")
        }
        let (id, folder, reserve) = (OfferID.random, transfers.guestFiles.folder, diskReserve)
        let part = try await transfers.onFileThread {
            try folder.begin(
                "\(id)", number: 0, size: Self.fileBytes, digest: nil, modified: nil, minimumFree: reserve, mayBeShorter: true)
        }
        return OpenFile(id: id, name: FileName(name).description, part: part)
    }

    private func append(_ bytes: ByteBuffer, to open: inout OpenFile?, after content: DropContent) async throws {
        guard var file = open else { return }
        file.pending.writeImmutableBuffer(bytes)
        let size = content.files.map(\.file.size).clampedSum + file.part.length + Int64(file.pending.readableBytes)
        guard size <= Self.fileBytes else { throw Self.tooLarge }
        if file.pending.readableBytes >= Self.chunk { try await write(&file) }
        open = file
    }

    private func write(_ file: inout OpenFile) async throws {
        let (part, pending) = (file.part, file.pending)
        try await transfers.onFileThread { try pending.withUnsafeReadableBytes { try part.append($0) } }
        file.pending.clear()
    }

    private func finish(_ open: inout OpenFile?, _ content: inout DropContent) async throws {
        guard var file = open else { return }
        try await write(&file)
        let part = file.part
        let (digest, name) = try await transfers.onFileThread { (part.digest, try part.finish().name) }
        content.files.append(Self.file(file, sha256: digest, name: name))
        open = nil
    }

    private static func file(_ file: OpenFile, sha256: [UInt8], name: String) -> KeylessHex.File {
        KeylessHex.File(
            id: file.id,
            file: ArrivedFile(session: "\(file.id)", file: name, name: file.name, size: file.part.length, sha256: sha256),
            modified: Timestamp.now.milliseconds)
    }

    /// Returns the name of a file that is the whole body: from `Content-Disposition`, otherwise from the query parameter `name`, otherwise
    /// a default name with a suffix for its media type.
    private static func name(_ request: Request, _ type: String) -> String {
        if let name = request.headers[.contentDisposition].flatMap({ ParameterizedField($0).fileName }) { return name }
        if let name = request.uri.query.flatMap({ URLQuery(parsing: $0) })?.values("name").first { return name }
        return MediaType.suffix(of: type).map { "\(FileName.unnamed).\($0)" } ?? FileName.unnamed
    }

    // MARK: Bytes

    private func checkLength(_ request: Request) throws(GuestRefusal) {
        guard let length = request.headers[.contentLength].flatMap({ Int64($0) }) else { return }
        guard length <= Int64(Self.bodyBytes) else { throw Self.tooLarge }
    }

    private func bytes(_ request: Request, _ limit: Int) async throws -> [UInt8] {
        do { return try await RequestInput.body(request, limit: limit) } catch is HexlistError { throw Self.longText }
    }
}
