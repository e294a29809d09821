public import HexlistFiles
import HexlistJSON
import HexlistModel

/// The body of `prepare-upload`: a request to send a text or files.
public struct PrepareUpload: Sendable {
    public var info: DeviceInfo
    /// The files in the order of the message, with distinct IDs.
    public var files: [DeviceFile]

    public init(info: DeviceInfo, files: [DeviceFile]) {
        self.info = info
        self.files = files
    }

    /// Decodes a body.
    /// - Throws: `tooLarge` for more than `LocalSendLimits.prepareBytes` bytes, `LocalSendLimits.files` files, or a too long preview.
    public init(parsing bytes: [UInt8]) throws(LocalSendFault) {
        guard bytes.count <= LocalSendLimits.prepareBytes else { throw .tooLarge("the request") }
        let members = try LocalSendObject(parsing: bytes)
        guard let info = members["info"] else { throw .invalid("`info` is missing") }
        self.info = try DeviceInfo(members: LocalSendObject(info))
        guard let written = members["files"]?.members else { throw .invalid("`files` is missing") }
        guard !written.isEmpty else { throw .invalid("`files` is empty") }
        guard written.count <= LocalSendLimits.files else { throw .tooLarge("the number of files") }
        files = []
        var ids: Set<[UInt8]> = []
        for member in written {
            let file = try DeviceFile(members: LocalSendObject(member.value))
            guard file.id.utf8.elementsEqual(member.nameBytes) else { throw .invalid("a file has another `id` than its member") }
            guard ids.insert(Array(member.nameBytes)).inserted else { throw .invalid("two files have the same `id`") }
            files.append(file)
        }
    }

    public var bytes: [UInt8] {
        var json = JSONWriter(wireCapacity: 1_024)
        json.object { json in
            json.named("info") { info.write(to: &$0) }
            json.named("files") { json in
                json.object { json in
                    for file in files { json.named(file.id) { file.write(to: &$0) } }
                }
            }
        }
        return json.bytes
    }

    /// The text, if the request is a message: exactly one file of a text type with a preview.
    public var text: String? {
        guard files.count == 1, let file = files.first, file.isText else { return nil }
        return file.preview
    }

    /// The announced sizes of all files.
    public var totalBytes: Int64 { files.reduce(0) { $0.addingReportingOverflow($1.size).overflow ? .max : $0 + $1.size } }
}

/// A file of a `prepare-upload`.
public struct DeviceFile: Sendable {
    /// Chosen by the sender, unique in its request, at most `LocalSendLimits.textBytes`.
    public var id: String
    /// The name, possibly with folders. Untrusted: `path` has the safe names.
    public var fileName: String
    /// Bytes, 0 or more.
    public var size: Int64
    /// A media type; old versions send one of `image`, `video`, `pdf`, `text`, `other`.
    public var fileType: String
    /// The SHA-256 of the content, 32 bytes.
    public var sha256: [UInt8]?
    /// The text of a message, or a picture's thumbnail.
    public var preview: String?
    /// The time of the last change as written by the sender, usually RFC 3339.
    public var modified: String?

    public init(
        id: String, fileName: String, size: Int64, fileType: String, sha256: [UInt8]? = nil, preview: String? = nil,
        modified: String? = nil
    ) {
        self.id = id
        self.fileName = fileName
        self.size = size
        self.fileType = fileType
        self.sha256 = sha256
        self.preview = preview
        self.modified = modified
    }

    init(members: LocalSendObject) throws(LocalSendFault) {
        guard let id = members["id"]?.string, !id.isEmpty, id.utf8.count <= LocalSendLimits.textBytes else {
            throw .invalid("`id` of a file")
        }
        guard let fileName = members["fileName"]?.string else { throw .invalid("`fileName` of a file") }
        guard fileName.utf8.count <= LocalSendLimits.fileNameBytes else { throw .tooLarge("`fileName` of a file") }
        guard let size = members.integer("size"), size >= 0 else { throw .invalid("`size` of a file") }
        self.id = id
        self.fileName = fileName
        self.size = size
        fileType = members.text("fileType") ?? ""
        preview = members["preview"]?.string
        if let preview, preview.utf8.count > LocalSendLimits.previewBytes { throw .tooLarge("`preview` of a file") }
        sha256 = members.text("sha256").flatMap { Fingerprint(localSend: $0)?.bytes }
        if let metadata = members["metadata"], !metadata.isNull {
            modified = try LocalSendObject(metadata).text("modified")
        }
    }

    func write(to json: inout JSONWriter) {
        json.object { json in
            json.member("id", id)
            json.member("fileName", fileName)
            json.member("size", size)
            json.member("fileType", fileType)
            json.member("sha256", sha256.map { Hexadecimal.encode($0) })
            json.member("preview", preview)
            if let modified {
                json.named("metadata") { json in json.object { $0.member("modified", modified) } }
            }
        }
    }

    /// Whether the type is a text: `text`, or a media type `text/…`.
    public var isText: Bool {
        let type = fileType.utf8.prefix(5).map(ASCII.lowercased)
        return type.elementsEqual("text".utf8) || type.elementsEqual("text/".utf8)
    }

    /// Maximum number of folders in the path of a file, so that its hexes have at most `ProtocolLimits.levels` levels. Deeper folders are
    /// left out.
    public static let maximumFolders = ProtocolLimits.levels - 1

    /// The safe names of the folders and the file, outermost first, at most `maximumFolders` and one. Empty components, `.` and `..` are
    /// left out.
    public var path: [FileName] {
        let parts = fileName.utf8.split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
            .filter { !$0.elementsEqual(".".utf8) && !$0.elementsEqual("..".utf8) }
            .map { FileName(bytes: Array($0)) }
        guard let name = parts.last else { return [FileName("")] }
        return parts.dropLast().prefix(Self.maximumFolders) + [name]
    }
}
