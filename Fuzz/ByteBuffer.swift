/// The part of NIO's `ByteBuffer` that the frame decoder uses, so that no target needs another module.
public struct ByteBuffer {
    var bytes: [UInt8] = []
    private(set) var readerIndex = 0

    var readableBytes: Int { bytes.count - readerIndex }

    func getInteger(at index: Int, as type: UInt32.Type) -> UInt32? {
        guard index + 4 <= bytes.count else { return nil }
        return bytes[index..<index + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }

    mutating func moveReaderIndex(forwardBy offset: Int) { readerIndex += offset }

    mutating func readBytes(length: Int) -> [UInt8]? {
        guard length >= 0, length <= readableBytes else { return nil }
        defer { readerIndex += length }
        return Array(bytes[readerIndex..<readerIndex + length])
    }
}
