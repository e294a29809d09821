import HexlistAPI
import HexlistModel
import Hummingbird
import NIOCore

/// A reply that is a stream of progress lines. The last line is the result or an error.
enum ProgressStream {
    /// Returns a reply that runs an operation.
    /// - Parameters:
    ///   - pause: minimum time between two lines. Progress that is reported in between is dropped.
    ///   - work: the operation. It gets a function with which it reports its progress.
    static func response<Result: ProgressResult>(
        _ request: Request, api: APIContext, pause: Duration = .zero,
        _ work: @escaping @Sendable (_ tell: @escaping @Sendable (Result.Progress) -> Void) async throws -> Result
    ) -> Response {
        let (steps, teller) = AsyncStream.makeStream(of: Result.Progress.self, bufferingPolicy: .bufferingNewest(1))
        let (path, logger) = (request.uri.path, api.logger)
        let body = ResponseBody { writer in
            async let end = { () async -> ProgressReply<Result> in
                defer { teller.finish() }
                do {
                    return .result(try await work { teller.yield($0) })
                } catch {
                    return .error(ErrorJSON(ReplyMiddleware.fault(error, at: path, logger)))
                }
            }()
            var toldAt = ContinuousClock.now
            for await step in steps where ContinuousClock.now - toldAt >= pause {
                toldAt = .now
                try await writer.write(ByteBuffer(bytes: ProgressReply<Result>.progress(step).lineBytes))
            }
            try await writer.write(ByteBuffer(bytes: await end.lineBytes))
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: [.contentType: LocalAPI.bulkType, .cacheControl: "no-store"], body: body)
    }
}
