import HexlistModel
import Testing

@testable import HexlistDaemon

/// The state machine of invitations: guests, keys, files, hexes and ends.
@Suite("Invitations of guests") struct GuestInvitationTests {
    private let start = ContinuousClock.now
    private let phone = IPAddress("192.168.7.31")
    private let other = IPAddress("192.168.7.32")

    private func address(_ last: Int) throws -> IPAddress { try #require(IPAddress("10.1.\(last / 250).\(1 + last % 250)")) }
    private func peer(_ number: UInt64 = 0) -> PeerID { PeerID(MessageID.random().uuid) }

    private func upload(_ id: Int, name: String = "a.jpg", size: Int64 = 10, modified: Int64 = 1) -> GuestInvitations.Upload {
        GuestInvitations.Upload(id: "\(id)", name: name, size: size, modified: modified)
    }

    /// An invitation with the key [1] and a guest with the token [9].
    private func joined(
        time: Duration = .seconds(600), isOnce: Bool = false
    ) throws -> (GuestInvitations, GuestInvitations.GuestID, IPAddress) {
        var table = GuestInvitations()
        let phone = try #require(phone)
        let invited = table.invite(key: [1], .init(time: time, isOnce: isOnce), now: start)
        let id = try #require(invited)
        let joined = table.join(key: [1], token: nil, newToken: [9], peer: peer(), from: phone, now: start)
        let guest = GuestInvitations.GuestID(invitation: id, guest: 0)
        #expect(joined == .joined(guest, isNew: true))
        return (table, guest, phone)
    }

    private func refusal(_ body: () throws -> Void) -> Int? {
        do {
            try body()
            return nil
        } catch {
            return (error as? GuestRefusal)?.status
        }
    }

    @Test("at most four invitations are active; the end of one permits another") func limit() throws {
        var table = GuestInvitations()
        let ids = (1...4).map { table.invite(key: [UInt8($0)], .init(time: .seconds(60)), now: start) }
        #expect(ids == [1, 2, 3, 4] && table.invite(key: [5], .init(time: .seconds(60)), now: start) == nil)
        #expect(table.end(2, .user) == [] && table.end(2, .user) == nil && table.end(7, .user) == nil)
        #expect(table.invite(key: [5], .init(time: .seconds(60)), now: start) == 5)
        #expect(table.isOpen(start + .seconds(59)) && !table.isOpen(start + .seconds(60)))
        #expect(table.nextDeadline(start) == start + .seconds(60))
        _ = table.update(start + .seconds(60))
        #expect(table.invite(key: [6], .init(time: .seconds(60)), now: start + .seconds(60)) == 6)
        _ = table.update(start + .seconds(60))
        #expect(table.all.count <= 5)
    }

    @Test("a reload with the token is the same guest; another address or token is a new one, up to eight") func slots() throws {
        var (table, guest, phone) = try joined()
        let other = try #require(other)
        #expect(
            table.join(key: [1], token: [9], newToken: [10], peer: peer(), from: phone, now: start) == .joined(guest, isNew: false))
        for number in 1...7 {
            let next = GuestInvitations.GuestID(invitation: 1, guest: number)
            #expect(
                table.join(key: [1], token: [9], newToken: [UInt8(20 + number)], peer: peer(), from: other, now: start)
                    == .joined(next, isNew: true))
        }
        guard case .refused(let full) = table.join(key: [1], token: nil, newToken: [40], peer: peer(), from: other, now: start) else {
            Issue.record("a ninth guest joined")
            return
        }
        #expect(full.status == 429)
        // A token is valid for its address only.
        #expect(refusal { _ = try table.guest(token: [9], from: phone, now: start) } == nil)
        #expect(refusal { _ = try table.guest(token: [9], from: other, now: start) } == 403)
        #expect(refusal { _ = try table.guest(token: [8], from: phone, now: start) } == 403)
    }

    @Test("an invitation for one hex takes no second one while the first is being stored") func onceWhileStoring() throws {
        var table = GuestInvitations()
        _ = table.invite(key: [1], .init(time: .seconds(60), isOnce: true), now: start)
        guard case .joined(let guest, _) = table.join(key: [1], token: nil, newToken: [9], peer: peer(), from: try address(1), now: start)
        else { throw CancellationError() }
        #expect(try table.send("a", files: [], of: guest, now: start) == .store([]))
        #expect(refusal { _ = try table.send("b", files: [], of: guest, now: start) } == 410)
        // Hex `a` could not be stored, so the invitation still permits one hex.
        _ = table.notSent("a", files: [], of: guest)
        #expect(try table.send("b", files: [], of: guest, now: start) == .store([]))
    }

    @Test("five wrong keys of an address block it, fifty end all invitations") func wrongKeys() throws {
        var (table, guest, _) = try joined()
        _ = try table.announce(upload(1), of: guest, now: start)
        var statuses: [Int] = []
        for number in 0..<9 {
            for _ in 0..<5 {
                guard
                    case .refused(let refusal) = table.join(
                        key: [7], token: nil, newToken: [50], peer: peer(), from: try address(number), now: start)
                else { throw CancellationError() }
                statuses.append(refusal.status)
            }
            // The right key does not help a blocked address.
            guard
                case .refused(let refusal) = table.join(
                    key: [1], token: nil, newToken: [50], peer: peer(), from: try address(number), now: start)
            else { throw CancellationError() }
            #expect(refusal.status == 429)
        }
        #expect(statuses == Array(repeating: 403, count: 45) && table.isOpen(start))
        let last = try address(9)
        for _ in 0..<4 { _ = table.join(key: [7], token: nil, newToken: [50], peer: peer(), from: last, now: start) }
        #expect(
            table.join(key: [7], token: nil, newToken: [50], peer: peer(), from: last, now: start) == .allEnded([upload(1)]))
        #expect(!table.isOpen(start) && table.invitation(1)?.end == .keys)
        // The wrong keys of an earlier invitation do not count against the next one.
        #expect(table.invite(key: [2], .init(time: .seconds(60)), now: start) == 2)
        #expect(
            table.join(key: [2], token: nil, newToken: [51], peer: peer(), from: last, now: start)
                == .joined(.init(invitation: 2, guest: 0), isNew: true))
    }

    @Test("files: sizes, numbers and bytes are bounded, and the same file is found again") func files() throws {
        var (table, guest, _) = try joined()
        #expect(try table.announce(upload(1), of: guest, now: start).isNew)
        let again = try table.announce(upload(2), of: guest, now: start)
        #expect(again.0 == upload(1) && !again.isNew)
        #expect(try table.announce(upload(3, modified: 2), of: guest, now: start).isNew)
        #expect(refusal { _ = try table.announce(upload(4, size: -1), of: guest, now: start) } == 413)
        #expect(refusal { _ = try table.announce(upload(4, size: (4 << 30) + 1), of: guest, now: start) } == 413)
        for number in 5...7 { _ = try table.announce(upload(number, size: 4 << 30, modified: Int64(number)), of: guest, now: start) }
        #expect(refusal { _ = try table.announce(upload(8, size: (4 << 30) - 19, modified: 8), of: guest, now: start) } == 413)
        #expect(try table.announce(upload(8, size: (4 << 30) - 20, modified: 8), of: guest, now: start).isNew)
        #expect(table.cancel("8", of: guest) && !table.cancel("8", of: guest))
        for number in 9..<(200 + 4) { _ = try table.announce(upload(number, size: 0, modified: Int64(number)), of: guest, now: start) }
        #expect(refusal { _ = try table.announce(upload(300, size: 0, modified: 300), of: guest, now: start) } == 413)
    }

    @Test("a hex takes complete files once, and a repeated request stores nothing") func hexes() throws {
        var (table, guest, _) = try joined()
        _ = try table.announce(upload(1), of: guest, now: start)
        #expect(refusal { _ = try table.send("a", files: ["1"], of: guest, now: start) } == 409)
        #expect(refusal { _ = try table.send("a", files: ["2"], of: guest, now: start) } == 404)
        table.completed("1", of: guest)
        var whole = upload(1)
        whole.isComplete = true
        #expect(refusal { _ = try table.send("a", files: ["1", "1"], of: guest, now: start) } == 404)
        #expect(try table.send("a", files: ["1"], of: guest, now: start) == .store([whole]))
        #expect(refusal { _ = try table.send("a", files: [], of: guest, now: start) } == 409)
        #expect(refusal { _ = try table.send("b", files: ["1"], of: guest, now: start) } == 404)
        #expect(table.cancel("1", of: guest) == false)
        #expect(table.notSent("a", files: [whole], of: guest) == [])
        #expect(try table.send("a", files: ["1"], of: guest, now: start) == .store([whole]))
        #expect(table.sent("a", of: guest) == [])
        #expect(try table.send("a", files: ["1"], of: guest, now: start) == .alreadyStored)
        #expect(table.upload("1", of: guest) == nil && table.invitation(1)?.hexes == 1)
        for number in 1..<60 {
            #expect(try table.send("c\(number)", files: [], of: guest, now: start) == .store([]))
            _ = table.sent("c\(number)", of: guest)
        }
        #expect(refusal { _ = try table.send("d", files: [], of: guest, now: start) } == 429)
    }

    @Test("an invitation for one hex ends with it") func once() throws {
        var (table, guest, phone) = try joined(isOnce: true)
        _ = try table.announce(upload(1), of: guest, now: start)
        #expect(try table.send("a", files: [], of: guest, now: start) == .store([]))
        #expect(table.sent("a", of: guest) == [upload(1)])
        #expect(table.invitation(1)?.end == .once && !table.isOpen(start))
        #expect(refusal { _ = try table.guest(token: [9], from: phone, now: start) } == 410)
    }

    @Test("after its time only files that were announced before may arrive, for 30 minutes") func finishing() throws {
        var (table, guest, phone) = try joined(time: .seconds(60))
        _ = try table.announce(upload(1), of: guest, now: start)
        let late = start + .seconds(61)
        #expect(table.update(late) == [] && table.isOpen(late))
        #expect(refusal { _ = try table.announce(upload(2, modified: 2), of: guest, now: late) } == 410)
        let again = try table.announce(upload(3), of: guest, now: late)
        #expect(again.0 == upload(1) && !again.isNew)
        #expect(refusal { _ = try table.send("t", files: [], of: guest, now: late) } == 410)
        #expect(table.join(key: [1], token: nil, newToken: [30], peer: peer(), from: phone, now: late) == .refused(.over))
        #expect(table.join(key: [1], token: [9], newToken: [30], peer: peer(), from: phone, now: late) == .joined(guest, isNew: false))
        table.completed("1", of: guest)
        var whole = upload(1)
        whole.isComplete = true
        #expect(try table.send("a", files: ["1"], of: guest, now: late) == .store([whole]))
        _ = table.sent("a", of: guest)
        #expect(!table.isOpen(late) && table.update(late) == [] && table.invitation(1)?.end == .time)

        (table, guest, phone) = try joined(time: .seconds(60))
        _ = try table.announce(upload(1), of: guest, now: start)
        #expect(table.nextDeadline(late) == start + .seconds(60 + 1_800))
        #expect(table.update(start + .seconds(60 + 1_800)) == [upload(1)])
        #expect(refusal { _ = try table.guest(token: [9], from: phone, now: start + .seconds(60 + 1_800)) } == 410)
    }

    @Test("the user ends an invitation immediately; a hex that is being stored keeps its files until it is stored") func ended() throws {
        var (table, guest, phone) = try joined()
        _ = try table.announce(upload(1), of: guest, now: start)
        _ = try table.announce(upload(2, modified: 2), of: guest, now: start)
        table.completed("1", of: guest)
        var whole = upload(1)
        whole.isComplete = true
        #expect(try table.send("a", files: ["1"], of: guest, now: start) == .store([whole]))
        #expect(table.end(1, .user) == [upload(2, modified: 2)])
        #expect(table.notSent("a", files: [whole], of: guest) == [whole])
        #expect(refusal { _ = try table.guest(token: [9], from: phone, now: start) } == 410)
        #expect(table.join(key: [1], token: [9], newToken: [30], peer: peer(), from: phone, now: start) == .refused(.over))
    }

    @Test("keys are 128 bits in base64url, and differ") func keys() {
        let keys = Set((0..<200).map { _ in GuestKey.random() })
        #expect(keys.count == 200)
        let digits = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        #expect(keys.allSatisfy { $0.count == 22 && $0.allSatisfy(digits.contains) })
    }
}
