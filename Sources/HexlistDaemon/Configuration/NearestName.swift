/// The known name nearest to one that is not known, for "did you mean".
enum NearestName {
    /// - Parameter names: not empty; the first of equally near ones is taken.
    static func of(_ name: String, among names: [String]) -> String? {
        let wanted = Array(name.lowercased().utf8.prefix(80))
        return names.min { distance(wanted, Array($0.lowercased().utf8)) < distance(wanted, Array($1.lowercased().utf8)) }
    }

    /// Insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
    static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for (row, leftByte) in left.enumerated() {
            var current = [row + 1]
            for (column, rightByte) in right.enumerated() {
                var best = min(last[column] + (leftByte == rightByte ? 0 : 1), last[column + 1] + 1, current[column] + 1)
                if row > 0, column > 0, leftByte == right[column - 1], left[row - 1] == rightByte {
                    best = min(best, beforeLast[column - 1] + 1)
                }
                current.append(best)
            }
            beforeLast = last
            last = current
        }
        return last[right.count]
    }
}
