import HexlistAPI
import HexlistModel
import Testing

@testable import hexlist

@Suite("Report of a check of links") struct LinkCheckReportTests {
    private func link(
        _ number: Int, _ state: CheckedLinkJSON.State, _ status: Int? = nil, _ reason: LinkCheckReason? = nil
    ) -> CheckedLinkJSON {
        CheckedLinkJSON(hex: 7, number: number, url: "https://a.example/\(number)", state: state, status: status, reason: reason)
    }

    @Test("each result has a line with the number that other commands take; links left out have none")
    func lines() {
        #expect(LinkCheckReport.line(link(2, .dead, 404)) == "7.2  dead (404)  https://a.example/2")
        #expect(LinkCheckReport.line(link(3, .unclear, 403, .refused)) == "7.3  refused (403)  https://a.example/3")
        #expect(LinkCheckReport.line(link(4, .unclear, nil, .noAddress)) == "7.4  host not found  https://a.example/4")
        #expect(LinkCheckReport.line(link(5, .reachable)) == "7.5  reachable again  https://a.example/5")
        #expect(LinkCheckReport.line(link(6, .skipped, nil, .ownNetwork)) == nil)
        for reason in LinkCheckReason.allCases where ![.notWeb, .ownNetwork].contains(reason) {
            #expect(LinkCheckReport.line(link(1, .unclear, nil, reason))?.contains("not checked") == false)
        }
    }

    @Test("the summary counts all links; a stopped check has those so far")
    func summary() throws {
        let report = LinkCheckReport(json: true)
        try report.add(MineCheckProgress(done: 0, total: 1_200))
        #expect(report.summary(isComplete: true) == "0 links checked: 0 dead.")
        try report.add(
            MineCheckProgress(
                done: 1_200, total: 1_200,
                links: [link(1, .dead, 410), link(2, .unclear, 500, .serverFault), link(3, .skipped, nil, .notWeb), link(4, .reachable)]))
        #expect(
            report.summary(isComplete: true)
                == "1 200 links checked: 1 dead, 1 unclear, 1 left out, 1 reachable again. To list dead links: `hexlist search --links is:dead`."
        )
        let json = report.value
        #expect(json.reachable == 1_197 && json.dead == 1 && json.unclear == 1 && json.skipped == 1 && json.links.count == 4)
        try report.add(MineCheckProgress(done: 1_201, total: 5_000))
        #expect(report.summary(isComplete: false).hasPrefix("Stopped: 1 201 of 5 000 links checked: 1 dead"))
    }
}
