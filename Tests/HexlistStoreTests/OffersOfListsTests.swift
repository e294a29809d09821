import HexlistLists
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

private typealias Person = SharingPerson

/// Files that are offered in My Hexlist and in shared hexes: the machines that may fetch them, and until when.
@Suite(.timeLimit(.minutes(5))) struct OffersOfListsTests: SharingScenario {
    private static let checkTime = OffersOfLists.checkTime

    private func row(_ number: UInt8) -> OfferRow {
        OfferRow(
            id: Array(repeating: number, count: 16), path: "/home/a/\(number)", identity: "1 2 3 4 5", name: "talk.pdf", size: 3,
            sha256: Array(repeating: 9, count: 32), mediaType: nil, modified: 4, ends: start + OfferRow.waitingTime)
    }

    private func url(_ offer: OfferRow, of person: Person) -> String {
        "hexlist://\(person.peer.id)/" + offer.id.map { $0 < 16 ? "0\(String($0, radix: 16))" : String($0, radix: 16) }.joined()
            + "/talk.pdf"
    }

    /// Adds links to files at the end of a hex, as a user who types their URLs.
    private func link(_ offers: [OfferRow], of owner: Person, to hex: Int64, by person: Person, at offset: Int64 = 3) async throws {
        let count = try #require(try person.test.read { try $0.hex(hex) }).content.links.count
        let links = (0..<count).map { MineEdit.Link(from: $0) } + offers.map { MineEdit.Link(url: url($0, of: owner)) }
        try await person.store.editMine(hex, MineEdit(links: links), at: start + offset)
    }

    /// Offers a file, and adds a hex with a link to it inside a hex of My Hexlist, as `mine add` does.
    private func add(_ number: UInt8, to hex: Int64, of person: Person) async throws -> OfferRow {
        let offer = row(number)
        try person.test.write { try $0.offer([offer], toListOf: hex) }
        var files = HexContent()
        files.hexDescription = files.add("Files \(number)")
        files.links = [
            LinkContent(url: files.add(url(offer, of: person)), linkDescription: files.add("talk.pdf"), service: files.add("Unknown"))
        ]
        _ = try await person.store.addMine(files, into: hex, at: start + 3)
        return offer
    }

    /// The hex that `add` has added.
    private func hexOfFiles(_ number: UInt8, of person: Person) throws -> Int64 {
        let id = try person.test.read { try $0.first("SELECT id FROM hex WHERE description = 'Files \(number)'") { $0.int64(0) } }
        return try #require(id)
    }

    /// Offers a file to peers only, as `send` does.
    private func offer(_ number: UInt8, to peers: Person..., by person: Person) async throws -> OfferRow {
        let offer = row(number)
        try await person.store.offer([offer], to: peers.map(\.peer.id))
        return offer
    }

    /// Which of the machines may fetch a file.
    private func audience(_ offer: OfferRow, of owner: Person, among machines: Person...) throws -> [Bool] {
        try machines.map { machine in try owner.test.read { try $0.offer(offer.id, to: machine.peer.id) } != nil }
    }

    private func removeLast(from hex: Int64, of person: Person, at offset: Int64 = 4) async throws {
        let count = try #require(try person.test.read { try $0.hex(hex) }).content.links.count
        try await person.store.editMine(hex, MineEdit(links: (0..<count - 1).map { .init(from: $0) }), at: start + offset)
    }

    /// Restores the newest item of the trash.
    private func restoreLast(_ person: Person) async throws {
        let item = try #require(try person.test.read { try $0.trashPage(limit: 1, before: nil) }.items.first)
        _ = try await person.store.restoreMine(numbers: [item.number], at: start + 5)
    }

    @Test("a file of a shared hex is for its members and own machines, while they have access and the link exists") func course()
        async throws
    {
        let (ada, bob, hex) = try await shared(.read)
        let (carol, laptop) = (try Person(3), try Person(4))
        try ada.trust(carol)
        try await pair(ada, laptop)
        let file = try await add(1, to: hex, of: ada)
        func audience() throws -> [Bool] { try self.audience(file, of: ada, among: bob, laptop, carol, Person(6)) }
        #expect(try audience() == [true, true, false, false])
        #expect(try ada.test.read { try $0.offer(file.id, to: bob.peer.id) }?.path == file.path)

        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .ended], at: start + 3)
        #expect(try audience() == [false, true, false, false])
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .write], at: start + 3)
        #expect(try audience() == [true, true, false, false])
        _ = try ada.test.trust(bob.peer, .blocked)
        #expect(try audience() == [false, true, false, false])
        try ada.trust(bob)

        try await removeLast(from: hexOfFiles(1, of: ada), of: ada)
        #expect(try audience() == [false, false, false, false])
        try await restoreLast(ada)
        #expect(try audience() == [true, true, false, false])
        // A member deletes it, and the owner's machine learns of it.
        for _ in 0..<2 { try await bob.request(from: ada, at: start + 6) }
        try await removeLast(from: hexOfFiles(1, of: bob), of: bob, at: 7)
        try await ada.request(from: bob, at: start + 8)
        #expect(try audience() == [false, false, false, false])
        try await restoreLast(ada)

        _ = try await ada.store.change([hex], .delete, at: start + 9)
        #expect(try audience() == [false, false, false, false])
        _ = try await ada.store.restoreMine(hex, at: start + 9)  // not shared any more
        #expect(try audience() == [false, true, false, false])
        _ = try await ada.store.removeOwnMachine(laptop.peer.id)
        #expect(try audience() == [false, false, false, false])
    }

    @Test("a file in a hex of My Hexlist gets the members when that hex is shared, on all machines") func sharing() async throws {
        let (ada, laptop, bob) = (try Person(1), try Person(4), try Person(2))
        try await pair(ada, laptop)
        for machine in [ada, laptop] { try machine.trust(bob) }
        try bob.trust(ada, laptop)
        let outer = try await ada.store.addMine(content("Outer", links: 1), at: start)
        let inner = try await ada.store.addMine(content("Inner", links: 1), into: outer, at: start)
        let other = try await ada.store.addMine(content("Other", links: 1), at: start)
        let files = [try await add(1, to: outer, of: ada), try await add(2, to: inner, of: ada), try await add(3, to: other, of: ada)]
        let gone = try await add(4, to: inner, of: ada)
        try await removeLast(from: hexOfFiles(4, of: ada), of: ada)
        func audience() throws -> [[Bool]] { try (files + [gone]).map { try self.audience($0, of: ada, among: laptop, bob) } }
        #expect(try audience() == [[true, false], [true, false], [true, false], [false, false]])

        try await exchange((ada, laptop), at: 5)
        let hex = try laptop.hex("Outer")
        _ = try await laptop.store.shareMine(hex, with: [bob.peer.id: .write], at: start + 6)
        try await exchange((ada, laptop), at: 7)
        #expect(try audience() == [[true, true], [true, true], [true, false], [false, false]])
        // Of this machine only: the laptop has no files.
        #expect(try self.audience(files[0], of: laptop, among: bob, ada) == [false, false])
        // The machine on which the hex is shared does the same.
        _ = try await ada.store.shareMine(other, with: [bob.peer.id: .read], at: start + 8)
        #expect(try audience()[2] == [true, true])
        #expect(try ada.isConsistent())
    }

    @Test("links of members do not widen the audience of an offer") func attack() async throws {
        let (ada, bob, hex) = try await shared(.write)
        let (carol, laptop) = (try Person(3), try Person(4))
        try ada.trust(carol)
        try carol.trust(ada)
        try await pair(ada, laptop)
        _ = try await ada.store.shareMine(hex, with: [carol.peer.id: .read], at: start + 2)
        let secret = try await ada.store.addMine(content("Secret", links: 1), at: start + 2)
        let exclusive = try await ada.store.addMine(content("Exclusive", links: 1), at: start + 2)
        _ = try await ada.store.shareMine(exclusive, with: [bob.peer.id: .read], at: start + 2)
        let files = [
            try await offer(1, to: bob, by: ada),  // sent to bob
            try await offer(2, by: ada),  // sent to somebody else; bob has got the link
            try await add(3, to: secret, of: ada),
            try await add(4, to: exclusive, of: ada),
        ]
        func audience() throws -> [[Bool]] { try files.map { try self.audience($0, of: ada, among: bob, carol, laptop) } }
        let before = try audience()
        #expect(before == [[true, false, false], [false, false, false], [false, false, true], [true, false, true]])

        try await link(files, of: ada, to: bob.hex("Reading"), by: bob, at: 4)
        for _ in 0..<2 { try await exchange((ada, bob), (ada, laptop), at: 5) }
        #expect(try ada.test.read { try $0.hex(hex) }?.content.links.count == 6)
        #expect(try audience() == before)

        // Changes of the user that keep the links of the member: an edit, a copy that is shared, a renewal, and a restored link.
        try await ada.store.editMine(
            hex, MineEdit(links: (0..<6).reversed().map { .init(from: $0, linkDescription: "\($0)") }), at: start + 6)
        let copy = try await ada.store.saveMine([hex], at: start + 6).ids[0]
        _ = try await ada.store.shareMine(copy, with: [carol.peer.id: .write], at: start + 7)
        #expect(try audience() == before)
        _ = try await ada.store.renewShared(hex, at: start + 8)
        try await removeLast(from: hex, of: ada, at: 9)
        try await restoreLast(ada)
        #expect(try audience() == before)
    }

    @Test("a hex that another own machine shares does not carry the offers to which a member adds links") func attackOnSharing()
        async throws
    {
        let (ada, laptop, bob) = (try Person(1), try Person(4), try Person(2))
        try await pair(ada, laptop)
        for machine in [ada, laptop] { try machine.trust(bob) }
        try bob.trust(ada, laptop)
        let secret = try await ada.store.addMine(content("Secret", links: 1), at: start)
        _ = try await ada.store.addMine(content("Reading", links: 1), at: start)
        let file = try await add(1, to: secret, of: ada)
        try await exchange((ada, laptop), at: 4)
        _ = try await laptop.store.shareMine(laptop.hex("Reading"), with: [bob.peer.id: .write], at: start + 5)
        try await join(bob, laptop)
        try await link([file], of: ada, to: bob.hex("Reading"), by: bob, at: 6)
        try await exchange((laptop, bob), at: 7)
        try await exchange((ada, laptop), at: 8)
        let hex = try ada.hex("Reading")
        #expect(try ada.test.read { try $0.hex(hex) }?.content.links.count == 2)
        #expect(try audience(file, of: ada, among: bob, laptop) == [false, true])
    }

    @Test("a renewed hex keeps its files, on all machines") func renewal() async throws {
        let (ada, bob, hex) = try await shared(.read)
        let laptop = try Person(4)
        try laptop.trust(bob)
        try await pair(ada, laptop)
        let file = try await add(1, to: hex, of: ada)
        try await exchange((ada, laptop), at: 5)
        _ = try await ada.store.renewShared(hex, at: start + 6)
        #expect(try audience(file, of: ada, among: bob, laptop) == [true, true])
        try await exchange((ada, laptop), at: 7)
        _ = try await laptop.store.renewShared(laptop.hex("Reading"), at: start + 8)
        try await exchange((ada, laptop), at: 9)
        #expect(try audience(file, of: ada, among: bob, laptop) == [true, true])
        #expect(try ada.test.read { try $0.sharedHexes() }.count == 1)
    }

    @Test("a file of a member is for the owner and the member's own machines") func member() async throws {
        let (ada, bob, hex) = try await shared(.write)
        let (carol, phone) = (try Person(3), try Person(5))
        try bob.trust(carol)
        try ada.trust(carol)
        _ = try await ada.store.shareMine(hex, with: [carol.peer.id: .write], at: start + 2)
        try await pair(bob, phone)
        let file = try await add(1, to: bob.hex("Reading"), of: bob)
        #expect(try audience(file, of: bob, among: ada, phone, carol) == [true, true, false])
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .ended], at: start + 4)
        try await bob.request(from: ada, at: start + 5)
        #expect(try audience(file, of: bob, among: ada, phone, carol) == [false, true, false])
        // Nothing is offered in a hex that the user cannot change.
        let copy = try bob.hex("Reading")
        for hex in [copy, 999] {
            #expect(throws: HexlistError.self) { try bob.test.write { [row = row(2)] in try $0.offer([row], toListOf: hex) } }
        }
        #expect(try bob.test.read { try $0.offer(row(2).id) } == nil)
    }

    @Test("an offer lasts as long as the link or its item in the trash, also after a restart, and not longer for other peers")
    func lifetime()
        async throws
    {
        let (ada, bob, hex) = try await shared(.read)
        let carol = try Person(3)
        try ada.trust(carol)
        let (sent, unused) = (try await offer(1, to: carol, by: ada), row(2))
        try ada.test.write { try $0.offer([sent, unused], toListOf: hex) }
        try await link([sent], of: ada, to: hex, by: ada)
        func maintain(at time: Int64) throws { _ = try ada.test.write(lived: time) { try $0.maintain(now: time) } }
        func check(at time: Int64) throws -> Int {
            try ada.test.write(lived: time) { writer in try writer.change { try writer.checkOffersOfLists(100) } }
        }
        func offers() throws -> [Bool] { try [sent, unused].map { offer in try ada.test.read { try $0.offer(offer.id) } != nil } }
        try maintain(at: start + OffersOfLists.unlinkedTime - 1)
        #expect(try offers() == [true, true])
        try maintain(at: start + OffersOfLists.unlinkedTime)
        #expect(try offers() == [true, false])
        for month in 1...6 {
            let time = start + OffersOfLists.unlinkedTime + Int64(month) * Self.checkTime
            try maintain(at: time)
            let found = try [bob, carol].map { peer in try ada.test.read(lived: time) { try $0.offer(sent.id, to: peer.peer.id) } != nil }
            #expect(found == [true, month < 2], "month \(month)")
        }
        let reopened = try HexStore(path: copyOfStore(ada))
        #expect(
            try reopened.readSync { try $0.offer(sent.id, to: bob.peer.id) } == ada.test.read { try $0.offer(sent.id, to: bob.peer.id) })
        try reopened.close()

        try await removeLast(from: hex, of: ada)
        #expect(try ada.test.read { try $0.offer(sent.id, to: bob.peer.id) } == nil)
        let last = start + OffersOfLists.unlinkedTime + 7 * Self.checkTime
        #expect(try check(at: start) == 0 && check(at: last) == 1)
        #expect(try ada.test.read { try $0.offer(sent.id) } != nil, "the link can be restored")
        _ = try await ada.store.emptyTrash()
        #expect(try check(at: last + Self.checkTime) == 1)
        #expect(try ada.test.read { try $0.first("SELECT count(*) FROM offer") { $0.int(0) } } == 0)
        #expect(try ada.test.read { try $0.first("SELECT count(*) FROM offerList") { $0.int(0) } } == 0)
    }

    private func copyOfStore(_ person: Person) throws -> String {
        let path = person.test.folder + "/copy.sqlite"
        try person.store.onWritingConnection { try $0.execute(sql: "VACUUM INTO '\(path)'") }
        return path
    }
}
