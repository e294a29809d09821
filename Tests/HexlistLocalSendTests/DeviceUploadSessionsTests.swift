import HexlistModel
import Synchronization
import Testing

@testable import HexlistLocalSend

private let start = ContinuousClock.now

private func fingerprint(_ number: UInt8) -> Fingerprint {
    guard let fingerprint = Fingerprint(bytes: [UInt8](repeating: number, count: 32)) else { preconditionFailure("32 bytes") }
    return fingerprint
}

private func upload(_ files: Int = 1) -> PrepareUpload {
    PrepareUpload(
        info: DeviceInfo(alias: "Pixel 9", fingerprint: nil),
        files: (0..<files).map { DeviceFile(id: "file \($0)", fileName: "a", size: 1, fileType: "image/png") })
}

private func sender(_ number: UInt8, _ trust: Trust = .trusted, _ receive: PeerReceiveSetting = .inbox) -> DeviceUploadSessions.Sender {
    DeviceUploadSessions.Sender(fingerprint: fingerprint(number), trust: trust, receive: receive)
}

/// Returns upload sessions whose secrets are `1`, `2`, … instead of random.
private func makeInbound() -> DeviceUploadSessions {
    let count = Mutex(0)
    return DeviceUploadSessions {
        count.withLock {
            $0 += 1
            return "\($0)"
        }
    }
}

@Suite struct DeviceUploadSessionsTests {
    @Test(
        "decisions about requests to send files, by trust, the peer's setting, and whether strangers may ask",
        arguments: [
            (Trust.trusted, PeerReceiveSetting.inbox, false, DeviceUploadSessions.Decision.accepted), (.trusted, .held, false, .accepted),
            (.trusted, .nothing, true, .refused(403)), (.blocked, .inbox, true, .refused(403)), (.stranger, .inbox, false, .refused(403)),
            (.stranger, .inbox, true, .ask), (.stranger, .nothing, true, .refused(403)),
        ]) func decisions(trust: Trust, receive: PeerReceiveSetting, strangersMayAsk: Bool, decision: DeviceUploadSessions.Decision)
    {
        #expect(makeInbound().prepare(from: sender(1, trust, receive), strangersMayAsk: strangersMayAsk) == decision)
    }

    @Test("bounds of sessions") func bounds() {
        var inbound = makeInbound()
        for number in 100..<100 + UInt8(DeviceUploadSessions.sessionLimit) {
            #expect(inbound.prepare(from: sender(number), strangersMayAsk: false) == .accepted)
            #expect(inbound.open(upload(), from: fingerprint(number), now: start) != nil)
            #expect(inbound.prepare(from: sender(number), strangersMayAsk: false) == .refused(409))
            #expect(inbound.open(upload(), from: fingerprint(number), now: start) == nil)
        }
        #expect(inbound.prepare(from: sender(200), strangersMayAsk: false) == .refused(409))
        #expect(inbound.open(upload(), from: fingerprint(200), now: start) == nil)
    }

    @Test(
        "uploads need the session, the file, its token and the certificate of the session",
        arguments: [
            ("1", "file 0", "2", 1, DeviceUploadSessions.UploadDecision.receive(index: 0)), ("1", "file 1", "3", 1, .receive(index: 1)),
            ("1", "file 0", "3", 1, .refused(403)), ("1", "file 0", "2", 2, .refused(403)), ("9", "file 0", "2", 1, .refused(403)),
            ("1", "file 9", "2", 1, .refused(403)), (nil, "file 0", "2", 1, .refused(400)), ("1", nil, "2", 1, .refused(400)),
            ("1", "file 0", nil, 1, .refused(400)),
        ] as [(String?, String?, String?, UInt8, DeviceUploadSessions.UploadDecision)])
    func uploads(session: String?, file: String?, token: String?, certificate: UInt8, decision: DeviceUploadSessions.UploadDecision) {
        var inbound = makeInbound()
        let opened = inbound.open(upload(2), from: fingerprint(1), now: start)
        #expect(opened?.id == "1" && opened?.tokens == ["2", "3"])
        #expect(inbound.upload(session: session, file: file, token: token, from: fingerprint(certificate), now: start) == decision)
    }

    private func receive(_ inbound: inout DeviceUploadSessions, _ index: Int, _ result: DeviceUploadSessions.UploadResult) -> (
        Int, DeviceUploadSessions.Ended?
    ) {
        let token = "\(index + 2)"
        switch inbound.upload(session: "1", file: "file \(index)", token: token, from: fingerprint(1), now: start) {
        case .refused(let status): return (status, nil)
        case .receive: return inbound.uploadEnded("1", index: index, result, now: start)
        }
    }

    @Test("a session ends when all files are stored or out of attempts") func ends() {
        var inbound = makeInbound()
        _ = inbound.open(upload(2), from: fingerprint(1), now: start)
        #expect(receive(&inbound, 0, .otherDigest).0 == 422)
        #expect(receive(&inbound, 0, .failed).0 == 500)
        let third = receive(&inbound, 0, .otherDigest)
        #expect(third.0 == 422 && third.1 == nil)
        #expect(receive(&inbound, 0, .stored).0 == 403, "three attempts in all")
        let last = receive(&inbound, 1, .stored)
        #expect(last.0 == 200 && last.1?.stored == [1])
        #expect(receive(&inbound, 1, .stored).0 == 403)
        #expect(inbound.nextDeadline == nil)
    }

    @Test("one upload of a file at a time, and none of a stored one") func once() {
        var inbound = makeInbound()
        _ = inbound.open(upload(2), from: fingerprint(1), now: start)
        #expect(inbound.upload(session: "1", file: "file 0", token: "2", from: fingerprint(1), now: start) == .receive(index: 0))
        #expect(inbound.upload(session: "1", file: "file 0", token: "2", from: fingerprint(1), now: start) == .refused(409))
        _ = inbound.uploadEnded("1", index: 0, .stored, now: start)
        #expect(inbound.upload(session: "1", file: "file 0", token: "2", from: fingerprint(1), now: start) == .refused(409))
    }

    @Test("a session without progress ends") func times() {
        var inbound = makeInbound()
        _ = inbound.open(upload(), from: fingerprint(1), now: start)
        #expect(inbound.nextDeadline == start + .seconds(60))
        #expect(inbound.progressed("1", now: start + .seconds(59)) == true)
        #expect(inbound.tick(now: start + .seconds(60)).isEmpty)
        #expect(inbound.nextDeadline == start + .seconds(119))
        #expect(inbound.tick(now: start + .seconds(119)).map(\.stored) == [[]])
        #expect(inbound.progressed("1", now: start + .seconds(119)) == false)
        #expect(inbound.nextDeadline == nil)
    }

    @Test("only the device of a session cancels it") func cancel() {
        var inbound = makeInbound()
        _ = inbound.open(upload(), from: fingerprint(1), now: start)
        #expect(inbound.cancel("1", from: fingerprint(2)) == nil && inbound.cancel(nil, from: fingerprint(2)) == nil)
        #expect(inbound.cancel("9", from: fingerprint(1)) == nil)
        #expect(inbound.upload(session: "1", file: "file 0", token: "2", from: fingerprint(1), now: start) == .receive(index: 0))
        #expect(inbound.cancel(nil, from: fingerprint(1))?.id == "1")
        #expect(inbound.uploadEnded("1", index: 0, .stored, now: start).status == 403)
    }
}
