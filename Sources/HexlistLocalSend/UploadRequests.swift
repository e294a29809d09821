public import HexlistModel

/// The requests of strangers to send files, which wait for the user's answer; a state machine. Performs no IO.
public struct UploadRequests {
    public typealias Instant = ContinuousClock.Instant

    /// Maximum number of waiting requests. A device has at most one.
    public static let limit = 8
    /// Maximum number of waiting requests of one address, so that one host cannot reach `limit` alone.
    public static let perAddress = 2
    /// The time after which a request without an answer is refused.
    public static let answerTime = Duration.seconds(120)

    public struct Request: Sendable {
        public let id: Int
        public let fingerprint: Fingerprint
        public let address: IPAddress
        public let upload: PrepareUpload
        /// The time at which the request is refused.
        public let until: Instant
    }

    /// The requests, oldest first.
    public private(set) var waiting: [Request] = []
    private var lastID = 0

    public init() {}

    /// Adds a request.
    /// - Returns: `nil` if another request of the device waits, or if a limit is reached.
    public mutating func add(
        _ upload: PrepareUpload, from fingerprint: Fingerprint, at address: IPAddress, now: Instant
    ) -> Request? {
        guard waiting.count < Self.limit, waiting.count(where: { $0.address == address }) < Self.perAddress,
            !waiting.contains(where: { $0.fingerprint == fingerprint })
        else { return nil }
        lastID += 1
        let request = Request(id: lastID, fingerprint: fingerprint, address: address, upload: upload, until: now + Self.answerTime)
        waiting.append(request)
        return request
    }

    /// Removes a request, because it is answered or withdrawn.
    public mutating func remove(_ id: Int) -> Request? {
        waiting.firstIndex { $0.id == id }.map { waiting.remove(at: $0) }
    }

    /// Returns the request of a device.
    public func request(of fingerprint: Fingerprint) -> Request? { waiting.first { $0.fingerprint == fingerprint } }

    /// Removes the requests whose time is over, and returns them.
    public mutating func removeExpired(now: Instant) -> [Request] {
        let expired = waiting.filter { $0.until <= now }
        waiting.removeAll { $0.until <= now }
        return expired
    }

    /// The time of the next `removeExpired`; `nil` without requests.
    public var nextDeadline: Instant? { waiting.first?.until }
}
