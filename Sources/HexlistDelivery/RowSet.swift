/// A set of outbox row ids: a bitmap in pages of 65 536 bits. A million consecutive rows take 128 KiB, in any order of insertion.
public struct RowSet: Sendable {
    private static let pageBits = 16
    private var pages: [Int64: [UInt64]] = [:]
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    private static func position(_ id: Int64) -> (page: Int64, word: Int, bit: UInt64) {
        (id >> pageBits, Int(id & 0xFFFF) >> 6, 1 << UInt64(id & 63))
    }

    /// Adds an id.
    /// - Returns: whether the id was not in the set before.
    @discardableResult
    mutating func insert(_ id: Int64) -> Bool {
        let (page, word, bit) = Self.position(id)
        let isNew = Self.set(bit, in: &pages[page, default: Array(repeating: 0, count: 1_024)][word])
        if isNew { count += 1 }
        return isNew
    }

    private static func set(_ bit: UInt64, in word: inout UInt64) -> Bool {
        defer { word |= bit }
        return word & bit == 0
    }

    func contains(_ id: Int64) -> Bool {
        let (page, word, bit) = Self.position(id)
        return pages[page].map { $0[word] & bit != 0 } ?? false
    }

    /// The number of elements in a range.
    func count(in ids: ClosedRange<Int64>) -> Int {
        var count = 0
        var id = ids.lowerBound
        while true {
            let last = min(id | 63, ids.upperBound)
            let (page, word, _) = Self.position(id)
            let mask = (UInt64.max << UInt64(id & 63)) & (UInt64.max >> UInt64(63 - (last & 63)))
            if let words = pages[page] { count += (words[word] & mask).nonzeroBitCount }
            guard last < ids.upperBound else { return count }
            id = last + 1
        }
    }

    /// The elements, as the smallest number of ranges, in ascending order.
    public var ranges: [ClosedRange<Int64>] {
        var ranges: [ClosedRange<Int64>] = []
        for (page, words) in pages.sorted(by: { $0.key < $1.key }) {
            for (index, word) in words.enumerated() where word != 0 {
                let base = page << Self.pageBits | Int64(index) << 6
                for bit in 0..<64 as Range<Int64> where word & (1 << UInt64(bit)) != 0 {
                    if let last = ranges.last, last.upperBound + 1 == base + bit {
                        ranges[ranges.count - 1] = last.lowerBound...(base + bit)
                    } else {
                        ranges.append((base + bit)...(base + bit))
                    }
                }
            }
        }
        return ranges
    }
}
