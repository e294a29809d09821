import Testing

@testable import HexlistNode

@Suite("Those who watch", .timeLimit(.minutes(5)))
struct WatchersTests {
    @Test("many changes are one element for who does not look; the end comes after what is there")
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

    @Test("a stream that is asked for after the end is over")
    func over() async {
        let watchers = Watchers()
        watchers.finish()
        watchers.notify()
        for await _ in watchers.changes() { Issue.record("nothing is to come") }
    }
}
