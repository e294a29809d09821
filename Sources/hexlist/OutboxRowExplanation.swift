import HexlistAPI
import HexlistJSON
import HexlistModel

/// Explains the state of an outbox row in the output of `send` and `outbox`, and recommends a next step.
struct OutboxRowExplanation {
    let row: Int64
    let state: OutboxState
    /// The peer's name for use in a sentence.
    let peer: String
    /// The peer as a command argument: its alias, or the beginning of its UUID.
    let argument: String
    /// Whether this machine trusts the peer.
    let isTrusted: Bool
    /// The condition that the row waits for; `nil` if unknown.
    let waitingFor: ForwardCompatibleEnum<OutboxWaitReason>?
    let next: Timestamp?
    /// The post on a route; `nil` if there was none.
    let post: Post?

    /// A post of a row on a route.
    struct Post {
        var route: String
        var at: Timestamp
        var count: Int?

        init?(_ route: String?, _ at: Timestamp?, _ count: Int? = nil) {
            guard let route, let at else { return nil }
            (self.route, self.at, self.count) = (route, at, count)
        }
    }
    /// The last message of the peer or of this machine about the row, in the form `code: message`.
    let lastMessage: String
    /// The files that the row offers; `nil` for a row without files.
    var files: OutboxFiles?
    private let code: String
    private let message: String?

    init(_ send: SendOutcome) {
        self.init(
            send.outboxID, send.state, PeerDisplayName(send.peer, send.tag), send.waitingFor, send.nextAttemptAt,
            Post(send.via, send.postedAt), send.code, send.message)
        files = send.files
    }

    init(_ row: OutboxView) {
        let message = row.code == nil && row.message == nil ? row.lastError : row.message
        self.init(
            row.outboxID, row.state, PeerDisplayName(row.peer, row.tag), row.waitingFor, row.nextAttemptAt,
            Post(row.via, row.postedAt, row.posts), row.code, message)
        files = row.files
    }

    private init(
        _ row: Int64, _ state: OutboxState, _ label: PeerDisplayName, _ waitingFor: ForwardCompatibleEnum<OutboxWaitReason>?,
        _ next: Timestamp?,
        _ post: Post?, _ code: String?, _ message: String?
    ) {
        self.row = row
        self.state = state
        peer = label.shown(.named)
        argument = label.alias.map(ShellText.quoted) ?? String((label.uuid ?? "").prefix(8))
        isTrusted = label.trust.utf8.elementsEqual(Trust.trusted.rawValue.utf8)
        self.waitingFor = waitingFor
        self.next = next
        self.post = post
        self.code = code ?? ""
        self.message = message
        lastMessage = [code, message].compactMap(\.self).filter { !$0.isEmpty }.joined(separator: ": ")
    }

    /// Whether a device confirmed the hex. It is unknown whether the device has stored it durably.
    var isDelivered: Bool { state == .stored && isRefused("delivered") }

    /// The reason for the state on one line, empty if there is nothing to explain. Contains text of the peer.
    var why: String {
        switch state {
        case .queued, .sending:
            return [waiting, next.map { "next at \(HumanText.time($0, seconds: true))" }, lastMessage.isEmpty ? nil : lastMessage]
                .compactMap(\.self)
                .joined(separator: "; ")
        case .held: return "delivered; waiting for approval there"
        case .expired: return "not delivered in time"
        case .stored where isDelivered: return message ?? ""
        // A stored row was delivered; its last message belongs to an earlier attempt that failed.
        case .stored: return files.map(FileText.progress) ?? ""
        case .rejected where isRefused("declined"): return "declined on \(peer)"
        case .failed where isRefused("device"): return message ?? ""
        case .rejected, .failed, .cancelled: return lastMessage
        }
    }

    /// The reason why the row waits.
    private var waiting: String? {
        guard let waitingFor else { return "sent, not confirmed yet" }
        return switch waitingFor.known {
        case .peer: "the peer is away"
        case .route: "the peer is away, and no route reaches it"
        case .receipt: posted
        case .conflict: "stopped: two machines have the same identity (see `hexlist peers --all --why`)"
        case .session: "connecting"
        case .slot: "waiting for other deliveries"
        case .window: "the peer is busy"
        case .retry: "will be retried"
        case .trust: "too large for a peer that does not trust this machine"
        case .answer: "waiting for an answer on \(peer)"
        case .pin: "\(peer) requires a PIN"
        case nil: "waiting for \(waitingFor)"
        }
    }

    /// Describes the post of a row that the peer has not confirmed.
    private var posted: String {
        guard let post else { return "in a mailbox; not confirmed yet" }
        let time = HumanText.moment(post.at)
        guard let count = post.count else { return "\(peer) is away; posted encrypted to its mailbox on \(post.route) \(time)" }
        let times = count == 1 ? "posted \(time)" : "posted \(count == 2 ? "twice" : "\(count) times"), last \(time)"
        return "via \(post.route), \(times); not confirmed yet" + (count > Self.maximumReposts ? "; not posted again" : "")
    }

    /// Maximum number of repeated posts. After the last, a row waits for a session.
    private static let maximumReposts = 4

    /// A sentence about the next step, with a command; `nil` if none is needed.
    var advice: String? {
        switch state {
        case .queued, .sending: "\(future) To cancel: `hexlist outbox cancel \(row)`."
        // This machine trusts the peer, but the peer may not trust this machine, and then requires approval.
        case .held where isTrusted:
            "It arrived and waits for approval on \(peer). If \(peer) does not trust this machine, pair: `hexlist pair` "
                + "there, `hexlist pair \(argument)` here."
        case .held:
            "It arrived and waits for approval on \(peer). To pair, so that hexes go to the inbox: `hexlist pair` there, "
                + "`hexlist pair \(argument)` here."
        case .rejected where isRefused("blocked"): "\(peer) has blocked this machine; it can only be undone there."
        case .rejected where isRefused("tooLarge") || isRefused("tooManyLinks"): "Split its links into several hexes."
        case .rejected where isRefused("declined"): "To ask again: `hexlist outbox retry \(row)`."
        case .failed where isRefused("device"): "To retry: `hexlist outbox retry \(row)`."
        case .rejected, .failed: "To retry: `hexlist outbox retry \(row)`. Nothing arrives twice."
        case .expired: "Send it again if it still matters."
        case .stored, .cancelled: nil
        }
    }

    /// Advice about the files that the hex offers; `nil` if the peer can fetch them.
    var fileAdvice: String? {
        guard !isTrusted, [.queued, .sending, .held, .stored].contains(state) else { return nil }
        return "\(peer) can only fetch the files once you trust it: `hexlist pair \(argument)`."
    }

    private var future: String {
        switch waitingFor?.known {
        case .peer, .route: "It will be sent when \(peer) comes back."
        case .receipt: "\(peer) will get it from the mailbox, or directly when it comes back."
        case .conflict:
            "It will be sent about two minutes after you run `hexlist id rotate` on one of the two machines."
        case .trust: "\(peer) only accepts hexes of this size from machines it trusts. \(pairing)"
        case .answer: "It is delivered once the user of \(peer) accepts it."
        case .pin: "To set the PIN that LocalSend on \(peer) requires: `hexlist peer set \(argument) --pin PIN`."
        case .retry where isRefused("quotaExceeded"): "\(peer) has too many hexes from strangers. \(pairing)"
        case .retry where isRefused("notAccepting"):
            "\(peer) accepts nothing from this machine for now. \(isTrusted ? "It will be retried." : pairing)"
        case .retry where isRefused("storageFull"): "The disk of \(peer) is full. It will be retried."
        case .session, .slot, .window, .retry, nil: "It continues in the background; `hexlist outbox show \(row)` shows its state."
        }
    }

    private var pairing: String {
        "It will be retried, and at once when you pair: `hexlist pair` there, `hexlist pair \(argument)` here."
    }

    /// Whether the last message has this code, as `quotaExceeded` in `quotaExceeded: The tray is full.`
    private func isRefused(_ code: String) -> Bool {
        let last = self.code.isEmpty ? lastMessage : self.code
        return last.utf8.prefix { $0 != UInt8(ascii: ":") }.elementsEqual(code.utf8)
    }
}

/// Finds an online peer that has the name of an offline one. It may be the same machine, reinstalled with a new key.
enum ReinstalledPeerFinder {
    /// Returns the only online peer that has the name or alias of the offline peer `gone`; `nil` if there are none or several.
    static func of(_ gone: PeerView, among peers: [PeerView]) -> PeerView? {
        let names = [gone.name, gone.alias ?? ""].compactMap(NormalizedName.init)
        let here = peers.filter { peer in
            peer.state == .verified && peer.uuid != gone.uuid
                && names.contains { $0.isKey(of: peer.name) || peer.alias.map($0.isKey) ?? false }
        }
        return here.count == 1 ? here[0] : nil
    }

    /// Returns the only trusted peer that is offline and has the name of a peer that was just paired: probably the same machine before it
    /// was reinstalled. `nil` if there are none or several.
    static func earlier(than new: PeerView, among peers: [PeerView]) -> PeerView? {
        guard let key = NormalizedName(new.name) else { return nil }
        let old = peers.filter { peer in
            peer.uuid != nil && peer.uuid != new.uuid && peer.trust == .trusted && peer.state == .away
                && (key.isKey(of: peer.name) || peer.alias.map(key.isKey) ?? false)
        }
        return old.count == 1 ? old[0] : nil
    }

    /// Returns advice to pair with the new peer, which can then take over the waiting hexes.
    static func advice(_ gone: PeerView, _ here: PeerView) -> String {
        let short = here.uuid?.shortID ?? ""
        return
            "\(gone.label.shown()) now has a different key (\(here.label.shown(.full))). Reinstalled? Pair again: `hexlist pair \(short)`, "
            + "and say that it is this machine: the waiting hexes then go there. If the digits differ, it is another machine."
    }
}
