/// The lines of a file without white space at both ends, including blank lines. A line ends with LF, CRLF or CR.
struct TextLines: Sequence, IteratorProtocol {
    struct Line {
        /// The line number, counted from 1.
        var number: Int
        var text: ArraySlice<UInt8>
    }

    private let bytes: ArraySlice<UInt8>
    private var position: Int
    private var number = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes[...]
        position = bytes.starts(with: ByteOrderMark.utf8) ? 3 : 0
    }

    mutating func next() -> Line? {
        guard position < bytes.endIndex else { return nil }
        let end = bytes[position...].firstIndex { $0 == 0x0A || $0 == 0x0D } ?? bytes.endIndex
        let line = bytes[position..<end]
        position = end + 1
        if end < bytes.endIndex, bytes[end] == 0x0D, position < bytes.endIndex, bytes[position] == 0x0A { position += 1 }
        number += 1
        return Line(number: number, text: MarkupText.trimmed(line))
    }
}

/// Converts byte offsets in a file to line numbers. For ascending offsets, the file is read only once.
struct LineNumbers {
    private let bytes: [UInt8]
    private var position = 0
    private var number = 1

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// - Parameter offset: an offset in bytes; clamped to the end of the file.
    mutating func number(at offset: Int) -> Int {
        if offset < position { (position, number) = (0, 1) }
        let end = Swift.min(offset, bytes.count)
        while position < end {
            // In CRLF, only the LF ends the line.
            let isEnd = bytes[position] == 0x0A || bytes[position] == 0x0D && !(position + 1 < bytes.count && bytes[position + 1] == 0x0A)
            if isEnd { number += 1 }
            position += 1
        }
        return number
    }
}
