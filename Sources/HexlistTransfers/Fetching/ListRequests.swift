import HexlistEventLoop
import HexlistFiles
import HexlistModel
import HexlistTransport
import NIOCore

/// Requests listings of folders, at most two at once from each peer, and lists of own machines.
final class ListRequests {
    static let perPeer = 2
    /// Maximum time for opening a session with the peer.
    private static let sessionTimeout = TimeAmount.seconds(10)

    /// The requests that wait for a session. Each closure is called once, with whether a session was opened.
    private var arrivals: [PeerID: [UInt64: (Bool) -> Void]] = [:]
    /// Number of requests in progress, by peer.
    private var inProgress: [PeerID: Int] = [:]
    /// The requests that wait for a slot, by peer.
    private var waiting: [PeerID: [CheckedContinuation<Void, Never>]] = [:]
    private var last: UInt64 = 0

    /// Whether listings are requested from the peer.
    func hasRequests(for peer: PeerID) -> Bool { arrivals[peer] != nil || inProgress[peer] != nil }

    /// Resumes the requests that wait for a session with the peer.
    /// - Parameter isConnected: `false` if no session could be opened.
    func peerCame(_ peer: PeerID, _ isConnected: Bool) {
        for resume in arrivals.removeValue(forKey: peer)?.values ?? [:].values { resume(isConnected) }
    }

    /// Requests a listing. Cancelling the task cancels the request.
    /// - Throws: `HexlistError`: `notFound`; `gone` if the peer cannot be reached; `refused` if its answer is invalid.
    func ask(_ peer: PeerID, _ target: FileRequestTarget, _ host: isolated FileTransfers) async throws -> [UInt8] {
        if !host.connections.isConnected(peer) { try await arrival(of: peer, host) }
        await acquireSlot(peer, host)
        defer { releaseSlot(peer) }
        return try await send(target.description, to: peer, limit: FolderListing.maximumBytes, host)
    }

    /// Requests a list of an own machine, or the overview of its lists. Not counted as a listing: the caller has one request per peer.
    /// - Parameters:
    ///   - target: the path and query.
    ///   - limit: maximum bytes of the answer.
    ///   - timeout: maximum time for the whole answer, once there is a session.
    func ask(
        _ peer: PeerID, _ target: String, limit: Int, timeout: TimeAmount, _ host: isolated FileTransfers
    ) async throws -> [UInt8] {
        if !host.connections.isConnected(peer) { try await arrival(of: peer, host) }
        return try await send(target, to: peer, limit: limit, timeout: timeout, host)
    }

    /// - Parameter timeout: `nil` for no limit as long as bytes arrive.
    private func send(
        _ target: String, to peer: PeerID, limit: Int, timeout: TimeAmount? = nil, _ host: isolated FileTransfers
    ) async throws -> [UInt8] {
        try Task.checkCancellation()
        let request = ListRequest(limit: limit)
        let timer = timeout.map { timeout in
            host.eventLoop.scheduleTask(in: timeout) {
                request.end(.failure(HexlistError(.gone, "The peer did not answer within \(timeout.nanoseconds / 1_000_000_000) s.")))
            }
        }
        defer { timer?.cancel() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                request.done = { [weak host] result, connection in
                    continuation.resume(with: result)
                    guard let connection else { return }
                    guard let host else { return connection.abort() }
                    host.assumeIsolated { $0.connections.keep(connection, to: peer) }
                }
                host.connections.connect(to: peer, host) { result in
                    switch result {
                    case .success(let connection): request.ask(connection, target)
                    case .failure(.unreachable(let why)): request.end(.failure(HexlistError(.gone, why)))
                    }
                }
            }
        } onCancel: { [eventLoop = host.eventLoop] in
            eventLoop.execute { request.end(.failure(CancellationError())) }
        }
    }

    private func arrival(of peer: PeerID, _ host: isolated FileTransfers) async throws {
        let label = host.node.label(of: peer)?.text(.named) ?? peer.shortID
        switch host.node.presence(of: peer) {
        case .withoutFiles: throw HexlistError(.gone, "\(label) has an older Hexlist without files.")
        case .absent: throw HexlistError(.gone, "\(label) is away.", hint: "For the reason: `hexlist peers --all --why`.")
        case .present: break
        }
        guard await arrives(peer, within: Self.sessionTimeout, dials: true, host) else {
            throw HexlistError(.gone, "\(label) could not be reached.", hint: "For the reason: `hexlist doctor \(peer.shortID)`.")
        }
    }

    /// Waits for a session with a peer that may be offline. A dial that fails does not end the wait: when the peer announces itself again,
    /// another dial follows.
    /// - Returns: whether there is a session, and the peer serves files.
    func awaitPeer(_ peer: PeerID, within timeout: Duration, _ host: isolated FileTransfers) async -> Bool {
        let deadline = host.clocks.now + timeout
        var dials = true
        while !host.connections.isConnected(peer), !Task.isCancelled, !host.isStopping {
            let rest = deadline - host.clocks.now
            guard rest > .zero else { return false }
            if await arrives(peer, within: TimeAmount(rest), dials: dials, host) { return true }
            dials = false
        }
        return host.connections.isConnected(peer)
    }

    /// Waits for a session with a peer.
    /// - Parameter dials: whether to dial the peer if it is online and has no session.
    /// - Returns: whether a session was opened. `false` if the dial failed or the time is over.
    private func arrives(_ peer: PeerID, within timeout: TimeAmount, dials: Bool, _ host: isolated FileTransfers) async -> Bool {
        last += 1
        let number = last
        let isConnected = await host.eventLoop.within(timeout, otherwise: false) { resume in
            arrivals[peer, default: [:]][number] = resume
            if dials { host.fetching.kick(peer, host) }
        }
        arrivals[peer]?[number] = nil
        if arrivals[peer]?.isEmpty ?? false { arrivals[peer] = nil }
        return isConnected
    }

    private func acquireSlot(_ peer: PeerID, _ host: isolated FileTransfers) async {
        if inProgress[peer, default: 0] < Self.perPeer {
            inProgress[peer, default: 0] += 1
        } else {
            await withCheckedContinuation { waiting[peer, default: []].append($0) }
        }
    }

    /// Passes the slot to the next request that waits, or frees it.
    private func releaseSlot(_ peer: PeerID) {
        if var queue = waiting.removeValue(forKey: peer) {
            let next = queue.removeFirst()
            if !queue.isEmpty { waiting[peer] = queue }
            next.resume()
        } else if let count = inProgress[peer] {
            inProgress[peer] = count > 1 ? count - 1 : nil
        }
    }
}

/// One request for a listing. Used on the event loop only.
private final class ListRequest: FileClientDelegate, @unchecked Sendable {
    /// Called once with the listing or an error, and with the connection if it can be used again.
    var done: ((Result<[UInt8], any Error>, FileClientConnection?) -> Void)?
    private var connection: FileClientConnection?
    private var bytes: [UInt8] = []
    private var isAnswered = false
    /// Maximum bytes of the answer.
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    func ask(_ connection: FileClientConnection, _ target: String) {
        guard done != nil else { return connection.abort() }
        self.connection = connection
        connection.get(target, from: 0, ifStill: nil, self)
    }

    func end(_ result: Result<[UInt8], any Error>) {
        guard let done = done.take() else { return }
        let free = connection.flatMap { $0.isIdle ? $0 : nil }
        if free == nil { connection?.abort() }
        connection = nil
        done(result, free)
    }

    func answered(_ head: FileAnswerHead, on connection: FileClientConnection) {
        isAnswered = true
        switch head.status {
        case 200 where head.entityTag == nil && head.length <= Int64(limit): return
        case 200: end(.failure(HexlistError(.refused, "The peer's answer is not a list.")))
        case 503: end(.failure(HexlistError(.recentlyFailed, "The peer cannot answer at the moment.", hint: "Try again.")))
        case 404: end(.failure(HexlistError(.notFound, "It does not exist, is not readable there, or is not shared with this machine.")))
        default: end(.failure(HexlistError(.refused, "The peer answered with status \(head.status).")))
        }
    }

    func bodyArrived(on connection: FileClientConnection) {
        guard done != nil else { return }
        var piece = ByteBuffer()
        let isEnd = connection.takeBody(into: &piece)
        bytes += piece.readableBytesView
        if isEnd { end(.success(bytes)) }
    }

    func failed(_ fault: FileConnectionFault, on connection: FileClientConnection) {
        self.connection = nil
        if fault == .closed, !isAnswered {
            let peer = connection.peer.peerID.shortID
            let error = HexlistError(
                .gone, "The peer closed the connection without an answer. It may not trust this machine.",
                hint: "To check: `hexlist doctor \(peer)`. To pair again: `hexlist pair \(peer)`.")
            return end(.failure(error))
        }
        end(.failure(HexlistError(.gone, "The connection to the peer was lost: \(fault).", hint: "Try again.")))
    }
}
