public import HexlistModel

/// The type of an event, with the name that scripts and hooks receive. Not an enum, because a newer version of Hexlist may record other
/// types.
public struct EventType: RawRepresentable, Hashable, Sendable {
    public var rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    public static let peerUp = EventType(rawValue: "peer.up")
    public static let peerDown = EventType(rawValue: "peer.down")
    public static let peerGhost = EventType(rawValue: "peer.ghost")
    public static let hexReceived = EventType(rawValue: "hex.received")
    public static let hexHeld = EventType(rawValue: "hex.held")
    public static let hexDelivered = EventType(rawValue: "hex.delivered")
    public static let hexRejected = EventType(rawValue: "hex.rejected")
    public static let hexFailed = EventType(rawValue: "hex.failed")
    public static let hexExpired = EventType(rawValue: "hex.expired")
    public static let deviceAsked = EventType(rawValue: "device.asked")
    public static let alertReceived = EventType(rawValue: "alert.received")
    public static let pairingRequested = EventType(rawValue: "pairing.requested")
    public static let pairingCompleted = EventType(rawValue: "pairing.completed")
    public static let pairingFailed = EventType(rawValue: "pairing.failed")
    public static let conflictIdentity = EventType(rawValue: "conflict.identity")
    public static let hookFailed = EventType(rawValue: "hook.failed")
    public static let transferDone = EventType(rawValue: "transfer.done")
    public static let transferFailed = EventType(rawValue: "transfer.failed")
    public static let offerFetched = EventType(rawValue: "offer.fetched")
    public static let offerFailed = EventType(rawValue: "offer.failed")
    /// Too many wrong keys of invitations were tried, so all invitations ended.
    public static let invitationGuessed = EventType(rawValue: "invitation.guessed")
    /// The collections of this machine and of an own machine become one.
    public static let listJoined = EventType(rawValue: "list.joined")
    /// A peer offers to share a hex.
    public static let listOffered = EventType(rawValue: "list.offered")
    /// The owner of a shared hex has ended the sharing, or does not let the user change the hex any more.
    public static let listEnded = EventType(rawValue: "list.ended")
    /// The owner of a shared hex shares it again with the user, after the sharing had ended.
    public static let listResumed = EventType(rawValue: "list.resumed")
    /// An own machine changed My Hexlist, or a member a shared hex.
    public static let listChanged = EventType(rawValue: "list.changed")
    /// An own machine deleted a large part of My Hexlist, or a member a large part of a shared hex.
    public static let listDeleted = EventType(rawValue: "list.deleted")
    /// Lists are not exchanged with a peer any more, and will not be without the user.
    public static let listStuck = EventType(rawValue: "list.stuck")
    /// Reports that events caused by peers were not recorded because there were too many.
    public static let eventsOmitted = EventType(rawValue: "events.omitted")

    /// The types that this version records.
    public static let all: [EventType] = [
        peerUp, peerDown, peerGhost, hexReceived, hexHeld, hexDelivered, hexRejected, hexFailed, hexExpired, deviceAsked,
        alertReceived, pairingRequested, pairingCompleted, pairingFailed, conflictIdentity, hookFailed, transferDone, transferFailed,
        offerFetched,
        offerFailed, invitationGuessed, listJoined, listOffered, listEnded, listResumed, listChanged, listDeleted, listStuck, eventsOmitted,
    ]
}

/// One event of the event log.
public struct EventRow: Sendable, Equatable {
    public var number: Int64
    /// The time of the event, in milliseconds since 1970.
    public var at: Int64
    public var type: EventType
    public var peer: PeerID?
    /// The id of the hex that the event concerns.
    public var hex: Int64?
    /// The id of the outbox row that the event concerns.
    public var outboxID: Int64?
    /// Details of the event, as a JSON object.
    public var data: String?
}
