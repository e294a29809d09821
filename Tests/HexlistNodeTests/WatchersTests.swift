import Testing

@testable import HexlistNode

@Suite("Subscribers to changes", .timeLimit(.minutes(5)))
struct WatchersTests {
    @Test("changes are coalesced for a slow subscriber; the end comes after pending changes")
    func newest() async {
        let watchers = Watchers()
        let (early, late) = (watchers.changes(), watchers.changes())
        for _ in 0..<5 { watchers.notify() }
        var second = late.makeAsyncIterator()
        #expect(await second.next() != nil)
        watchers.finish()
        var count = 0
        for await _ in early { count += 1 }
        #expect(count == 1)
        #expect(await second.next() == nil)
    }

    @Test("a subscription after the end is finished at once")
    func over() async {
        let watchers = Watchers()
        watchers.finish()
        watchers.notify()
        for await _ in watchers.changes() { Issue.record("nothing is to come") }
    }
}
