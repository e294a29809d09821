public import HexlistModel

/// The upload sessions of devices and their tokens, a state machine. Performs no IO.
///
/// A text message needs no session, because `prepare-upload` already contains the text.
public struct DeviceUploadSessions {
    public typealias Instant = ContinuousClock.Instant

    /// Maximum number of sessions. Each device has at most one.
    public static let sessionLimit = 4
    /// The time without progress after which a session ends.
    public static let idleTime = Duration.seconds(60)
    /// Maximum number of attempts to upload a file. The sender repeats an upload whose digest was wrong.
    public static let attempts = 3

    /// The sender, as recorded in the store.
    public struct Sender: Sendable {
        public var fingerprint: Fingerprint
        public var trust: Trust
        public var receive: PeerReceiveSetting

        public init(fingerprint: Fingerprint, trust: Trust, receive: PeerReceiveSetting) {
            self.fingerprint = fingerprint
            self.trust = trust
            self.receive = receive
        }
    }

    public enum Decision: Sendable, Equatable {
        /// Answer with this status.
        case refused(Int)
        /// Check the free space, then call `open`.
        case accepted
        /// Ask the user. Call `open` if the user accepts.
        case ask
    }

    public enum UploadDecision: Sendable, Equatable {
        case refused(Int)
        /// Receive the bytes of the file at this index, then call `uploadEnded`.
        case receive(index: Int)
    }

    /// The end of the bytes of a file.
    public enum UploadResult: Sendable, Equatable {
        /// The file is durable, with the expected length and digest.
        case stored
        /// The length is right, the digest is not.
        case otherDigest
        case failed
    }

    /// A session that has ended.
    public struct Ended: Sendable {
        public let id: String
        public let fingerprint: Fingerprint
        public let upload: PrepareUpload
        /// The indices of the files that were stored.
        public let stored: [Int]
    }

    private struct Session {
        let fingerprint: Fingerprint
        let upload: PrepareUpload
        let tokens: [String]
        var files: [FileState]
        var progressAt: Instant
    }

    private enum FileState: Equatable {
        case waiting(attempts: Int)
        case receiving(attempts: Int)
        case stored
        /// Out of attempts.
        case failed
    }

    private var sessions: [String: Session] = [:]
    /// Makes a secret of 128 random bits in hexadecimal.
    private let makeSecret: @Sendable () -> String

    public init(makeSecret: @escaping @Sendable () -> String) { self.makeSecret = makeSecret }

    // MARK: Requests

    /// Decides about a request to send files.
    /// - Parameter strangersMayAsk: whether the user is asked about files of strangers; otherwise they are refused.
    public func prepare(from sender: Sender, strangersMayAsk: Bool) -> Decision {
        switch sender.trust {
        case .trusted where sender.receive != .nothing: break
        case .stranger where strangersMayAsk && sender.receive != .nothing: break
        case .trusted, .stranger, .blocked: return .refused(403)
        }
        guard !hasSession(sender.fingerprint), sessions.count < Self.sessionLimit else { return .refused(409) }
        return sender.trust == .trusted ? .accepted : .ask
    }

    public func hasSession(_ fingerprint: Fingerprint) -> Bool { sessions.values.contains { $0.fingerprint == fingerprint } }

    // MARK: Sessions

    /// Opens a session.
    /// - Returns: its ID and a token for each file; `nil` if the maximum number of sessions is open, or the device has one.
    public mutating func open(_ upload: PrepareUpload, from fingerprint: Fingerprint, now: Instant) -> (id: String, tokens: [String])? {
        guard sessions.count < Self.sessionLimit, !hasSession(fingerprint) else { return nil }
        let id = makeSecret()
        let tokens = upload.files.map { _ in makeSecret() }
        sessions[id] = Session(
            fingerprint: fingerprint, upload: upload, tokens: tokens,
            files: Array(repeating: .waiting(attempts: 0), count: upload.files.count), progressAt: now)
        return (id, tokens)
    }

    /// Decides about an upload. A missing parameter of the request is `nil`.
    public mutating func upload(
        session id: String?, file: String?, token: String?, from fingerprint: Fingerprint, now: Instant
    ) -> UploadDecision {
        guard let id, let file, let token else { return .refused(400) }
        guard var session = sessions[id], session.fingerprint == fingerprint,
            let index = session.upload.files.firstIndex(where: { PeerTextComparison.areEqual($0.id, file) }),
            PeerTextComparison.areEqual(session.tokens[index], token)
        else { return .refused(403) }
        guard case .waiting(let attempts) = session.files[index] else { return .refused(session.files[index] == .failed ? 403 : 409) }
        session.files[index] = .receiving(attempts: attempts + 1)
        session.progressAt = now
        sessions[id] = session
        return .receive(index: index)
    }

    /// The request of a session; `nil` if it has ended.
    public func upload(of id: String) -> PrepareUpload? { sessions[id]?.upload }

    /// The announced bytes of the files of all sessions.
    public var openBytes: Int64 { sessions.values.reduce(0) { $0.addingClamped($1.upload.totalBytes) } }

    /// Records that bytes of a file arrived, which restarts `idleTime`.
    /// - Returns: whether the session still exists. If not, the bytes are to be discarded.
    public mutating func progressed(_ id: String, now: Instant) -> Bool {
        sessions[id]?.progressAt = now
        return sessions[id] != nil
    }

    /// - Returns: the status of the answer, and the session if it ended with this file.
    public mutating func uploadEnded(
        _ id: String, index: Int, _ result: UploadResult, now: Instant
    ) -> (status: Int, ended: Ended?) {
        guard var session = sessions[id], case .receiving(let attempts) = session.files[index] else { return (403, nil) }
        let isLast = attempts >= Self.attempts
        session.files[index] = result == .stored ? .stored : isLast ? .failed : .waiting(attempts: attempts)
        session.progressAt = now
        sessions[id] = session
        let isOver = session.files.allSatisfy { $0 == .stored || $0 == .failed }
        let status =
            switch result {
            case .stored: 200
            case .otherDigest: 422
            case .failed: 500
            }
        return (status, isOver ? end(id) : nil)
    }

    /// Ends a session of a device at its request.
    /// - Parameter id: `nil` for the device's only session.
    public mutating func cancel(_ id: String?, from fingerprint: Fingerprint) -> Ended? {
        guard
            let found = sessions.first(where: {
                $0.value.fingerprint == fingerprint && (id == nil || $0.key.utf8.elementsEqual(id?.utf8 ?? "".utf8))
            })
        else { return nil }
        return end(found.key)
    }

    /// Ends all sessions, because this machine stops.
    public mutating func stop() -> [Ended] { Array(sessions.keys).compactMap { end($0) } }

    private mutating func end(_ id: String) -> Ended? {
        guard let session = sessions.removeValue(forKey: id) else { return nil }
        return Ended(
            id: id, fingerprint: session.fingerprint, upload: session.upload,
            stored: session.files.indices.filter { session.files[$0] == .stored })
    }

    // MARK: Time

    /// Ends the sessions without progress, and returns them.
    public mutating func tick(now: Instant) -> [Ended] {
        let idle = sessions.filter { now - $0.value.progressAt >= Self.idleTime }.keys
        return Array(idle).compactMap { end($0) }
    }

    /// The time of the next `tick`; `nil` without sessions.
    public var nextDeadline: Instant? { sessions.values.map { $0.progressAt + Self.idleTime }.min() }
}
