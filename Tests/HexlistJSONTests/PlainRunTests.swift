import HexlistJSON
import Testing

@Suite("Runs of characters without escapes") struct PlainRunTests {
    @Test("end where a byte-by-byte scan ends them", arguments: [0, 1, 7, 8, 9, 15, 16, 17, 31, 64, 65, 200])
    func plainRuns(count: Int) {
        for byte in UInt8.min...UInt8.max {
            let isPlain = byte >= 0x20 && byte < 0x80 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
            for filling in [UInt8(ascii: "!"), 0x20, 0x23, 0x5B, 0x5D, 0x7F] {
                for place in Set([0, 1, 6, 7, 8, 9, count / 2, count - 2, count - 1]) where (0..<count).contains(place) {
                    var bytes = [UInt8](repeating: filling, count: count)
                    bytes[place] = byte
                    let ends = bytes.withUnsafeBufferPointer { buffer in
                        [0, 1, 7, 8, 15, 16, place].filter { $0 <= place }.map { JSONScanner(buffer)?.plainRun(from: $0) }
                    }
                    #expect(ends.allSatisfy { $0 == (isPlain ? count : place) }, "byte \(byte) at \(place) of \(filling)")
                }
            }
        }
    }

    @Test("of random bytes end where a byte-by-byte scan ends them")
    func random() {
        var generator = SystemRandomNumberGenerator()
        let ends: [UInt8] = [0x00, 0x1F, 0x20, 0x21, 0x22, 0x23, 0x5B, 0x5C, 0x5D, 0x7F, 0x80, 0xA0, 0xA1, 0xDC, 0xFF]
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
                Int.random(in: 0..<4, using: &generator) == 0
                    ? ends[Int.random(in: 0..<ends.count, using: &generator)] : UInt8.random(in: 0x30...0x5A, using: &generator)
            }
            for start in 0...bytes.count {
                let end = bytes[start...].firstIndex { $0 < 0x20 || $0 >= 0x80 || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }
                let found = bytes.withUnsafeBufferPointer { JSONScanner($0)?.plainRun(from: start) }
                #expect(found == (end ?? bytes.count) || bytes.isEmpty, "\(bytes) from \(start)")
            }
        }
    }

    @Test("no scanner for an empty buffer") func nothing() {
        let isMissing = JSONScanner(UnsafeBufferPointer<UInt8>(start: nil, count: 0)) == nil
        #expect(isMissing)
    }
}
