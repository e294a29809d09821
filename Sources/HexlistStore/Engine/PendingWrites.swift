/// Write requests that no transaction has taken yet, in the order of submission within each kind.
///
/// Small requests go into the next transaction. Large ones are limited to `transactionRows` a transaction, so that a small request never
/// waits for the rows of all sessions. Each transaction takes at least one large request, so that none starves. Deferrable requests are
/// coalesced for a few milliseconds and share the next transaction.
///
/// Deferring stays because of a bound: without it one hex in flight takes 3.2 floors or more at p50 (at most 3,
/// Docs/Decisions/0027-optimisations-pay-rent.md).
struct PendingWrites {
    typealias Instant = ContinuousClock.Instant

    /// Rows of the largest small request: more than a user's hex has, and more than 20 hexes of a bulk send.
    private static let smallRequestRows = 256
    /// Maximum number of rows of the large requests in one transaction: four full batches, some 30 ms.
    private static let transactionRows = 16_384
    /// Time for which deferrable requests are coalesced: several times the interval of a sender that waits for each hex.
    private static let coalescingTime = Duration.milliseconds(3)
    /// Time after which deferrable requests are written even if no other request needs a transaction. Too short for users to notice.
    private static let maximumDelay = Duration.milliseconds(20)
    /// Rows of deferrable requests above which they are written at once: they are results of a bulk send, whose next results change the
    /// same pages.
    private static let maximumDeferredRows = 64

    private var small: [WriteRequest] = []
    private var large: ArraySlice<WriteRequest> = []
    private var deferred: [WriteRequest] = []
    private var deferredRows = 0
    /// The time at which the first of `deferred` was added.
    private var deferredSince = Instant.now

    var isEmpty: Bool { small.isEmpty && large.isEmpty && deferred.isEmpty }
    /// Whether a transaction should start now.
    var areDue: Bool { !small.isEmpty || !large.isEmpty || deferredRows > Self.maximumDeferredRows }
    /// The time at which the deferred requests are due; `nil` if there are none.
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

    /// Removes and returns the requests of the next transaction. Deferrable ones follow the small ones, which may insert the rows that they
    /// change.
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

    /// Makes the deferred requests part of the next transaction.
    mutating func endDeferral() {
        small += deferred
        deferred.removeAll(keepingCapacity: true)
        deferredRows = 0
    }
}
