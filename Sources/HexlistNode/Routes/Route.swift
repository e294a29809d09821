import HexlistEnvelope
import HexlistModel

/// A configured storage with the mailboxes of this machine and its peers (Docs/Protocol.md, "Envelopes"). The storage need not be trusted,
/// because envelopes are encrypted and signed.
///
/// Confined to the event loop of its node; that makes it `Sendable`. Completions are called on this loop, and not while the node stops.
protocol Route: AnyObject, Sendable {
    var configuration: RouteConfiguration { get }
    /// The reason why the route does not work at the moment; `nil` if it works.
    var fault: RouteFault? { get }
    /// The pause between two rounds of reading if no arrival of an envelope is reported.
    var interval: Duration { get }
    /// Maximum bytes of an envelope.
    var envelopeBytes: Int { get }

    func start(_ node: isolated Node)
    func stop()

    /// Opens the next envelopes in this machine's mailbox, up to the bounds of one round.
    /// - Parameters:
    ///   - trusts: the trust in all known keys.
    ///   - postponed: the envelopes to leave out.
    func open(
        _ trusts: [Fingerprint: Trust], leavingOut postponed: PostponedEnvelopes, _ node: isolated Node,
        then completion: @escaping @Sendable (Result<MailboxRoundResult, any Error>, isolated Node) -> Void)

    /// Removes envelopes from this machine's mailbox.
    /// - Parameter completion: called with the envelopes that could not be removed.
    func remove(
        _ envelopes: [String], _ node: isolated Node, then completion: @escaping @Sendable ([String], isolated Node) -> Void)

    /// Seals letters for a trusted key and posts them in order. If one cannot be posted, later ones may be left out.
    /// - Parameter card: the card of the key that this machine has; `nil` if it has none.
    func post(
        _ letters: [[[UInt8]]], to key: Fingerprint, card: Card?, _ node: isolated Node,
        then completion: @escaping @Sendable (PostResult, isolated Node) -> Void)

    /// Reports which of this machine's envelopes are still in the mailbox of a peer, if the route can see that.
    func present(
        _ files: [EnvelopeFileName], of peer: PeerID, _ node: isolated Node,
        then completion: @escaping @Sendable (Set<EnvelopeFileName>, isolated Node) -> Void)

    /// Removes this machine's envelopes from the mailbox of a peer, if the route can do that.
    func withdraw(_ files: [EnvelopeFileName], of peer: PeerID, _ node: isolated Node)
}

extension Route {
    var name: String { configuration.name }

    /// Maximum bytes of the frames of one letter, with their lengths.
    var payloadBytes: Int { Letter.maximumPayloadBytes(inEnvelopeOf: envelopeBytes) }
}

/// The reason why a route does not work.
struct RouteFault: Sendable, Equatable {
    /// A clause with the reason, such as `the folder does not exist`. Shown alone, or as `unreachable (REASON)`.
    var text: String
    /// The time of the next attempt to use the route; `nil` if unknown.
    var nextTry: ContinuousClock.Instant?
}

/// An opened envelope in this machine's mailbox.
struct OpenedEnvelope: Sendable {
    /// The name of the envelope on its route.
    var file: String
    var id: Envelope.ID
    var card: Card
    var signedAt: UInt64
    var boot: BootNonce
    var contents: LetterContents

    var sender: Fingerprint { card.fingerprint }

    init(_ letter: Letter, file: String, id: Envelope.ID) {
        self.file = file
        self.id = id
        card = letter.card
        signedAt = letter.signedAt
        boot = letter.boot
        contents = LetterContents(letter)
    }
}

/// The result of one round of reading.
struct MailboxRoundResult: Sendable {
    var letters: [OpenedEnvelope] = []
    /// Envelopes to remove, because they are not valid letters of trusted peers.
    var dropped: [(file: String, fault: EnvelopeFault)] = []
    /// Envelopes that may be incomplete.
    var postponed: [String] = []
    /// Whether there may be more envelopes.
    var hasMore = false
    /// Total weight of the hexes in the letters.
    private(set) var weight = 0

    /// Opens an envelope and adds its letter.
    /// - Parameter name: the name of the envelope on its route.
    mutating func open(
        _ name: String, _ bytes: [UInt8], with coder: EnvelopeCoder, now: Int64, trust: (Fingerprint) -> Trust
    ) throws(EnvelopeFault) {
        let letter = try coder.open(bytes, now: now, trust: trust)
        guard let id = Envelope(bytes: bytes)?.id else { return }
        let arrival = OpenedEnvelope(letter, file: name, id: id)
        letters.append(arrival)
        weight += arrival.contents.weight
    }
}

/// The result of posting letters.
struct PostResult: Sendable {
    /// The posted envelopes, by the index of the letter.
    var posted: [Int: (file: EnvelopeFileName, bytes: Int)] = [:]
    /// The reason why a letter was not posted; `nil` if all were.
    var obstacle: RouteObstacle?
}

/// The reason why a route does not take an envelope for a peer.
enum RouteObstacle: Sendable, Equatable {
    /// The peer has no mailbox on the route, or its mailbox has no card of the trusted key.
    case noMailbox
    /// This machine has no card of the peer.
    case noCard
    /// The peer's mailbox has the maximum of envelopes without a receipt, or the broker accepts no more for the peer.
    case full
    /// Two machines post with the identity of the peer.
    case conflict
    case fault(RouteFault)
}
