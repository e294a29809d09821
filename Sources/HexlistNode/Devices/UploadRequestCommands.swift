public import HexlistAPI
import HexlistLocalSend
import HexlistModel
import NIOCore

/// Lists, accepts and refuses the requests of devices to send files.
public struct UploadRequestCommands: Sendable {
    let node: Node

    /// Returns the waiting requests, oldest first.
    public func all() async -> [UploadRequestView] {
        await node.perform { node in
            let unanswered = node.devices.requests.unanswered
            return unanswered.requests.waiting.map { unanswered.view(of: $0, node) }
        }
    }

    /// Accepts a request, so that the device sends its files.
    /// - Parameter trusting: whether to trust the device from now on, by the certificate that it has proved.
    /// - Throws: `HexlistError`: `notFound` if the request is over; `storageFull`, `tooLarge` or `alreadyRunning` if the files cannot be
    ///   received; then the device is refused.
    public func accept(_ id: Int64, trusting: Bool) async throws -> UploadRequestView {
        let promise = node.eventLoop.makePromise(of: Void.self)
        let accepted = await node.perform { node in
            let unanswered = node.devices.requests.unanswered
            return unanswered.accept(Int(clamping: id), node) { promise.completeWith($0.mapError { $0 as any Error }) }
                .map { unanswered.view(of: $0, node) }
        }
        guard let accepted else {
            promise.fail(Self.isOver(id))
            throw Self.isOver(id)
        }
        try await promise.futureResult.get()
        if trusting { _ = try await node.peers.setTrust(accepted.peer, .trusted) }
        return accepted
    }

    /// Refuses a request.
    /// - Throws: `HexlistError` `notFound` if it is over.
    public func refuse(_ id: Int64) async throws -> UploadRequestView {
        let refused = await node.perform { node in
            let unanswered = node.devices.requests.unanswered
            return unanswered.refuse(Int(clamping: id), node).map { unanswered.view(of: $0, node) }
        }
        guard let refused else { throw Self.isOver(id) }
        return refused
    }

    private static func isOver(_ id: Int64) -> HexlistError {
        HexlistError(
            .notFound, "There is no request \(id) to send files.",
            hint: "A request ends after two minutes, or when the device withdraws it. `hexlist transfers` lists the waiting ones.")
    }
}

extension Node {
    public nonisolated var uploadRequests: UploadRequestCommands { UploadRequestCommands(node: self) }
}
