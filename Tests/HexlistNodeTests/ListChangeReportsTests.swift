import HexlistModel
import HexlistStore
import Testing

@testable import HexlistNode

@Suite struct ListChangeReportsTests {
    private let peer = PeerID(UUIDBytes(high: 1, low: 2))
    private let time = ContinuousClock.now

    private func result(added: Int = 0, deleted: Int = 0, of before: Int = 0, change: Int64? = nil) -> ListPageResult {
        var result = ListPageResult()
        result.changes = change.map { [$0] } ?? []
        (result.links.added, result.links.deleted, result.linksBefore) = (added, deleted, before)
        return result
    }

    private func changed(added: Int = 0, deleted: Int = 0) -> ListChangeReports.Report {
        var sums = ListChangeReports.Sums()
        (sums.added, sums.deleted) = (added, deleted)
        return .changed(ListChangeReports.Source(peer: peer), sums)
    }

    @Test("the first change is reported at once, later ones once a minute with their sums") func minute() {
        var reports = ListChangeReports()
        #expect(reports.nextDeadline == nil)
        #expect(reports.add(result(added: 1), from: peer, isLast: true, now: time) == [changed(added: 1)])
        #expect(reports.nextDeadline == nil)
        for second in 1...9 {
            #expect(reports.add(result(added: 1, deleted: 2, of: 9), from: peer, isLast: true, now: time + .seconds(second)) == [])
        }
        #expect(reports.nextDeadline == time + .seconds(60))
        #expect(reports.takeDue(now: time + .seconds(59)) == [])
        #expect(reports.takeDue(now: time + .seconds(60)) == [changed(added: 9, deleted: 18)])
        #expect(reports.nextDeadline == nil && reports.takeDue(now: time + .seconds(200)) == [])
        #expect(reports.add(ListPageResult(), from: peer, isLast: true, now: time + .seconds(300)) == [])
    }

    @Test("a report of one machine does not delay the first report of another") func twoMachines() {
        var reports = ListChangeReports()
        let other = PeerID(UUIDBytes(high: 7, low: 7))
        _ = reports.add(result(added: 1), from: other, isLast: true, now: time)
        for _ in 0..<2 { _ = reports.add(result(added: 1), from: peer, isLast: true, now: time + .seconds(30)) }
        #expect(reports.takeDue(now: time + .seconds(90)) == [changed(added: 1)])
        #expect(reports.add(result(added: 2), from: other, isLast: true, now: time + .seconds(91)).count == 1)
    }

    @Test("what is not reported yet is reported when the machine is removed, and at the end") func end() {
        var reports = ListChangeReports()
        for _ in 0..<2 { _ = reports.add(result(added: 1), from: peer, isLast: true, now: time) }
        #expect(reports.remove(peer) == [changed(added: 1)] && reports.remove(peer) == [])
        for _ in 0..<3 { _ = reports.add(result(added: 1), from: peer, isLast: true, now: time) }
        #expect(reports.takeAll() == [changed(added: 2)] && reports.takeAll() == [])
    }

    @Test(
        "a deletion of 100 links and a tenth of the list is reported with its changes, when the last page is stored",
        arguments: [
            (pages: [99], of: 99, isLarge: false), ([100], 100, true), ([100], 1_000, true), ([100], 1_001, false),
            ([60, 40], 1_000, true), ([1_500, 1_500, 2_000], 50_000, true), ([1_500, 1_500, 1_999], 50_000, false),
        ]) func large(pages: [Int], of before: Int, isLarge: Bool)
    {
        var reports = ListChangeReports()
        var rest = before
        for (index, links) in pages.enumerated() {
            let isLast = index == pages.count - 1
            let found = reports.add(
                result(deleted: links, of: rest, change: Int64(index) + 7), from: peer, isLast: isLast, now: time + .seconds(90 * index))
            rest -= links
            let deletions = found.compactMap { if case .deleted(_, let deletion) = $0 { deletion } else { nil } }
            guard isLast, isLarge else {
                #expect(deletions.isEmpty)
                continue
            }
            var expected = ListChangeReports.Deletion(linksBefore: before)
            expected.links = pages.reduce(0, +)
            expected.changes = pages.indices.map { Int64($0) + 7 }
            #expect(deletions == [expected])
        }
    }

    @Test("a large deletion is reported after a minute, or at the end, although more pages follow") func endless() {
        var reports = ListChangeReports()
        let page = result(deleted: 200, of: 200, change: 7)
        #expect(reports.add(page, from: peer, isLast: false, now: time) == [changed(deleted: 200)])
        #expect(reports.nextDeadline == time + .seconds(60))
        var deletion = ListChangeReports.Deletion(linksBefore: 200)
        (deletion.links, deletion.changes) = (200, [7])
        let report = ListChangeReports.Report.deleted(ListChangeReports.Source(peer: peer), deletion)
        #expect(reports.takeDue(now: time + .seconds(59)) == [])
        #expect(reports.takeDue(now: time + .seconds(60)) == [report])
        #expect(reports.nextDeadline == nil && reports.takeAll() == [])
        _ = reports.add(page, from: peer, isLast: false, now: time + .seconds(200))
        #expect(reports.remove(peer) == [report])
    }

    @Test("deletions within a minute count together, later ones do not") func separate() {
        var reports = ListChangeReports()
        for (second, isLarge) in [(0, false), (10, true), (20, false), (90, false), (149, true)] {
            let found = reports.add(
                result(deleted: 50, of: 500, change: Int64(second)), from: peer, isLast: true, now: time + .seconds(second))
            let deletions = found.compactMap { if case .deleted(_, let deletion) = $0 { deletion.changes } else { nil } }
            #expect(deletions.isEmpty == !isLarge, "after \(second) s")
            if second == 149 { #expect(deletions == [[90, 149]]) }
        }
    }
}
