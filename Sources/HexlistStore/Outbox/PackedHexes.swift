internal import HexlistModel

/// The hexes of a pack of the outbox without their bodies, as one blob: hex after hex
///
///     16 bytes  message id
///     32        digest of a hex with a key; zeros, or a digest, of one without
///      4        length of the body, little-endian
///      2        length of the subject, little-endian; 0xFFFF for none
///               subject, UTF-8
///
/// The bodies lie one behind the other in a blob of their own, which goes earlier. Migration 13 writes this layout too, so it never changes:
/// another one needs another column.
struct PackedHexes {
    /// One hex, as it lies in the blob.
    struct Entry {
        fileprivate var start: Int
        fileprivate var end: Int
        /// Where its body lies among the bodies.
        var body: Range<Int>
    }

    private(set) var bytes: [UInt8] = []
    private(set) var entries: [Entry] = []

    private static let digestBytes = 32
    private static let fixedBytes = 16 + digestBytes + 4 + 2
    private static let noSubject: UInt16 = .max

    init() {}

    /// - Returns: `nil` where the blob is damaged.
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
    ///   - digest: 32 bytes; fewer are filled up with zeros.
    ///   - subject: up to 65 534 bytes; `nil` where none was kept.
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

    /// The end of the last body among all.
    var bodiesEnd: Int { entries.last?.body.upperBound ?? 0 }

    /// The part of the blob that is of these positions: the blob of a pack with these hexes.
    /// - Parameter positions: some there are, at least one.
    func bytes(of positions: Range<Int>) -> ArraySlice<UInt8> {
        bytes[entries[positions.lowerBound].start..<entries[positions.upperBound - 1].end]
    }

    /// Where the bodies of these positions lie among all.
    /// - Parameter positions: some there are, at least one.
    func bodies(of positions: Range<Int>) -> Range<Int> {
        entries[positions.lowerBound].body.lowerBound..<entries[positions.upperBound - 1].body.upperBound
    }

    /// `nil` where there is no hex at that position.
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

    /// The bytes that the blob has of the hex at a position.
    func size(at position: Int) -> Int { entries[position].end - entries[position].start }

    func position(of messageID: UUIDBytes) -> Int? { entries.indices.first { self.messageID(at: $0) == messageID } }
}
