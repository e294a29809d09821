import Foundation
import HexlistModel
import TestSupport
import Testing

@testable import HexlistWire

/// Every sequence of up to three frames (four in long tests), compared with a model of the protocol. The model has the only effect that
/// each frame may have: a hex to store, a settled row, an alert, a reported frame of pairing or dialling back, or the end of the session.
/// Also checks which frames the session sends before a Hello.
@Suite("Session: all frame sequences")
struct FrameSequenceTests {
    /// The frames that a peer may send. Numbered ones carry the next number, except `jump`.
    private enum Kind: CaseIterable {
        case hello, helloOfAnother, helloOfAnotherStart, helloOfOurselves
        case store, unnumberedStore, jump, receipt, receiptTwice, alert, pair, dialBack, dialedBack, fileDial, listNews, numberedPing, pong
        case bye
        case undecodable, unknownOperation, badHello
    }

    private struct Opening: CustomTestStringConvertible {
        var testDescription: String
        var role = Session.Role.acceptor
        var isTLS = true
        var isTrusted = false
    }

    private static let openings = [
        Opening(testDescription: "a stranger's"), Opening(testDescription: "a trusted peer's", isTrusted: true),
        Opening(testDescription: "dialled", role: .dialer, isTrusted: true), Opening(testDescription: "plain", isTLS: false),
    ]

    /// The protocol's rules for each frame, without any of the session's code.
    private struct Model {
        enum State: Equatable { case waiting, open, legacy, closed }

        let opening: Opening
        var state = State.waiting
        var knownPeer: PeerID?
        var knownBoot: BootNonce?
        var isRowUnanswered = false
        var next: Int64 = 1

        /// The expected effect: `hex`, `settled`, `alert`, or a code if the session ends.
        mutating func receive(_ kind: Kind) -> [String] {
            guard state != .closed else { return [] }
            switch kind {
            case .hello: return greet(SessionFixture.peer, BootNonce(2))
            case .helloOfAnother: return greet(Self.another, BootNonce(2))
            case .helloOfAnotherStart: return greet(SessionFixture.peer, BootNonce(3))
            case .helloOfOurselves: return greet(SessionFixture.own, BootNonce(9))
            case .undecodable, .badHello: return []
            default: break
            }
            if state == .waiting {
                guard kind != .bye else { return end("peer") }
                guard opening.role == .acceptor else { return end("identityMismatch") }
                state = .legacy
            }
            switch kind {
            case .store:
                next += 1
                return ["hex"]
            case .unnumberedStore: return ["hex"]
            case .jump: return end("sequenceFault")
            case .receipt:
                guard isRowUnanswered else { return end("receiptFault") }
                isRowUnanswered = false
                return ["settled"]
            case .receiptTwice: return end("receiptFault")
            case .alert: return ["alert"]
            case .pair: return state == .open && opening.isTLS ? ["pairing"] : []
            case .dialBack: return state == .open && opening.isTLS ? ["dialBack"] : []
            case .dialedBack: return state == .open && opening.isTLS ? ["dialedBack"] : []
            case .fileDial: return state == .open && opening.isTLS ? ["fileDial"] : []
            case .listNews: return state == .open && opening.isTLS ? ["listNews"] : []
            case .numberedPing:
                next += 1
                return []
            case .bye: return end("peer")
            case .pong, .unknownOperation: return []
            case .hello, .helloOfAnother, .helloOfAnotherStart, .helloOfOurselves, .undecodable, .badHello: return []
            }
        }

        static let another = SessionFixture.key(77).peerID

        private mutating func greet(_ peer: PeerID, _ boot: BootNonce) -> [String] {
            if opening.isTLS, peer != SessionFixture.peer { return end("identityMismatch") }
            if peer == SessionFixture.own { return end("conflict") }
            guard let knownPeer else {
                (knownPeer, knownBoot, state) = (peer, boot, .open)
                isRowUnanswered = true
                return []
            }
            return peer == knownPeer && boot == knownBoot ? [] : end("identityMismatch")
        }

        private mutating func end(_ code: String) -> [String] {
            state = .closed
            return [code]
        }
    }

    private static func send(_ kind: Kind, to fixture: inout SessionFixture, next: Int64) {
        let id = SessionFixture.id(UInt64(next))
        switch kind {
        case .hello: fixture.hello()
        case .helloOfAnother: fixture.hello(uuid: Model.another)
        case .helloOfAnotherStart: fixture.hello(boot: BootNonce(3))
        case .helloOfOurselves: fixture.hello(uuid: SessionFixture.own, boot: BootNonce(9))
        case .store: fixture.store(next, id: id)
        case .unnumberedStore: fixture.store(nil, id: id)
        case .jump: fixture.store(next + 5, id: id)
        case .receipt: fixture.receive(.ack, .receipt(Receipt(through: 1, status: .stored)))
        case .receiptTwice: fixture.receive(.ack, .receipt(Receipt(through: 2, status: .stored)))
        case .alert: fixture.receive(.alert, message: "now")
        case .pair: fixture.receive(.pair, .pairing(Pairing(step: "commit")))
        case .dialBack: fixture.receive(.dialBack, message: DialBack(token: BootNonce(5), port: 24_391).message)
        case .fileDial: fixture.receive(.fileDial, message: DialBack(token: BootNonce(5), port: 24_391).message)
        case .listNews: fixture.receive(.listNews)
        case .dialedBack: fixture.receive(.dialedBack, message: DialBack.Response(token: BootNonce(5), result: .reached).message)
        case .numberedPing: fixture.receive(.ping, message: "still", sequence: next)
        case .pong: fixture.receive(.pong, message: "nobody asked")
        case .bye: fixture.receive(.bye, message: "shutdown: good night")
        case .undecodable: fixture.undecodable()
        case .unknownOperation:
            fixture.session.received(
                .refused(Refusal(code: .unsupportedOperation, message: "")), bytes: 10, now: fixture.now, &fixture.actions)
        case .badHello:
            fixture.session.received(
                .refused(Refusal(code: .missingObject, message: "", operation: .hello)), bytes: 10, now: fixture.now, &fixture.actions)
        }
    }

    private static func code(_ end: Session.EndReason) -> String {
        switch end {
        case .own(let code): code.rawValue
        case .peer, .lost: "peer"
        }
    }

    /// Runs one sequence.
    /// - Returns: the violation; `nil` if there is none.
    private static func fault(_ kinds: [Kind], _ opening: Opening) -> String? {
        var fixture = SessionFixture(
            role: opening.role, security: opening.isTLS ? .tls(SessionFixture.otherFingerprint) : .plain,
            expected: opening.role == .dialer ? SessionFixture.peer : nil, trusted: opening.isTrusted)
        var model = Model(opening: opening)
        _ = fixture.take()
        for (index, kind) in kinds.enumerated() {
            let before = model
            let due = model.receive(kind)
            send(kind, to: &fixture, next: before.next)
            fixture.session.takePendingFrames(&fixture.actions)
            let hexes = fixture.session.takeBatch(limit: 100)
            fixture.session.batchCompleted(hexes.map { _ in .stored }, now: fixture.now)
            let actions = fixture.take()
            var seen = hexes.map { _ in "hex" }
            var said: [Session.OutFrame] = []
            for action in actions {
                switch action {
                case .settled: seen.append("settled")
                case .alert: seen.append("alert")
                case .pairing: seen.append("pairing")
                case .dialBack: seen.append("dialBack")
                case .dialedBack: seen.append("dialedBack")
                case .fileDial: seen.append("fileDial")
                case .listNews: seen.append("listNews")
                case .close(let end): seen.append(code(end))
                case .send(let frame): said.append(frame)
                case .opened, .updated, .legacy, .setFrameLimit, .challengeAnswered, .challengeFailed: break
                }
            }
            func fault(_ text: String) -> String { "\(opening.testDescription), \(kinds), frame \(index): \(text); \(actions)" }
            guard seen == due else { return fault("\(seen) where \(due) is due") }
            if before.state == .closed, !actions.isEmpty { return fault("something after the end") }
            if !opening.isTLS, hexes.contains(where: { $0.messageID != nil }) { return fault("an id that nobody proved") }
            if model.knownPeer == nil, said.contains(where: { !mayBeSaidBeforeHello($0, opening) }) { return fault("said before Hello") }
            // A row is sent on the session as soon as its peer is known.
            if before.knownPeer == nil, model.knownPeer != nil {
                guard fixture.session.takes(10, windowFrames: 10, windowBytes: 1_000) else { return fault("no room") }
                _ = fixture.session.numberStore(tag: 7, bytes: 10, now: fixture.now)
            } else if model.knownPeer == nil, fixture.session.takes(10, windowFrames: 10, windowBytes: 1_000) {
                return fault("hexes could be sent to nobody knows whom")
            }
        }
        return nil
    }

    private static func mayBeSaidBeforeHello(_ frame: Session.OutFrame, _ opening: Opening) -> Bool {
        switch frame {
        case .ack: true  // the receipt of a legacy sender's hex
        case .bye, .pong, .pair: opening.isTLS
        case .hello, .alert, .ping, .dialBack, .dialedBack, .fileDial, .listNews: false
        }
    }

    @Test("each frame has exactly the effects of the protocol", arguments: openings)
    private func sequences(opening: Opening) {
        let longest = LongTests.areWanted ? 4 : 3
        var tried = 0
        var sequences: [[Kind]] = [[]]
        for _ in 0..<longest {
            var longer: [[Kind]] = []
            longer.reserveCapacity(sequences.count * Kind.allCases.count)
            for sequence in sequences {
                for kind in Kind.allCases {
                    longer.append(sequence + [kind])
                    tried += 1
                    if let fault = Self.fault(sequence + [kind], opening) {
                        Issue.record("\(fault)")
                        return
                    }
                }
            }
            sequences = longer
        }
        #expect(tried > 4_000)
    }
}
