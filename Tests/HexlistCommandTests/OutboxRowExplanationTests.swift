import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistSystem
import Testing

@testable import hexlist

@Suite("Reasons why a row waits, with advice")
struct RowReasonTests {
    private static let uuid = PeerID(UUIDBytes(high: 0x0C6F_1B22_0000_8000, low: 0x8000_0000_0000_0001))

    private func row(
        _ state: OutboxState, waitingFor: String? = nil, lastError: String? = nil, code: String? = nil, message: String? = nil,
        alias: String? = "bob"
    ) -> OutboxRowExplanation {
        var row = OutboxView(
            outboxID: 7, messageID: MessageID(.nil), peer: Self.uuid, tag: PeerSummary(name: "bob", alias: alias, trust: .stranger),
            state: state, attempts: 1, lastError: lastError, code: code, message: message, createdAt: Timestamp(milliseconds: 0), bytes: 10)
        row.waitingFor = waitingFor.map { ForwardCompatibleEnum(text: $0) }
        return OutboxRowExplanation(row)
    }

    @Test(
        "the reason and the suggested command",
        arguments: [
            (OutboxState.queued, "peer", "the peer is away", "comes back. To cancel: `hexlist outbox cancel 7`"),
            (.queued, "session", "connecting", "`hexlist outbox show 7`"),
            (.queued, "trust", "too large for a peer that does not trust this machine", "`hexlist pair` there, `hexlist pair bob` here"),
            (.queued, "later", "waiting for later", "continues in the background"),
            (.queued, nil, "sent, not confirmed yet", "continues in the background"),
            (.sending, nil, "sent, not confirmed yet", "`hexlist outbox cancel 7`"),
            (.queued, "answer", "waiting for an answer on bob", "once the user of bob accepts it"),
            (.queued, "pin", "bob requires a PIN", "`hexlist peer set bob --pin PIN`"),
            (.held, nil, "delivered; waiting for approval there", "`hexlist pair bob` here"),
            (.expired, nil, "not delivered in time", "Send it again"),
        ] as [(OutboxState, String?, String, String)])
    func waiting(state: OutboxState, waitingFor: String?, why: String, advice: String) {
        let reason = row(state, waitingFor: waitingFor)
        #expect(reason.why == why)
        #expect(reason.advice?.contains(advice) == true, "\(reason.advice ?? "")")
    }

    @Test(
        "a temporary refusal says when it ends",
        arguments: [
            ("quotaExceeded: full", "has too many hexes from strangers"), ("notAccepting: no", "accepts nothing from this machine for now"),
            ("storageFull: no", "The disk of bob is full"), ("The connection was lost.", "continues in the background"),
        ])
    func refusedForNow(lastError: String, advice: String) {
        let reason = row(.queued, waitingFor: "retry", lastError: lastError)
        #expect(reason.why == "will be retried; \(lastError)")
        #expect(reason.advice?.contains(advice) == true, "\(reason.advice ?? "")")
    }

    @Test(
        "results of devices",
        arguments: [
            (OutboxState.stored, "delivered", nil, "delivered", "", nil),
            (.stored, "delivered", "2 of 3 files accepted", "delivered", "2 of 3 files accepted", nil),
            (.stored, nil, nil, "stored", "", nil), (.rejected, "declined", "", "rejected", "declined on bob", "To ask again"),
            (.failed, "device", "a.jpg has changed.", "failed", "a.jpg has changed.", "To retry: `hexlist outbox retry 7`."),
        ] as [(OutboxState, String?, String?, String, String, String?)])
    func devices(state: OutboxState, code: String?, message: String?, word: String, why: String, advice: String?) {
        let reason = row(state, code: code, message: message)
        #expect(OutboxStateText(reason).word == word && reason.why == why)
        if let advice { #expect(reason.advice?.hasPrefix(advice) == true, "\(reason.advice ?? "")") } else { #expect(reason.advice == nil) }
        #expect(reason.advice?.contains("Nothing arrives twice") != true)
    }

    @Test(
        "`send` and `outbox` give the same reason of a refusal",
        arguments: [
            ("blocked", "This peer blocked you.", "bob has blocked this machine"), ("tooLarge", "It is longer.", "several hexes"),
            ("malformed", "no", "`hexlist outbox retry 7`"),
        ])
    func refused(code: String, message: String, advice: String) {
        let kept = row(.rejected, lastError: "The connection was lost.", code: code, message: message)
        let sent = OutboxRowExplanation(
            SendOutcome(
                outboxID: 7, messageID: MessageID(.nil), peer: Self.uuid, tag: PeerSummary(name: "bob", alias: "bob", trust: .trusted),
                state: .rejected,
                code: code, message: message))
        #expect(kept.why == "\(code): \(message)" && sent.why == kept.why)
        #expect(kept.advice?.contains(advice) == true && sent.advice == kept.advice)
    }

    @Test("files are fetched from trusted peers only; otherwise the sender is advised")
    func files() {
        #expect(row(.stored).fileAdvice == "bob can only fetch the files once you trust it: `hexlist pair bob`.")
        #expect(row(.held).fileAdvice != nil && row(.cancelled).fileAdvice == nil)
        let trusted = SendOutcome(
            outboxID: 7, messageID: MessageID(.nil), peer: Self.uuid, tag: PeerSummary(name: "bob", alias: "bob", trust: .trusted),
            state: .stored)
        #expect(OutboxRowExplanation(trusted).fileAdvice == nil)
    }

    @Test("a delivered row needs no reason; a peer without an alias is named by UUID, a name with blanks is quoted")
    func others() {
        for state in [OutboxState.stored, .held] {
            let late = row(state, lastError: "The connection was lost.", code: "storageFull", message: "The disk is full.")
            #expect(late.why == row(state).why)
        }
        #expect(row(.stored).why.isEmpty && row(.stored).advice == nil && row(.cancelled).advice == nil)
        #expect(row(.held, alias: nil).advice?.contains("`hexlist pair 0C6F1B22` here") == true)
        #expect(row(.held, alias: "Bob's desk").advice?.contains(#"`hexlist pair 'Bob'\''s desk'` here"#) == true)
    }

    @Test(
        "the outbox at a glance",
        arguments: [
            ([:], "empty"), ([.queued: 1], "1 waits"), ([.queued: 1, .sending: 1, .rejected: 1], "2 wait, 1 refused"),
            ([.stored: 409, .held: 3], "412 delivered (3 waiting for approval there)"),
            ([.failed: 1, .expired: 2, .stored: 1], "1 failed, 2 expired, 1 delivered"),
            ([.cancelled: 2], "2 cancelled"),
        ] as [([OutboxState: Int], String)])
    func summary(counts: [OutboxState: Int], text: String) { #expect(OutboxText.summary(counts) == text) }

    // MARK: Keys that are gone

    private static func peer(
        _ number: Int, _ name: String, alias: String? = nil, _ state: PeerView.State, trust: Trust = .stranger, seen: Int64? = nil
    ) -> PeerView {
        PeerView(
            uuid: PeerID("\(number)0000000-0000-8000-8000-000000000001"), name: name, alias: alias, state: state, trust: trust,
            lastSeen: seen.map { Timestamp(milliseconds: $0) })
    }

    private static let gone = peer(1, "bob", alias: "Bob", .away, trust: .trusted, seen: 0)

    @Test(
        "a name that another key uses now",
        arguments: [
            ([peer(2, "BOB", .verified)], 2), ([peer(2, "x", alias: "bob", .verified)], 2), ([peer(2, "bob", .away)], nil),
            ([peer(2, "bob", .ghost)], nil), ([peer(2, "ada", .verified)], nil),
            ([peer(2, "bob", .verified), peer(3, "bob", .verified)], nil),
            ([gone], nil), ([], nil),
        ] as [([PeerView], Int?)])
    func namesake(peers: [PeerView], number: Int?) {
        #expect(ReinstalledPeerFinder.of(Self.gone, among: peers)?.uuid?.description.prefix(1) == number.map { "\($0)" })
    }

    @Test(
        "the earlier peer of a reinstalled machine",
        arguments: [
            ([gone], 1), ([peer(3, "x", alias: "BOB", .away, trust: .trusted)], 3), ([peer(3, "bob", .verified, trust: .trusted)], nil),
            ([peer(3, "bob", .away)], nil), ([gone, peer(3, "bob", .away, trust: .trusted)], nil),
            ([peer(3, "ada", .away, trust: .trusted)], nil), ([], nil),
        ] as [([PeerView], Int?)])
    func earlier(peers: [PeerView], number: Int?) {
        let new = Self.peer(2, "Bob", .verified, trust: .trusted)
        #expect(ReinstalledPeerFinder.earlier(than: new, among: peers + [new])?.uuid?.description.prefix(1) == number.map { "\($0)" })
    }

    @Test("a send to a key that is gone says when it was last seen, and which peer has its name now")
    func sendToGone() {
        let uuid = Self.gone.uuid ?? PeerID(.nil)
        var outcome = SendOutcome(
            outboxID: 7, messageID: MessageID(.nil), peer: uuid, tag: PeerSummary(name: "bob", alias: "Bob", trust: .trusted),
            state: .queued,
            waitingFor: .peer)
        let here = Self.peer(2, "bob", .verified)
        let lines = SlowSendNotes.advice(outcome, [Self.gone, here])
        #expect(lines.count == 2)
        #expect(lines.first?.hasPrefix("Bob was last seen 19") == true, "\(lines)")
        #expect(
            lines.last
                == "Bob now has a different key (bob 20000000 (stranger)). Reinstalled? Pair again: `hexlist pair 20000000`, "
                + "and say that it is this machine: the waiting hexes then go there. If the digits differ, it is another machine.")
        #expect(SlowSendNotes.advice(outcome, [Self.gone]).count == 1)
        outcome.waitingFor = ForwardCompatibleEnum(.window)
        #expect(SlowSendNotes.advice(outcome, [Self.gone, here]).count == 1)
    }

    // MARK: Peers

    @Test("trusted peers come first, with last-seen times if away; absent strangers and ghosts need --all")
    func listed() {
        let peers = [
            Self.peer(1, "a stranger", .verified), Self.peer(2, "bob", .verified, trust: .trusted),
            Self.peer(3, "pest", .away, trust: .blocked),
            Self.peer(4, "cyd", .away, trust: .trusted, seen: 0), Self.peer(5, "old", .away, seen: 0), Self.peer(6, "ghost", .ghost),
        ]
        #expect(PeersText.listed(peers, all: false).map(\.name) == ["bob", "cyd", "a stranger"])
        #expect(PeersText.listed(peers, all: true).map(\.name) == ["bob", "cyd", "a stranger", "pest", "old", "ghost"])
        #expect(PeersText.place(peers[3]).hasPrefix("last seen 19"))
        #expect(PeersText.place(peers[2]) == "–")
    }

    @Test("a fingerprint is formatted differently from a UUID")
    func fingerprint() {
        let lines = HumanText.fingerprint("0C6F1B2200008000800000000000000112345678ABCDEF0012345678ABCDEF00")
        #expect(
            lines == ["0C6F 1B22 0000 8000 8000 0000 0000 0001", "1234 5678 ABCD EF00 1234 5678 ABCD EF00"])
        #expect(HumanText.fingerprint("abcd\u{1B}e") == ["ABCD \u{FFFD}E"] && HumanText.fingerprint("").isEmpty)
    }

    // MARK: Where a hex is from

    private func hex(trust: Trust, claim: String, alias: String? = nil) -> HexJSON {
        HexJSON(
            id: 1, location: "inbox", senderUUID: claim, senderName: "ada", senderAlias: alias, peerUUID: Self.uuid,
            tag: PeerSummary(name: "bob", alias: "bob", trust: trust), description: "", color: "", linkCount: 1, unread: true,
            receivedAt: Timestamp(milliseconds: 0))
    }

    @Test("a hex forwarded by a trusted peer, and one of a stranger")
    func forwarded() {
        let other = "AAAAAAAA-0000-8000-8000-000000000001"
        #expect(HexText.sender(hex(trust: .trusted, claim: other, alias: "ada"), columns: 44) == "bob, forwarded from ada")
        #expect(HexText.sender(hex(trust: .trusted, claim: other), columns: 44) == "bob, forwarded from ada AAAAAAAA")
        #expect(HexText.sender(hex(trust: .stranger, claim: other), columns: 44) == "bob (stranger), says it is from ada AAAAAAAA")
        #expect(HexText.sender(hex(trust: .trusted, claim: Self.uuid.description), columns: 44) == "bob")
    }

    // MARK: The daemon

    @Test(
        "the suggested start command is systemd's if the user manager has the unit",
        arguments: [
            (["/run/user/1/systemd/private", "/home/a/.config/systemd/user/hexlistd.service"], [:], false, true),
            (["/run/user/1/systemd/private", "/usr/local/lib/systemd/user/hexlistd.service"], [:], false, true),
            (["/run/user/1/systemd/private"], [:], false, false), (["/usr/lib/systemd/user/hexlistd.service"], [:], false, false),
            (["/run/user/1/systemd/private", "/usr/lib/systemd/user/hexlistd.service"], [:], true, false),
            (["/run/user/1/systemd/private", "/usr/lib/systemd/user/hexlistd.service"], ["HEXLIST_SOCKET": "/x"], false, false),
            (["/run/user/1/systemd/private", "/c/systemd/user/hexlistd.service"], ["XDG_CONFIG_HOME": "/c"], false, true),
        ] as [([String], [String: String], Bool, Bool)])
    func start(files: [String], variables: [String: String], isNamed: Bool, isUnit: Bool) {
        let variables = ["HOME": "/home/a", "XDG_RUNTIME_DIR": "/run/user/1"].merging(variables) { $1 }
        let paths = HexlistPaths(environment: variables, stateFolder: isNamed ? "/s" : nil) { _ in true }
        let command = DaemonNotRunningText.command(paths, exists: files.contains)
        #expect(command == (isUnit ? "systemctl --user start hexlistd" : "hexlistd"))
        #expect(DaemonNotRunningText.command(HexlistPaths(environment: [:])) { _ in true } == "hexlistd")
    }

    @Test(
        "no listener: the process that locks the state folder is named, with its socket if it differs",
        arguments: [
            (nil, [:], "hexlistd is not running (nothing listens on /s/control.sock).", "Start it with `hexlistd`."),
            (LockFile.Holder(pid: nil), [:], "hexlistd is not running (nothing listens on /s/control.sock).", "Start it with `hexlistd`."),
            (
                LockFile.Holder(pid: 7, socket: "/s/control.sock"), [:],
                "hexlistd (pid 7) uses the state folder /s, but nothing listens on /s/control.sock.", "`kill 7`"
            ),
            // A process that holds the lock without a socket, as during a restore.
            (
                LockFile.Holder(pid: 7), [:], "hexlistd (pid 7) uses the state folder /s, but nothing listens on /s/control.sock.",
                "try again"
            ),
            (
                LockFile.Holder(pid: 7, socket: "/r/control.sock"), ["HEXLIST_SOCKET": "/x"],
                "Nothing listens on /x. hexlistd (pid 7) uses the state folder /s and the socket /r/control.sock.",
                "Leave out HEXLIST_SOCKET"
            ),
        ] as [(LockFile.Holder?, [String: String], String, String)])
    func absent(holder: LockFile.Holder?, variables: [String: String], message: String, hint: String) {
        let paths = HexlistPaths(environment: variables.merging(["HEXLIST_STATE_DIR": "/s"]) { $1 })
        let error = DaemonNotRunningText.absent(paths, holder: holder, startCommand: "hexlistd")
        #expect(error.code == .daemonUnreachable && error.message == message)
        #expect(error.hint?.contains(hint) == true, "\(error.hint ?? "")")
    }
}
