/// A set of outbox rows by id: one bit each, in pieces of 65 536, so that a bulk send of a million hexes takes 128 KiB, in whatever order
/// its rows come.
public struct RowSet: Sendable {
    private static let pieceBits = 16
    private var pieces: [Int64: [UInt64]] = [:]
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    private static func place(_ id: Int64) -> (piece: Int64, word: Int, bit: UInt64) {
        (id >> pieceBits, Int(id & 0xFFFF) >> 6, 1 << UInt64(id & 63))
    }

    /// - Returns: whether the id was not in the set before.
    @discardableResult
    mutating func insert(_ id: Int64) -> Bool {
        let (piece, word, bit) = Self.place(id)
        let isNew = Self.set(bit, in: &pieces[piece, default: Array(repeating: 0, count: 1_024)][word])
        if isNew { count += 1 }
        return isNew
    }

    private static func set(_ bit: UInt64, in word: inout UInt64) -> Bool {
        defer { word |= bit }
        return word & bit == 0
    }

    func contains(_ id: Int64) -> Bool {
        let (piece, word, bit) = Self.place(id)
        return pieces[piece].map { $0[word] & bit != 0 } ?? false
    }

    /// The number of ids in a range that are in the set.
    func count(in ids: ClosedRange<Int64>) -> Int {
        var count = 0
        var id = ids.lowerBound
        while true {
            let last = min(id | 63, ids.upperBound)
            let (piece, word, _) = Self.place(id)
            let wanted = (UInt64.max << UInt64(id & 63)) & (UInt64.max >> UInt64(63 - (last & 63)))
            if let words = pieces[piece] { count += (words[word] & wanted).nonzeroBitCount }
            guard last < ids.upperBound else { return count }
            id = last + 1
        }
    }

    /// The ids as ranges in ascending order, as few as possible.
    public var ranges: [ClosedRange<Int64>] {
        var ranges: [ClosedRange<Int64>] = []
        for (piece, words) in pieces.sorted(by: { $0.key < $1.key }) {
            for (index, word) in words.enumerated() where word != 0 {
                let base = piece << Self.pieceBits | Int64(index) << 6
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
