import HexlistAPI
import HexlistClient
import HexlistModel
import UnixSignals

/// Runs `hexlist pair` from the request to the result. Handles updates from the daemon, answers of the user, and Ctrl-C one at a time.
final class PairingDialog {
    private enum Event: Sendable {
        case pairings(PairingOverview)
        /// The line that the user typed when asked about the digits of this pairing; `nil` at the end of the input.
        case answer(String?, PairingView)
        /// The line that the user typed as the answer to the first of `questions`; `nil` at the end of the input, or without an answer.
        case reply(String?)
        case stop
        case failed(any Error)
    }

    private let client: HexlistClient
    private let output: Output
    private let isInteractive: Bool
    /// Whether to ask after the pairing if both machines belong to the user. Otherwise the caller knows that, and has printed whether the
    /// peer is trusted and the command to run there.
    private let asksOwner: Bool
    private let reader = AnswerReader()
    private let terminal = Terminal(descriptor: 2)
    private let events: AsyncStream<Event>
    private let incoming: AsyncStream<Event>.Continuation

    /// The last state that was shown, used to skip repeated updates.
    private var lastShown: (id: Int, state: PairingView.State, message: String?)?
    private var reported: Set<Int> = []
    /// The reasons for waiting that were already shown. The daemon retries every 2 s and repeats them.
    private var shownReasons: Set<String> = []
    private var openUntil: Timestamp?
    /// Whether a question is the last output, so that the cursor is behind it.
    private var hasQuestion = false
    /// The pairing that succeeded.
    private var paired: PairingView?
    /// The open questions about the paired peer; empty before they are asked.
    private var questions: [PostPairingQuestion] = []

    init(client: HexlistClient, output: Output, isInteractive: Bool, asksOwner: Bool = true) {
        self.client = client
        self.output = output
        self.isInteractive = isInteractive
        self.asksOwner = asksOwner
        (events, incoming) = AsyncStream.makeStream(of: Event.self)
    }

    // MARK: Commands

    /// Accepts pairing requests until one succeeds, the time is up, or the user presses Ctrl-C.
    func takeRequests() async throws {
        let own = try await client.status()
        let begun = try await client.openPairing()
        let first = (begun.items.filter(\.state.isFinal).map(\.id).max() ?? 0) + 1
        note(PairText.accepting(own))
        try await run { pairings in
            let relevant = pairings.items.filter { $0.id >= first }
            let before = self.reported.count
            if let end = try self.report(relevant, leavesOpen: true) { return end }
            if let until = pairings.openUntil {
                self.openUntil = until
                if self.reported.count > before { self.note(PairText.stillOpen(until, triesLeft: pairings.triesLeft)) }
                return nil
            }
            guard relevant.allSatisfy(\.state.isFinal) else { return nil }
            let isOver = self.openUntil.map { $0.milliseconds <= Timestamp.now.milliseconds } ?? false
            self.note(
                isOver ? "Two minutes are over. To accept requests again: `hexlist pair`." : "No longer accepting requests.")
            return .failed
        } stop: {
            let closed = try await self.client.closePairing()
            return closed.items.last { $0.id >= first && $0.state.isFinal && !self.reported.contains($0.id) }
        }
    }

    /// Sends a pairing request to a peer, and waits until both users have answered, the time is up, or the user presses Ctrl-C.
    func ask(_ peer: String) async throws {
        let asked = try await client.pair(with: peer)
        if asked.trust == .trusted, asksOwner { note(PairText.isTrusted(asked)) }
        note(PairText.asking(asked, namesCommand: asksOwner))
        try await follow(asked)
    }

    /// Shows one pairing until it is final.
    func follow(_ pairing: PairingView) async throws {
        if pairing.state.isFinal, let end = try report([pairing], leavesOpen: false) { return try finish(end) }
        try await run { pairings in
            let own = pairings.items.filter { $0.peer == pairing.peer && $0.id >= pairing.id }
            // If an exchange failed, the daemons may start another one with new digits.
            if let last = own.last { return try self.report(own, leavesOpen: !last.state.isFinal) }
            self.note("Pairing stopped: this machine got a new identity. Try again.")
            return .failed
        } stop: {
            try await self.client.rejectPairing(with: pairing.peer.description)
        }
    }

    // MARK: Events

    /// Watches the pairings and handles events until the end.
    /// - Parameters:
    ///   - step: handles the current list of pairings; returns the exit status, or `nil` to continue.
    ///   - stop: called after Ctrl-C to withdraw the request; returns the pairing that was ended.
    private func run(_ step: (PairingOverview) throws -> ExitStatus?, stop: () async throws -> PairingView?) async throws {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup)
        let end = try await withThrowingTaskGroup(of: Void.self) { [client, incoming, events] group in
            group.addTask {
                do {
                    try await client.watchPairings { pairings in
                        incoming.yield(.pairings(pairings))
                        return true
                    }
                } catch {
                    incoming.yield(.failed(error))
                }
            }
            group.addTask { for await _ in signals { incoming.yield(.stop) } }
            defer {
                group.cancelAll()
                reader.cancel()
            }
            for await event in events {
                switch event {
                case .answer(.some, _), .reply(.some): hasQuestion = false  // the user's Enter has ended the line
                default: break
                }
                switch event {
                case .failed(let error): throw error
                case .pairings(let pairings):
                    guard questions.isEmpty, let end = try step(pairings) else { continue }
                    guard end == .done, await askQuestions() else { return end }
                    group.addTask {
                        try await Task.sleep(for: Self.questionPatience)
                        incoming.yield(.reply(nil))
                    }
                case .reply(let line):
                    endQuestion()
                    guard let line, let paired else { return .done }
                    try await replied(line, paired)
                    if !askNext() { return .done }
                case .stop where !questions.isEmpty:
                    endQuestion()
                    return .done
                case .answer(nil, let pairing):
                    try await say(no: pairing)
                    return try await gaveUp(stop)
                case .answer(let line?, let pairing):
                    switch PairText.answer(line, digits: pairing.digits ?? "") {
                    case .yes: try await say(yes: pairing)
                    case .no: try await say(no: pairing)
                    case .otherDigits where lastShown?.id == pairing.id:
                        note(
                            "These are not the digits shown here. If the other screen shows them, somebody may be intercepting: answer no."
                        )
                        askWhetherSame(pairing)
                    case .otherDigits: break  // the pairing has new digits by now
                    }
                case .stop: return try await gaveUp(stop)
                }
            }
            return .failed
        }
        try finish(end)
    }

    // MARK: Questions after a pairing

    /// Time after which unanswered questions after a pairing mean no.
    private static let questionPatience = Duration.seconds(120)

    /// Asks whether the peer is a known machine that was reinstalled, and whether both machines belong to the user.
    /// - Returns: `false` if there is nothing to ask: without a terminal, or if the answers are known.
    private func askQuestions() async -> Bool {
        guard isInteractive, !output.json, let paired, let peers = try? await client.peers(all: true),
            let peer = peers.first(where: { $0.uuid == paired.peer })
        else { return false }
        questions = []
        if let old = ReinstalledPeerFinder.earlier(than: peer, among: peers), let uuid = old.uuid {
            let waiting = try? await client.outbox(to: uuid.description, states: [.queued], limit: LocalAPI.pageLimit).items.count
            questions.append(.takesOver(uuid, PairText.takeoverQuestion(old, waiting: waiting ?? 0)))
        }
        if asksOwner, peer.fetchLimit == nil,
            let folder = try? await client.configuration().items.first(where: { $0.key == "files.downloads" })?.value
        {
            questions.append(.isOwn(PairText.ownerQuestion(paired, folder: folder)))
        }
        return askNext()
    }

    /// Asks the next question.
    /// - Returns: `false` if there is none.
    private func askNext() -> Bool {
        guard let question = questions.first else { return false }
        hasQuestion = true
        StandardError.prompt("\(question.text) [y/N]")
        reader.ask { [incoming] in incoming.yield(.reply($0)) }
        return true
    }

    /// Acts on the answer to the first question.
    private func replied(_ line: String, _ paired: PairingView) async throws {
        let question = questions.removeFirst()
        guard Terminal.isYes(line) else { return }
        switch question {
        case .takesOver(let old, _):
            let peer = try await client.takeOver(from: old.description, by: paired.peer.description)
            note("\(peer.label.shown(.named, columns: 64)) replaces it. Waiting hexes will be sent to the new key.")
        case .isOwn:
            let peer = try await client.setPeer(
                paired.peer.description, fetchLimit: PeerSetCommand.ownMachineLimit, fetchTo: .downloads)
            note(
                "Files from \(peer.label.shown(.named, columns: 64)) will be downloaded. To turn it off: "
                    + "`hexlist peer set \(paired.peer.shortID) --fetch never`.")
            note("To keep one My Hexlist on both machines: `hexlist own add \(paired.peer.shortID)`.")
        }
    }

    // MARK: Ends

    private func gaveUp(_ stop: () async throws -> PairingView?) async throws -> ExitStatus {
        endQuestion()
        var ended: PairingView?
        do {
            ended = try await stop()
        } catch let error as HexlistError where error.code == .notFound {}  // the pairing has already ended
        let outcome =
            lastShown?.state == .confirmed ? "Cancelled. You had answered yes: the other machine may trust this one." : "Not paired."
        note(([outcome] + [ended.flatMap(PairText.left)].compactMap(\.self)).joined(separator: " "))
        return .failed
    }

    private func say(yes pairing: PairingView) async throws {
        do {
            _ = try await client.confirmPairing(with: pairing.peer.description, digits: pairing.digits ?? "", id: pairing.id)
        } catch let error as HexlistError where error.code == .gone || error.code == .notFound {}  // the next update shows the new state
    }

    private func say(no pairing: PairingView) async throws {
        guard lastShown?.id == pairing.id else { return }  // the pairing has new digits by now
        do {
            _ = try await client.rejectPairing(with: pairing.peer.description)
        } catch let error as HexlistError where error.code == .notFound {}  // the pairing has already ended
    }

    private func finish(_ end: ExitStatus) throws {
        try output.flush()
        if end != .done { throw SilentExit(status: end) }
    }

    // MARK: Reporting

    /// Prints the changes of these pairings, oldest first.
    /// - Parameter leavesOpen: whether to continue if a pairing failed.
    /// - Returns: the exit status if a pairing ends the dialog; `nil` to continue.
    private func report(_ pairings: [PairingView], leavesOpen: Bool) throws -> ExitStatus? {
        for pairing in pairings {
            if pairing.state.isFinal {
                guard reported.insert(pairing.id).inserted else { continue }
                if lastShown?.id == pairing.id { endQuestion() }
                try reportEnd(pairing)
                if pairing.state == .paired { paired = pairing }
                if pairing.state == .paired || !leavesOpen && pairing.id == pairings.last?.id { return PairText.status(pairing) }
            } else {
                try reportProgress(pairing)
            }
        }
        return nil
    }

    private func reportEnd(_ pairing: PairingView) throws {
        if output.json {
            try output.object(pairing)
        } else if pairing.state == .paired {
            try output.wrapped("Paired with \(PairText.name(pairing)). What it sends now goes to your inbox.")
        } else {
            note(PairText.ended(pairing))
        }
        try output.flush()
    }

    private func reportProgress(_ pairing: PairingView) throws {
        if let lastShown, lastShown == (pairing.id, pairing.state, pairing.message) { return }
        let isNew = lastShown?.id != pairing.id || lastShown?.state != pairing.state
        lastShown = (pairing.id, pairing.state, pairing.message)
        if output.json, isNew {
            try output.object(pairing)
            try output.flush()
        }
        switch pairing.state {
        case .comparing:
            if isNew, let digits = pairing.digits { ask(pairing, digits) }
        case .confirmed:
            endQuestion()
            note("Waiting for the answer on the other machine …")
        case .waiting:
            endQuestion()
            if let message = pairing.message.map({ TerminalText.clean($0, columns: 300) }), shownReasons.insert(message).inserted {
                note(message)
            }
        case .paired, .ended: break
        }
    }

    private func ask(_ pairing: PairingView, _ digits: String) {
        if isInteractive { reader.discard() }
        let shown = TerminalText.clean(digits, columns: 6)
        StandardError.write("\n")
        note(PairText.heading(pairing))
        StandardError.write("\n    \(terminal.styled(shown, .strong))\n\n")
        note(PairText.comparison)
        guard isInteractive else {
            note("To answer yes: `hexlist pair --confirm \(pairing.peer.shortID) CODE`, with the digits of the other screen as CODE.")
            return
        }
        askWhetherSame(pairing)
    }

    private func askWhetherSame(_ pairing: PairingView) {
        StandardError.prompt("Do they match? [y/N]")
        hasQuestion = true
        reader.ask { [incoming] in incoming.yield(.answer($0, pairing)) }
    }

    /// Cancels an unanswered question and moves to a new line.
    private func endQuestion() {
        reader.cancel()
        if hasQuestion { StandardError.write("\n") }
        hasQuestion = false
    }

    private func note(_ text: String) { StandardError.wrapped(text) }
}

/// A question about a peer after the pairing with it, with its text.
enum PostPairingQuestion {
    /// Whether the peer is the same machine as this earlier one.
    case takesOver(PeerID, String)
    /// Whether the peer is a machine of the same user.
    case isOwn(String)

    var text: String {
        switch self {
        case .takesOver(_, let text), .isOwn(let text): text
        }
    }
}
