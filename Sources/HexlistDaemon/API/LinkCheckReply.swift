import HexlistAPI
import HexlistModel
import Hummingbird
import Logging
import NIOCore

/// The reply to a check of links: lines of progress, then the result or an error. If the caller closes the connection, the next write of
/// progress fails and ends the check.
struct LinkCheckReply: Sendable {
    private typealias Line = ProgressReply<MineCheckResult>

    let api: APIContext
    let source: MineLinkSource
    /// The slot for checks of links, which is held until the check ends.
    let slot: RequestSlots.Slot

    var response: Response {
        let body = ResponseBody { writer in
            try await write(to: &writer)
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: [.contentType: LocalAPI.bulkType, .cacheControl: "no-store"], body: body)
    }

    private func write(to writer: inout any ResponseBodyWriter) async throws {
        var run = LinkCheckRun(api.linkProbeSender, source, in: api.store)
        let end: Line
        do {
            try await Self.write(.progress(MineCheckProgress(done: 0, total: source.count)), to: &writer)
            end = .result(try await run.run { try await Self.write(.progress($0), to: &writer) })
        } catch let error as HexlistError {
            end = .error(ErrorJSON(error))
        }
        try await Self.write(end, to: &writer)
        withExtendedLifetime(slot) {}
    }

    private static func write(_ line: Line, to writer: inout any ResponseBodyWriter) async throws {
        try await writer.write(ByteBuffer(bytes: line.lineBytes))
    }
}
