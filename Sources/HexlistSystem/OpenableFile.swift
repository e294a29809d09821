package import HexlistModel

#if canImport(Glibc)
    internal import Glibc
#endif

/// Decides which files of peers may be opened by a desktop program: only images, audio, video, PDF and plain text. The desktop chooses the
/// program by the file name, so the type according to the name must match the type according to the content.
package enum OpenableFile {
    package enum Kind: Equatable {
        case image, audio, video, pdf, text
    }

    /// Number of bytes examined. Programs examine fewer to detect a file type.
    private static let examinedBytes = 64 << 10

    private static let bySuffix: [String: Kind] = [
        "png": .image, "jpg": .image, "jpeg": .image, "gif": .image, "webp": .image, "avif": .image, "heic": .image, "tif": .image,
        "tiff": .image, "bmp": .image, "mp3": .audio, "ogg": .audio, "oga": .audio, "opus": .audio, "flac": .audio, "m4a": .audio,
        "wav": .audio, "mp4": .video, "m4v": .video, "mov": .video, "mkv": .video, "webm": .video, "ogv": .video, "avi": .video,
        "pdf": .pdf, "txt": .text, "md": .text, "log": .text,
    ]

    /// Whether a file is of an allowed type, by name and by content.
    /// - Throws: `HexlistError` if the file cannot be read.
    package static func isOpenable(_ path: String) throws(HexlistError) -> Bool {
        guard let kind = kind(ofName: path) else { return false }
        let file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else {
            throw HexlistError(.notFound, "\(TerminalText.clean(path, columns: 1_000)) cannot be read (\(SystemError.last)).")
        }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
        let bytes = [UInt8](unsafeUninitializedCapacity: examinedBytes) { buffer, count in
            while count < examinedBytes {
                let part = read(file, buffer.baseAddress.map { $0 + count }, examinedBytes - count)
                guard part > 0 else { break }
                count += part
            }
        }
        return kinds(of: bytes, isAll: status.st_size <= examinedBytes).contains(kind)
    }

    package static func kind(ofName name: String) -> Kind? {
        let last = name.utf8.split(separator: UInt8(ascii: "/")).last ?? name.utf8[...]
        let parts = last.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count > 1, let suffix = parts.last else { return nil }
        return bySuffix[String(decoding: suffix.map(ASCII.lowercased), as: UTF8.self)]
    }

    /// Returns the types that a file can have according to its first bytes. For a container format these are audio and video, which only
    /// the name distinguishes.
    /// - Parameter isAll: whether `bytes` is the whole file.
    package static func kinds(of bytes: [UInt8], isAll: Bool = true) -> [Kind] {
        let has = { (text: String, offset: Int) in bytes.dropFirst(offset).starts(with: text.utf8) }
        let starts = { (prefix: [UInt8]) in bytes.starts(with: prefix) }
        if has("%PDF-", 0) { return [.pdf] }
        if starts([0x89, 0x50, 0x4E, 0x47]) || starts([0xFF, 0xD8, 0xFF]) || has("GIF8", 0)
            || has("BM", 0) && bytes.count > 14 && bytes[6] == 0
            || starts([0x49, 0x49, 0x2A, 0]) || starts([0x4D, 0x4D, 0, 0x2A]) || has("RIFF", 0) && has("WEBP", 8)
        {
            return [.image]
        }
        if has("ftyp", 4) { return [.image, .audio, .video] }
        if has("OggS", 0) || starts([0x1A, 0x45, 0xDF, 0xA3]) { return [.audio, .video] }
        if has("RIFF", 0), has("AVI ", 8) { return [.video] }
        if has("fLaC", 0) || has("ID3", 0) || has("RIFF", 0) && has("WAVE", 8)
            || bytes.count > 1 && bytes[0] == 0xFF && bytes[1] & 0xE6 == 0xE2
        {
            return [.audio]
        }
        return isPlainText(bytes, isAll: isAll) ? [.text] : []
    }

    /// Beginnings of content that some programs execute or render although the file name says plain text.
    private static let activeContent = ["<html", "<!doctype", "<head", "<body", "<script", "<svg", "<?xml", "<?php", "[desktop entry]"]

    private static func isPlainText(_ bytes: [UInt8], isAll: Bool) -> Bool {
        // If the file continues after the examined bytes, the last character may be incomplete.
        let whole = isAll ? bytes[...] : bytes.dropLast(3)
        guard let text = String(validating: whole, as: UTF8.self) ?? (isAll ? nil : cut(bytes)) else { return false }
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || [0x09, 0x0A, 0x0C, 0x0D].contains($0) }) else { return false }
        var start = text.utf8[...]
        if start.starts(with: [0xEF, 0xBB, 0xBF]) { start = start.dropFirst(3) }
        let first = start.drop { [0x20, 0x09, 0x0A, 0x0C, 0x0D].contains($0) }
        guard first.first != UInt8(ascii: "<"), !first.starts(with: "#!".utf8) else { return false }
        let lowered = text.utf8.map(ASCII.lowercased)
        return !activeContent.contains { mark in contains(lowered, Array(mark.utf8)) }
    }

    private static func cut(_ bytes: [UInt8]) -> String? {
        (0...3).lazy.compactMap { String(validating: bytes.dropLast($0), as: UTF8.self) }.first
    }

    private static func contains(_ bytes: [UInt8], _ mark: [UInt8]) -> Bool {
        guard bytes.count >= mark.count else { return false }
        return (0...(bytes.count - mark.count)).contains { start in
            bytes[start] == mark[0] && bytes[start..<start + mark.count].elementsEqual(mark)
        }
    }
}
