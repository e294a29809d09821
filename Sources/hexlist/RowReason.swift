import HexlistAPI
import HexlistJSON
import HexlistModel

/// The reason for the state of an outbox row, and advice about it: the same at the end of `send` and later in `outbox`.
struct RowReason {
    let row: Int64
    let state: OutboxState
    /// The peer's name in sentences.
    let peer: String
    /// The peer as an argument of a command: its alias, or the beginning of its UUID.
    let argument: String
    /// Whether the peer is trusted here.
    let isTrusted: Bool
    /// A word of `OutboxWait`, or of a newer daemon; `nil` where nothing is known.
    let waitingFor: ForwardCompatibleEnum<OutboxWait>?
    let next: Timestamp?
    /// The last message of the peer or of this side: `code: message`.
    let told: String

    init(_ send: SendOutcome) {
        self.init(
            send.outboxID, send.state, PeerDisplayName(send.peer, send.tag), send.waitingFor, send.nextAttemptAt, [send.code, send.message])
    }

    init(_ row: OutboxView) {
        let told = row.code == nil && row.message == nil ? [row.lastError] : [row.code, row.message]
        self.init(row.outboxID, row.state, PeerDisplayName(row.peer, row.tag), row.waitingFor, row.nextAttemptAt, told)
    }

    private init(
        _ row: Int64, _ state: OutboxState, _ label: PeerDisplayName, _ waitingFor: ForwardCompatibleEnum<OutboxWait>?, _ next: Timestamp?,
        _ told: [String?]
    ) {
        self.row = row
        self.state = state
        peer = label.shown(.named)
        argument = label.alias.map(ShellText.quoted) ?? String((label.uuid ?? "").prefix(8))
        isTrusted = label.trust.utf8.elementsEqual(Trust.trusted.rawValue.utf8)
        self.waitingFor = waitingFor
        self.next = next
        self.told = told.compactMap(\.self).filter { !$0.isEmpty }.joined(separator: ": ")
    }

    /// The reason on one line; empty if there is nothing to say. Contains peer text.
    var why: String {
        switch state {
        case .queued, .sending:
            return [waiting, next.map { "next at \(HumanText.time($0, seconds: true))" }, told.isEmpty ? nil : told].compactMap(\.self)
                .joined(separator: "; ")
        case .held: return "delivered, and kept out of the inbox there"
        case .expired: return "given up: it was not delivered in time"
        // The last message is of an attempt that failed before.
        case .stored: return ""
        case .rejected, .failed, .cancelled: return told
        }
    }

    /// A phrase for what the row waits for, if that is known.
    private var waiting: String? {
        guard let waitingFor else { return "on its way, not confirmed yet" }
        return switch waitingFor.known {
        case .peer: "the peer is away"
        case .conflict: "held back: two machines have one identity, `hexlist status` and `hexlist peers --all --why` say whose"
        case .session: "the peer is being dialled"
        case .turn: "other transfers go first"
        case .window: "the peer takes no more for now"
        case .retry: "waits to be tried again"
        case .trust: "too long until the peer trusts this one"
        case nil: "waits for \(waitingFor)"
        }
    }

    /// The next event and what to type; `nil` if nothing is left to say.
    var advice: String? {
        switch state {
        case .queued, .sending: "\(future) `hexlist outbox cancel \(row)` takes it back."
        // It may trust this machine and hold its hexes all the same.
        case .held where isTrusted:
            "\(peer) has it and keeps it out of the inbox until its person accepts it. If it does not trust this machine: `hexlist pair` "
                + "there, `hexlist pair \(argument)` here."
        case .held:
            "\(peer) has it and keeps it out of the inbox until its person accepts it or trusts this machine. To pair: `hexlist pair` there, "
                + "`hexlist pair \(argument)` here."
        case .rejected where isRefused("blocked"): "\(peer) blocks this machine: only its person can change that."
        case .rejected where isRefused("tooLarge") || isRefused("tooManyLinks"): "Send its links in several hexes."
        case .rejected, .failed: "`hexlist outbox retry \(row)` tries it again; what is there already is not stored twice."
        case .expired: "Send it again, or let it be."
        case .stored, .cancelled: nil
        }
    }

    /// Advice about files of this machine that the row offers; `nil` where the peer can fetch them once it has the hex.
    var fileAdvice: String? {
        guard !isTrusted, [.queued, .sending, .held, .stored].contains(state) else { return nil }
        return "\(peer) can fetch the files only once it is trusted here: `hexlist pair \(argument)`."
    }

    private var future: String {
        switch waitingFor?.known {
        case .peer: "It is delivered by itself when \(peer) is back."
        case .conflict:
            "It is delivered about two minutes after one of the two machines got an identity of its own (`hexlist id rotate` there)."
        case .trust: "\(peer) takes hexes of that length from machines it trusts only. \(pairing)"
        case .retry where isRefused("quotaExceeded"): "The tray for strangers is full there. \(pairing)"
        case .retry where isRefused("notAccepting"):
            "\(peer) takes nothing of this machine for now. \(isTrusted ? "It is tried again by itself." : pairing)"
        case .retry where isRefused("storageFull"): "The disk is full there; it is tried again by itself as soon as there is room."
        case .session, .turn, .window, .retry, nil: "It goes on by itself; `hexlist outbox show \(row)` says how it stands."
        }
    }

    private var pairing: String {
        "It is tried again by itself, and at once when you pair: `hexlist pair` there, `hexlist pair \(argument)` here."
    }

    /// Whether the last message begins with a refusal's code, as in `quotaExceeded: The tray is full.`
    private func isRefused(_ code: String) -> Bool { told.utf8.prefix { $0 != UInt8(ascii: ":") }.elementsEqual(code.utf8) }
}

/// A peer that is gone, and another key that is here under the same name: perhaps one machine, installed anew.
enum SameNamePeer {
    /// The one peer that is here under a name of the other; `nil` if there is none, or more than one.
    static func of(_ gone: PeerView, among peers: [PeerView]) -> PeerView? {
        let names = [gone.name, gone.alias ?? ""].compactMap(NameKey.init)
        let here = peers.filter { peer in
            peer.state == .verified && peer.uuid != gone.uuid
                && names.contains { $0.isKey(of: peer.name) || peer.alias.map($0.isKey) ?? false }
        }
        return here.count == 1 ? here[0] : nil
    }

    /// - Parameter row: the id of the row that waits.
    static func advice(_ gone: PeerView, _ here: PeerView, row: Int64) -> String {
        let short = here.uuid?.shortID ?? ""
        return "\(gone.label.shown()) is another key than \(here.label.shown(.full)), which is here under that name. Anybody can "
            + "take a name; if it is that machine, installed anew: `hexlist pair \(short)`, and once the digits were the same send to \(short) and "
            + "`hexlist outbox cancel \(row)`."
    }
}
