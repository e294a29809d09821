public import HexlistJSON

/// The files that an outbox row offers to its peer.
public struct OutboxFiles: JSONShape, Sendable, Equatable {
    public enum State: String, CaseIterable, Sendable {
        /// The peer can fetch the files, once it has the hex.
        case offered
        /// The peer has all files.
        case fetched
        /// The time to fetch them is over.
        case expired
        /// They were withdrawn, or the hex cannot be delivered for now.
        case withdrawn
    }

    public var state: ForwardCompatibleEnum<State>
    /// Number and total size of the files.
    public var count: Int
    public var bytes: Int64
    /// Number of files that the peer has.
    @EmptyIfMissing public var fetched: Int
    /// Number of files that the peer requested in vain, because they are not as they were when they were offered.
    @LeftOutEmpty public var failed: Int
    /// The name of the last of these files, and the reason.
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
