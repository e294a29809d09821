/// The known name nearest to one that is not known, for "did you mean".
public enum NearestName {
    /// The nearest one, however far it is: for lists so short that any of it is worth naming.
    ///
    /// - Parameter names: not empty; the first of equally near ones is taken.
    public static func of(_ name: String, among names: [String]) -> String? {
        let wanted = folded(name)
        return names.min { distance(wanted, folded($0)) < distance(wanted, folded($1)) }
    }

    /// The nearest one where it can be what was meant: at most a third of its letters differ, or it begins or ends with all of the name,
    /// which has at least three letters (`desc` for `description`). `nil` rather than a silly guess.
    public static func likely(_ name: String, among names: [String]) -> String? {
        let wanted = folded(name)
        let isPart = { (known: [UInt8]) in known.starts(with: wanted) || known.reversed().starts(with: wanted.reversed()) }
        if wanted.count >= 3, let longer = names.first(where: { isPart(folded($0)) }) { return longer }
        guard let nearest = of(name, among: names) else { return nil }
        let known = folded(nearest)
        return distance(wanted, known) <= max(1, min(wanted.count, known.count) / 3) ? nearest : nil
    }

    private static func folded(_ name: String) -> [UInt8] { Array(name.lowercased().utf8.prefix(80)) }

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
