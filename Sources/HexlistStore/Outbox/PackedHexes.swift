internal import HexlistModel

/// The hexes of an outbox pack without their bodies, as one blob of consecutive entries:
///
///     16 bytes  message id
///     32        SHA-256 of a hex with a key (`PreparedHexes.add`); without a key usually zeros, and not used
///      4        length of the body, little-endian
///      2        length of the subject, little-endian; 0xFFFF for none
///               subject, UTF-8
///
/// The bodies are concatenated in a second blob, which is deleted once no row needs it. The layout must never change, because migration 13
/// writes it too. A new layout needs a new column.
struct PackedHexes {
    /// The positions of one hex in the two blobs.
    struct Entry {
        fileprivate var start: Int
        fileprivate var end: Int
        /// Byte range of the hex's body in the blob of bodies.
        var body: Range<Int>
    }

    private(set) var bytes: [UInt8] = []
    private(set) var entries: [Entry] = []

    private static let digestBytes = 32
    private static let fixedBytes = 16 + digestBytes + 4 + 2
    private static let noSubject: UInt16 = .max

    init() {}

    /// Decodes the blob of a pack; `nil` if the blob is damaged.
    init?(_ bytes: [UInt8]) {
        self.bytes = bytes
        let isWhole = bytes.withUnsafeBytes { raw in
            var start = 0
            var body = 0
            while start < raw.count {
                guard raw.count - start >= Self.fixedBytes else { return false }
                let count = Int(UInt32(littleEndian: raw.loadUnaligned(fromByteOffset: start + 48, as: UInt32.self)))
                let textBytes = UInt16(littleEndian: raw.loadUnaligned(fromByteOffset: start + 52, as: UInt16.self))
                let end = start + Self.fixedBytes + (textBytes == Self.noSubject ? 0 : Int(textBytes))
                guard end <= raw.count else { return false }
                entries.append(Entry(start: start, end: end, body: body..<(body + count)))
                body += count
                start = end
            }
            return true
        }
        guard isWhole else { return nil }
    }

    /// - Parameters:
    ///   - digest: up to 32 bytes. A shorter digest is padded with zeros.
    ///   - subject: up to 65 534 bytes of UTF-8; a longer subject is truncated. `nil` for none.
    mutating func append(messageID: UUIDBytes, digest: [UInt8], bodyBytes: Int, subject: String?) {
        let start = bytes.count
        withUnsafeBytes(of: (messageID.high.bigEndian, messageID.low.bigEndian)) { bytes.append(contentsOf: $0) }
        bytes += digest.prefix(Self.digestBytes)
        if digest.count < Self.digestBytes { bytes += repeatElement(0, count: Self.digestBytes - digest.count) }
        withUnsafeBytes(of: UInt32(truncatingIfNeeded: bodyBytes).littleEndian) { bytes.append(contentsOf: $0) }
        if var subject {
            subject.withUTF8 { text in
                let text = UnsafeRawBufferPointer(text).prefix(Int(Self.noSubject) - 1)
                withUnsafeBytes(of: UInt16(text.count).littleEndian) { bytes.append(contentsOf: $0) }
                bytes.append(contentsOf: text)
            }
        } else {
            withUnsafeBytes(of: Self.noSubject) { bytes.append(contentsOf: $0) }
        }
        let body = bodiesEnd
        entries.append(Entry(start: start, end: bytes.count, body: body..<(body + bodyBytes)))
    }

    mutating func append(_ more: PackedHexes) {
        let (start, body) = (bytes.count, bodiesEnd)
        bytes += more.bytes
        entries += more.entries.lazy.map {
            Entry(start: start + $0.start, end: start + $0.end, body: (body + $0.body.lowerBound)..<(body + $0.body.upperBound))
        }
    }

    /// The total length of all bodies in bytes.
    var bodiesEnd: Int { entries.last?.body.upperBound ?? 0 }

    /// Returns the bytes of the entries at these positions: the blob of a pack that has only these hexes.
    /// - Parameter positions: valid positions, at least one.
    func bytes(of positions: Range<Int>) -> ArraySlice<UInt8> {
        bytes[entries[positions.lowerBound].start..<entries[positions.upperBound - 1].end]
    }

    /// Returns the byte range, in the blob of bodies, of the bodies at these positions.
    /// - Parameter positions: valid positions, at least one.
    func bodies(of positions: Range<Int>) -> Range<Int> {
        entries[positions.lowerBound].body.lowerBound..<entries[positions.upperBound - 1].body.upperBound
    }

    /// Returns the message id of a hex; `nil` if the position is out of range.
    func messageID(at position: Int) -> UUIDBytes? {
        guard entries.indices.contains(position) else { return nil }
        let start = entries[position].start
        return bytes.withUnsafeBytes { UUIDBytes(raw: UnsafeRawBufferPointer(rebasing: $0[start..<start + 16])) }
    }

    func digest(at position: Int) -> ArraySlice<UInt8> {
        let start = entries[position].start + 16
        return bytes[start..<start + Self.digestBytes]
    }

    func subject(at position: Int) -> String? {
        let entry = entries[position]
        let start = entry.start + Self.fixedBytes
        let isNone = bytes[start - 2] == 0xFF && bytes[start - 1] == 0xFF
        return isNone ? nil : String(decoding: bytes[start..<entry.end], as: UTF8.self)
    }

    /// Returns the length of an entry in bytes, without the body.
    func size(at position: Int) -> Int { entries[position].end - entries[position].start }

    func position(of messageID: UUIDBytes) -> Int? { entries.indices.first { self.messageID(at: $0) == messageID } }
}
