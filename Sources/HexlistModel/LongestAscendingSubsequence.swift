extension [Int?] {
    /// The indices of a longest ascending subsequence, without `nil`s. If the numbers are former positions of items in a new order, these
    /// are the most items that can stay at their places while the others are moved.
    public var longestAscendingIndices: Set<Int> {
        var ends: [Int] = []  // ends[n]: the index at which the ascending subsequence of length n + 1 with the smallest end ends
        var before = [Int?](repeating: nil, count: count)
        for (index, number) in enumerated() {
            guard let number else { continue }
            var (low, high) = (0, ends.count)
            while low < high {
                let middle = (low + high) / 2
                if self[ends[middle]] ?? 0 < number { low = middle + 1 } else { high = middle }
            }
            before[index] = low > 0 ? ends[low - 1] : nil
            if low < ends.count { ends[low] = index } else { ends.append(index) }
        }
        var indices: Set<Int> = []
        var next = ends.last
        while let index = next {
            indices.insert(index)
            next = before[index]
        }
        return indices
    }
}
