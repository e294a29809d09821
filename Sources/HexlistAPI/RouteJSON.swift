public import HexlistJSON
public import HexlistModel

/// A route for hexes to peers that are away, with its state and with its traffic since the start of the daemon.
public struct RouteView: JSONShape, Sendable, Equatable {
    public enum State: String, Sendable, CaseIterable {
        case working, failing
    }

    public var name: String
    /// The path of the folder, or the URL of the MQTT broker without its password.
    public var place: String
    public var state: ForwardCompatibleEnum<State>
    /// The reason why the route does not work; `nil` while it works.
    public var message: String?
    public var nextTryAt: Timestamp?
    /// The peers for which there are unconfirmed envelopes on the route.
    public var waiting: [RouteUnconfirmedEnvelopes]
    /// The time at which the route last accepted an envelope.
    public var lastOut: Timestamp?
    /// The time at which an envelope of a trusted peer was last read.
    public var lastIn: Timestamp?
    /// The numbers of envelopes that were removed unopened, by reason.
    public var dropped: [RouteDroppedEnvelopes]
    /// A sentence with all problems of the route; `nil` if there are none. May contain text of a peer: clean it before display.
    public var problem: String?

    public init(
        name: String, place: String, state: State, message: String? = nil, nextTryAt: Timestamp? = nil,
        waiting: [RouteUnconfirmedEnvelopes] = [],
        lastOut: Timestamp? = nil, lastIn: Timestamp? = nil, dropped: [RouteDroppedEnvelopes] = [], problem: String? = nil
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

/// The number and total bytes of the unconfirmed envelopes for one peer on a route.
public struct RouteUnconfirmedEnvelopes: JSONShape, Sendable, Equatable {
    public var peer: PeerID
    @InlinedMembers public var tag: PeerSummary?
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
public struct RouteDroppedEnvelopes: JSONShape, Sendable, Equatable {
    /// The reason: `noEnvelope`, `notMine`, `otherKey`, `damaged`, `malformed`, `stranger`, `blocked`, `forged`, `early` or `late`.
    public var reason: String
    public var count: Int

    public init(reason: String, count: Int) {
        self.reason = reason
        self.count = count
    }
}

/// The result of a test of a route: this machine sent a letter to itself.
public struct RouteTestResult: JSONShape, Sendable, Equatable {
    /// The time until the letter came back; `nil` if the test failed.
    public var milliseconds: Int?
    /// The reason why the test failed.
    public var message: String?

    public init(milliseconds: Int? = nil, message: String? = nil) {
        self.milliseconds = milliseconds
        self.message = message
    }
}

/// A route with a problem, as listed in `StatusJSON`.
public struct RouteProblem: JSONShape, Sendable, Equatable {
    public var route: String
    /// The problem. May contain text of a peer: clean it before display.
    public var message: String

    public init(route: String, message: String) {
        self.route = route
        self.message = message
    }
}
