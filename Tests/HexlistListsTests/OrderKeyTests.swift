import TestSupport
import Testing

@testable import HexlistLists

@Suite("Order keys") struct OrderKeyTests {
    @Test("inserting into one gap: 5 000 nodes one after the other need at most 60 bytes", arguments: [false, true])
    func oneGap(isBefore: Bool) throws {
        var generator = SeededGenerator(seed: 1)
        var low = OrderKey.first(number: 1_000, using: &generator)
        var high = try #require(OrderKey.after(low, number: 1_005, using: &generator))
        var longest = 0
        for _ in 0..<5_000 {
            let key = try #require(OrderKey.between(low, high, isNearHigh: isBefore, using: &generator))
            guard low < key, key < high else { throw Failure("\(low) \(key) \(high)") }
            if isBefore { high = key } else { low = key }
            longest = max(longest, key.bytes.count)
        }
        #expect(longest <= 60)
    }

    @Test("inserting at random positions keeps the order, with short keys") func anywhere() throws {
        var generator = SeededGenerator(seed: 2)
        var keys = [OrderKey.first(number: 1, using: &generator), OrderKey.first(number: 2, using: &generator)]
        for _ in 0..<2_000 {
            let index = Int.random(in: 1..<keys.count, using: &generator)
            let key = try #require(
                OrderKey.between(keys[index - 1], keys[index], isNearHigh: Bool.random(using: &generator), using: &generator))
            keys.insert(key, at: index)
        }
        #expect(zip(keys, keys.dropFirst()).allSatisfy { $0 < $1 } && keys.allSatisfy { $0.bytes.count <= 40 })
    }

    @Test("ends: by time, and beyond the neighbour if that is later; the newest first with the complement") func ends() throws {
        var generator = SeededGenerator(seed: 3)
        let key = OrderKey.first(number: 1_000, using: &generator)
        for number in [500, 1_000, 2_000] as [Int64] {
            #expect(try #require(OrderKey.after(key, number: number, using: &generator)) > key)
            #expect(try #require(OrderKey.before(key, number: number, using: &generator)) < key)
        }
        #expect(OrderKey.newestFirst(time: 2) < OrderKey.newestFirst(time: 1))
        let least = OrderKey.first(number: -1, using: &generator)
        let greatest = OrderKey.first(number: .max, using: &generator)
        #expect(try #require(OrderKey.before(least, number: 7, using: &generator)) < least)
        #expect(try #require(OrderKey.after(greatest, number: 7, using: &generator)) > greatest)
    }

    @Test("no key between equal, adjacent or exchanged keys, nor one that is too long")
    func none() {
        var generator = SeededGenerator(seed: 4)
        let long = Array(repeating: UInt8(7), count: 128)
        for (low, high) in [
            ([5], [5]), ([5], [5, 0]), ([5], [5, 0, 0]), ([6], [5]), (long.dropLast() + [6], long), (long, long), ([], [0]),
        ] {
            let key = OrderKey.between(OrderKey(bytes: low), OrderKey(bytes: high), isNearHigh: true, using: &generator)
            #expect(key == nil, "\(low) \(high)")
        }
    }

    @Test("hostile keys: a result is always between") func hostile() {
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<20_000 {
            func key() -> OrderKey {
                OrderKey(
                    bytes: (0..<Int.random(in: 0...4, using: &generator)).map { _ in [0, 1, 254, 255].randomElement(using: &generator) ?? 0
                    })
            }
            let (low, high) = (key(), key())
            if let key = OrderKey.between(low, high, isNearHigh: Bool.random(using: &generator), using: &generator) {
                #expect(low < key && key < high)
            }
            if let key = OrderKey.after(low, number: 9, using: &generator) { #expect(low < key) }
            if let key = OrderKey.before(low, number: 9, using: &generator) { #expect(key < low) }
        }
    }

    @Test("without room between two keys, neighbours get new keys, and the order stays", arguments: [1, 40]) func noRoom(count: Int) throws
    {
        var lists = Scenario()
        let hex = try lists.hex(.a, "H")
        // Keys that a faulty program can write: equal ones, and ones of the maximum length.
        try lists.change(.a) { list, generator in
            for index in 0..<60 {
                let key = OrderKey(bytes: Array(repeating: index < 30 ? 1 : 2, count: index % 2 == 0 || index < 30 ? 128 : 127))
                _ = try list.add(.link, in: hex, key: key, title: "", url: UTF8Text("\(index)"), using: &generator)
            }
        }
        try lists.sync()
        let before = lists.world.machines[0].storage.contents(of: hex).map(\.node.id)
        let added = try lists.change(.a) { list, generator in
            try list.keys(count: count, at: .after(before[44]), in: hex, using: &generator).map { key in
                try list.add(.link, in: hex, key: key, title: "", url: "new", using: &generator)
            }
        }
        try lists.sync()
        let after = lists.world.machines[2].storage.contents(of: hex)
        #expect(after.map(\.node.id) == before[...44] + added + before[45...])
        #expect(after.allSatisfy { 1...OrderKey.maximumBytes ~= $0.node.place?.key.bytes.count ?? 0 })
    }
}
