/// Finds the known name that is most similar to an unknown one, for "did you mean" hints.
public enum NearestName {
    /// Returns the most similar name if it is a likely match; otherwise `nil`. Either at most a third of its letters differ, or it begins
    /// or ends with the unknown name, which must have at least three letters (`desc` for `description`).
    ///
    /// - Parameter names: the known names. If several are equally similar, the first one is returned.
    public static func likely(_ name: String, among names: [String]) -> String? {
        let wanted = folded(name)
        let nearest = names.lazy.compactMap { known -> (name: String, distance: Int)? in
            let letters = folded(known)
            let bound = max(1, min(wanted.count, letters.count) / 3)
            // The edit distance is at least the difference of the lengths. Comparing lengths first rules out most names quickly.
            guard abs(wanted.count - letters.count) <= bound, wanted.count > 1 else { return nil }
            let distance = distance(wanted, letters)
            return distance <= bound ? (known, distance) : nil
        }.min { $0.distance < $1.distance }
        if let nearest { return nearest.name }
        guard wanted.count >= 3 else { return nil }
        return names.filter { known in
            let letters = folded(known)
            return letters.starts(with: wanted) || letters.reversed().starts(with: wanted.reversed())
        }.min { $0.utf8.count < $1.utf8.count }
    }

    private static func folded(_ name: String) -> [UInt8] { Array(name.lowercased().utf8.prefix(80)) }

    /// Returns the edit distance: the number of insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
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
