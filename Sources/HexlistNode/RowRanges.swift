/// Rows of the outbox as ranges of ids: what a bulk send is made of, in a few words however long it is.
struct RowRanges: Sendable, Equatable {
    /// Ascending, without overlap, none that could be joined with the next.
    private(set) var all: [ClosedRange<Int64>] = []
    private(set) var count = 0

    var isEmpty: Bool { all.isEmpty }

    /// - Returns: whether it was not there.
    @discardableResult
    mutating func insert(_ id: Int64) -> Bool {
        if let last = all.last, id > last.upperBound {
            if id - 1 == last.upperBound { all[all.count - 1] = last.lowerBound...id } else { all.append(id...id) }
            count += 1
            return true
        }
        let index = firstRange(endingAtOrAfter: id)
        guard index == all.count || !all[index].contains(id) else { return false }
        let touchesBefore = index > 0 && all[index - 1].upperBound + 1 == id
        let touchesAfter = index < all.count && all[index].lowerBound - 1 == id
        switch (touchesBefore, touchesAfter) {
        case (true, true):
            all[index - 1] = all[index - 1].lowerBound...all[index].upperBound
            all.remove(at: index)
        case (true, false): all[index - 1] = all[index - 1].lowerBound...id
        case (false, true): all[index] = id...all[index].upperBound
        case (false, false): all.insert(id...id, at: index)
        }
        count += 1
        return true
    }

    func contains(_ id: Int64) -> Bool {
        let index = firstRange(endingAtOrAfter: id)
        return index < all.count && all[index].contains(id)
    }

    private func firstRange(endingAtOrAfter id: Int64) -> Int {
        var low = 0
        var high = all.count
        while low < high {
            let middle = (low + high) / 2
            if all[middle].upperBound < id { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
