public import HexlistJSON
public import HexlistModel

/// A route for hexes to peers that are away, with its traffic since the start of the daemon.
public struct RouteView: JSONShape, Sendable, Equatable {
    public enum State: String, Sendable, CaseIterable {
        case working, failing
    }

    public var name: String
    /// A folder, or the address of a broker without its password.
    public var place: String
    public var state: ForwardCompatibleEnum<State>
    /// The reason why it does not work.
    public var message: String?
    public var nextTryAt: Timestamp?
    /// The peers with envelopes on the route that they have not confirmed.
    public var waiting: [RouteWaiting]
    /// The last envelope that the route accepted.
    public var lastOut: Timestamp?
    /// The last envelope of a trusted peer.
    public var lastIn: Timestamp?
    /// Envelopes that were removed unopened, by reason.
    public var dropped: [RouteDropped]
    /// A sentence about everything that is wrong with the route; `nil` if nothing is. May contain text of a peer: clean it before display.
    public var problem: String?

    public init(
        name: String, place: String, state: State, message: String? = nil, nextTryAt: Timestamp? = nil, waiting: [RouteWaiting] = [],
        lastOut: Timestamp? = nil, lastIn: Timestamp? = nil, dropped: [RouteDropped] = [], problem: String? = nil
    ) {
        self.name = name
        self.place = place
        self.state = ForwardCompatibleEnum(state)
        self.message = message
        self.nextTryAt = nextTryAt
        self.waiting = waiting
        self.lastOut = lastOut
        self.lastIn = lastIn
        self.dropped = dropped
        self.problem = problem
    }
}

/// The envelopes for one peer that wait on a route.
public struct RouteWaiting: JSONShape, Sendable, Equatable {
    public var peer: PeerID
    @Inlined public var tag: PeerSummary?
    public var envelopes: Int
    public var bytes: Int

    public init(peer: PeerID, tag: PeerSummary?, envelopes: Int, bytes: Int) {
        self.peer = peer
        self.tag = tag
        self.envelopes = envelopes
        self.bytes = bytes
    }
}

/// The number of envelopes that were removed for one reason.
public struct RouteDropped: JSONShape, Sendable, Equatable {
    /// `noEnvelope`, `notMine`, `otherKey`, `damaged`, `malformed`, `stranger`, `blocked`, `forged`, `early` or `late`.
    public var reason: String
    public var count: Int

    public init(reason: String, count: Int) {
        self.reason = reason
        self.count = count
    }
}

/// The result of a test letter from this machine to itself.
public struct RouteTest: JSONShape, Sendable, Equatable {
    /// The time of the round trip; `nil` if the test failed.
    public var milliseconds: Int?
    /// The reason why it failed.
    public var message: String?

    public init(milliseconds: Int? = nil, message: String? = nil) {
        self.milliseconds = milliseconds
        self.message = message
    }
}

/// A route with a problem, in the status.
public struct RouteProblem: JSONShape, Sendable, Equatable {
    public var route: String
    /// May contain text of a peer: clean it before display.
    public var message: String

    public init(route: String, message: String) {
        self.route = route
        self.message = message
    }
}
