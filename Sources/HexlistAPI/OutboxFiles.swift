public import HexlistJSON

/// The state and the counts of the files that an outbox row offers to its peer.
public struct OutboxFiles: JSONShape, Sendable, Equatable {
    public enum State: String, CaseIterable, Sendable {
        /// The peer can fetch the files, once it has the hex.
        case offered
        /// The peer has all files.
        case fetched
        /// The time to fetch them is over.
        case expired
        /// The user withdrew the offer, the hex was rejected or cancelled, or its delivery failed.
        case withdrawn
    }

    public var state: ForwardCompatibleEnum<State>
    /// Number and total size of the files.
    public var count: Int
    public var bytes: Int64
    /// Number of files that the peer has.
    @EmptyIfMissing public var fetched: Int
    /// Number of files that the peer requested but could not fetch, because they were changed or deleted after the offer.
    @OmittedIfEmpty public var failed: Int
    /// The name of the file counted last in `failed`, and the reason why it could not be fetched.
    public var failedName: String?
    public var problem: ForwardCompatibleEnum<OfferProblem>?

    public init(
        state: State, count: Int, bytes: Int64, fetched: Int = 0, failed: Int = 0, failedName: String? = nil, problem: OfferProblem? = nil
    ) {
        self.state = ForwardCompatibleEnum(state)
        self.count = count
        self.bytes = bytes
        self.fetched = fetched
        self.failed = failed
        self.failedName = failedName
        self.problem = problem.map { ForwardCompatibleEnum($0) }
    }
}
