/// Deadlines, the earliest first: a binary heap. A cancelled deadline is not searched for: the owner recognises it when it comes to the
/// top, or removes all of them with `keep(where:)`.
struct DeadlineQueue<Key: Sendable>: Sendable {
    private var heap: [(at: ContinuousClock.Instant, key: Key)] = []

    var count: Int { heap.count }
    var first: (at: ContinuousClock.Instant, key: Key)? { heap.first }

    mutating func push(_ key: Key, at instant: ContinuousClock.Instant) {
        heap.append((instant, key))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].at < heap[parent].at else { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    mutating func popFirst() -> (at: ContinuousClock.Instant, key: Key)? {
        guard let first = heap.first else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            sink(0)
        }
        return first
    }

    mutating func keep(where isKept: (ContinuousClock.Instant, Key) -> Bool) {
        heap = heap.filter { isKept($0.at, $0.key) }
        for index in stride(from: heap.count / 2 - 1, through: 0, by: -1) { sink(index) }
    }

    private mutating func sink(_ index: Int) {
        var parent = index
        while true {
            var least = parent
            for child in (2 * parent + 1)...(2 * parent + 2) where child < heap.count && heap[child].at < heap[least].at {
                least = child
            }
            guard least != parent else { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
