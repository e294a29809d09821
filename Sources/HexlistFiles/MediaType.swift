import HexlistModel

/// The media types (IANA) for common suffixes of file names.
public enum MediaType {
    private static let bySuffix: [String: String] = [
        "txt": "text/plain", "md": "text/markdown", "csv": "text/csv", "html": "text/html", "htm": "text/html", "ics": "text/calendar",
        "vcf": "text/vcard", "jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "gif": "image/gif", "webp": "image/webp",
        "svg": "image/svg+xml", "heic": "image/heic", "avif": "image/avif", "tif": "image/tiff", "tiff": "image/tiff",
        "mp3": "audio/mpeg", "ogg": "audio/ogg", "flac": "audio/flac", "m4a": "audio/mp4", "opus": "audio/ogg", "mp4": "video/mp4",
        "mkv": "video/matroska", "webm": "video/webm", "mov": "video/quicktime", "pdf": "application/pdf", "zip": "application/zip",
        "gz": "application/gzip", "zst": "application/zstd", "json": "application/json", "epub": "application/epub+zip",
        "odt": "application/vnd.oasis.opendocument.text", "ods": "application/vnd.oasis.opendocument.spreadsheet",
        "odp": "application/vnd.oasis.opendocument.presentation",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ]

    /// The suffix of file names for each media type: the shortest one in `bySuffix`.
    private static let suffixByType = Dictionary(
        bySuffix.map { ($0.value, $0.key) }, uniquingKeysWith: { ($0.utf8.count, $0) < ($1.utf8.count, $1) ? $0 : $1 })

    /// Returns a suffix of file names for a media type, without the dot; `nil` if the type is unknown.
    public static func suffix(of type: String) -> String? { suffixByType[type] }

    /// Returns the media type of a file by the suffix of its name; `nil` if the suffix is unknown.
    public static func of(_ name: String) -> String? {
        let parts = name.utf8.suffix(16).split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count > 1, let last = parts.last else { return nil }
        return bySuffix[String(decoding: last.map(ASCII.lowercased), as: UTF8.self)]
    }
}
