import HexlistDelivery
import HexlistEventLoop
public import HexlistModel
import HexlistSession
import HexlistTransport
import HexlistWire
public import NIOCore

/// Dial-back (Docs/Protocol.md): whether one's own port is reached, found out by a peer that dials it.
extension Node {
    /// Asks the peer whether it reaches this machine's port. What it answered a moment ago is not asked again while it holds; whoever mends
    /// what fails waits until the peer answers anew.
    /// - Parameters:
    ///   - waits: whether to wait where it was asked too short a time ago, or sessions with it are compared.
    ///   - patience: a dial takes 3 s, and its answer has to come back.
    public func askToDialBack(
        _ peer: PeerID, waits: Bool = true, patience: TimeAmount = .seconds(8)
    ) async -> DialBackOutcome {
        if waits { await untilCompared(peer) }
        // A peer does not answer a request that comes too soon.
        if let last = links[peer]?.askedBackAt {
            let next = last + dialBacks.pause * 1.25
            if next > clocks.now, let answer = links[peer]?.answeredBack, holds(answer, peer) { return .result(answer) }
            guard waits || next <= clocks.now else { return .cannotAsk }
            try? await Task.sleep(until: next, clock: .continuous)
        }
        guard let session = links[peer]?.sending, session.checks.dialBack == nil, let port = UInt16(exactly: port),
            session.machine.peerHello?.answersDialBack == true
        else { return .cannotAsk }
        links[peer]?.askedBackAt = clocks.now
        links[peer]?.answeredBack = nil
        let request = DialBack(token: BootNonce.random, port: port)
        let result = await eventLoop.within(patience, otherwise: DialBack.Result?.none) { done in
            session.checks.dialBack = (request.token, done)
            session.act { $0.askToDialBack(request, &$1) }
        }
        if session.checks.dialBack?.token == request.token { session.checks.dialBack = nil }
        links[peer]?.answeredBack = result
        return result.map { .result($0) } ?? .noReply
    }

    /// Whether an answer of a moment ago still says how things are.
    private func holds(_ answer: DialBack.Result, _ peer: PeerID) -> Bool {
        switch answer {
        case .reached: true
        // A peer that trusts this machine meanwhile says so by the room it gives.
        case .notTrusted: deliver { deliveries, _ in deliveries.frameLimit(of: peer) } < ProtocolLimits.trustedFrameBytes
        case .refused, .timeout, .unreachable, .closed, .otherIdentity, .foreign: false
        }
    }

    /// A peer asks to be dialled: only where its session comes from, only where it is trusted, and seldom. Who asks too often is not
    /// answered, so that a peer that does not read makes nothing grow.
    func dialBack(_ request: DialBack, _ session: PeerSession) {
        guard let peer = session.peer, let link = links[peer], !isStopping else { return }
        let now = clocks.now
        if let last = link.dialledBackAt, now - last < dialBacks.pause { return }
        links[peer]?.dialledBackAt = now
        guard known.trust(of: session.connection.peerFingerprint) == .trusted else {
            return session.act { $0.answerDialBack(DialBack.Answer(token: request.token, result: .notTrusted), &$1) }
        }
        guard dialBacks.begin() else { return }
        let target = DialTarget(host: session.connection.remoteAddress, port: request.port)
        transport.dial([target], expecting: peer).report.whenSuccess { [weak self] report in
            report.connection?.abort()
            self?.assumeIsolated { node in
                node.dialBacks.ended()
                let answer = DialBack.Answer(token: request.token, result: DialBack.Result(report))
                session.act { $0.answerDialBack(answer, &$1) }
            }
        }
    }
}

/// The number of dials that peers may ask for, and how often.
struct DialBackLimits {
    /// The most dials under way at once, of all peers.
    static let atOnce = 4

    /// The least time between two dials that one peer asks for; the own questions to one peer are a quarter further apart. Tests make it
    /// shorter.
    var pause: Duration = .seconds(10)
    private var underWay = 0

    /// - Returns: whether one more may begin; each that does has to be `ended`.
    mutating func begin() -> Bool {
        guard underWay < Self.atOnce else { return false }
        underWay += 1
        return true
    }

    mutating func ended() { underWay -= 1 }
}

extension DialBack.Result {
    init(_ report: DialReport) {
        switch report.summary {
        case nil: self = .reached
        case .refused?: self = .refused
        case .timeout?: self = .timeout
        case .closed?: self = .closed
        case .otherIdentity?: self = .otherIdentity
        case .notHexlist?: self = .foreign
        case .unreachable?, .nameNotFound?, .cancelled?, .failed?: self = .unreachable
        }
    }
}
