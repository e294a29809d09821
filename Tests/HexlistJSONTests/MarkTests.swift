import HexlistJSON
import Testing

@Suite("Marked bytes") struct MarkTests {
    @Test("a plain run ends where a search byte by byte ends it", arguments: [0, 1, 15, 16, 63, 64, 65, 127, 128, 129, 200, 8_064, 8_065])
    func plainRuns(count: Int) {
        for byte in UInt8.min...UInt8.max {
            let isPlain = byte >= 0x20 && byte < 0x80 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
            for place in Set([0, 1, 62, 63, 64, 65, count / 2, count - 2, count - 1]) where (0..<count).contains(place) {
                var bytes = [UInt8](repeating: UInt8(ascii: "!"), count: count)
                bytes[place] = byte
                let ends = bytes.withUnsafeBufferPointer { buffer in
                    JSONScanner.scan(buffer) { json in
                        [0, 1, 7, 8, 63, 64, place].filter { $0 <= place }.map { json?.plainRun(from: $0) }
                    }
                }
                #expect(ends.allSatisfy { $0 == (isPlain ? count : place) }, "byte \(byte) at \(place)")
            }
        }
    }

    @Test("no bytes have no scanner") func nothing() {
        let none = UnsafeBufferPointer<UInt8>(start: nil, count: 0)
        #expect(JSONScanner.scan(none) { $0 == nil })
    }
}
