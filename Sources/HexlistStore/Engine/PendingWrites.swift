/// The write requests that wait for a transaction. Decides which of them go into the next one. There are three kinds (small, large,
/// deferrable); within a kind the order of submission is kept.
///
/// Small requests go into the next transaction. A transaction takes large requests of up to `transactionRows` rows in all, so that a small
/// request never waits for the bulk sends of all sessions. Each transaction takes at least one large request if there are any, so that none
/// starves. Deferrable requests are coalesced for a few milliseconds and then share the next transaction.
///
/// Deferring is required by a benchmark bound (Docs/Decisions/0027-optimisations-pay-rent.md): without it the median latency of one hex in
/// flight is at least 3.2 times that of two plain C++ processes that do the same work (maximum 3).
struct PendingWrites {
    typealias Instant = ContinuousClock.Instant

    /// Maximum number of rows of a small request: more than a user's hex has, and more than 20 hexes of a bulk send have.
    private static let smallRequestRows = 256
    /// Maximum number of rows of the large requests in one transaction: four full batches, about 30 ms.
    private static let transactionRows = 16_384
    /// Minimum time for which deferrable requests are coalesced. It is several times the interval between two hexes of a sender that waits
    /// for the result of each.
    private static let coalescingTime = Duration.milliseconds(3)
    /// Maximum time for which a request is deferred: then it is written even if no other request needs a transaction. Too short for users
    /// to notice.
    private static let maximumDelay = Duration.milliseconds(20)
    /// Maximum number of rows of deferred requests. Above it they are written immediately, because they are results of a bulk send, whose
    /// next results change the same pages.
    private static let maximumDeferredRows = 64

    private var small: [WriteRequest] = []
    private var large: ArraySlice<WriteRequest> = []
    private var deferred: [WriteRequest] = []
    private var deferredRows = 0
    /// The time at which the first request of `deferred` was added.
    private var deferredSince = Instant.now

    var isEmpty: Bool { small.isEmpty && large.isEmpty && deferred.isEmpty }
    /// Whether a transaction should start now, without waiting for more requests.
    var areDue: Bool { !small.isEmpty || !large.isEmpty || deferredRows > Self.maximumDeferredRows }
    /// The time at which the deferred requests must be written; `nil` if there are none.
    var deadline: Instant? { deferred.isEmpty ? nil : deferredSince + Self.maximumDelay }

    mutating func add(_ request: WriteRequest, at now: Instant) {
        if request.isDeferrable {
            if deferred.isEmpty { deferredSince = now }
            deferred.append(request)
            deferredRows += request.rows
        } else if request.rows <= Self.smallRequestRows {
            small.append(request)
        } else {
            large.append(request)
        }
    }

    /// Removes and returns the requests of the next transaction. Deferrable requests come after small ones, because they may change rows
    /// that a small request inserts.
    mutating func takeBatch(at now: Instant) -> [WriteRequest] {
        if !deferred.isEmpty, deferredRows > Self.maximumDeferredRows || now >= deferredSince + Self.coalescingTime { endDeferral() }
        var rows = 0
        let batch = large.prefix { request in
            rows += request.rows
            return rows == request.rows || rows <= Self.transactionRows
        }
        large.removeFirst(batch.count)
        defer { small.removeAll(keepingCapacity: true) }
        return small + batch
    }

    /// Moves the deferred requests to the small ones, so that the next transaction takes them.
    mutating func endDeferral() {
        small += deferred
        deferred.removeAll(keepingCapacity: true)
        deferredRows = 0
    }
}
