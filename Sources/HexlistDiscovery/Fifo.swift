/// A queue: appends at the end, takes from the front, both in constant time over many calls.
struct Fifo<Element: Sendable>: Sendable {
    private var items: [Element] = []
    private var head = 0

    var count: Int { items.count - head }
    var isEmpty: Bool { head == items.count }
    var first: Element? { isEmpty ? nil : items[head] }

    mutating func append(_ element: Element) { items.append(element) }

    mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = items[head]
        head += 1
        if head > 32, head * 2 > items.count {
            items.removeFirst(head)
            head = 0
        }
        return element
    }

    mutating func keep(where isKept: (Element) -> Bool) {
        items = items[head...].filter(isKept)
        head = 0
    }
}
