import HexlistModel
import Testing

@testable import HexlistLocalSend

private let start = ContinuousClock.now

private func fingerprint(_ number: Int) -> Fingerprint {
    var bytes = [UInt8](repeating: 0, count: 32)
    (bytes[0], bytes[1]) = (UInt8(number >> 8), UInt8(number & 0xFF))
    guard let fingerprint = Fingerprint(bytes: bytes) else { preconditionFailure("32 bytes") }
    return fingerprint
}

private func address(_ text: String) -> IPAddress {
    guard let address = IPAddress(text) else { preconditionFailure(text) }
    return address
}

/// A directory with the network 10.0.0.0/24, and a clock.
private struct Lab {
    static let own = fingerprint(0xFFFF)
    var directory = DeviceDirectory(own: own)
    var now = start

    init() {
        _ = input(.interfaces([InterfaceAddress(interface: "eth0", index: 2, address: address("10.0.0.1"), prefixLength: 24)]))
        _ = pass(.seconds(10))  // after the burst of announcements at the start
    }

    mutating func input(_ input: DeviceDirectory.Input) -> [DeviceDirectory.Output] { directory.handle(input, now: now) }

    /// Lets time pass, with each tick that the directory asks for.
    mutating func pass(_ time: Duration) -> [DeviceDirectory.Output] {
        let end = now + time
        var outputs: [DeviceDirectory.Output] = []
        while let next = directory.nextDeadline, next <= end {
            now = max(now, next)
            outputs += directory.handle(.tick, now: now)
        }
        now = end
        return outputs
    }

    mutating func announce(
        _ device: Int, at host: String = "10.0.0.2", port: Int? = 53_317, scheme: DeviceInfo.Scheme = .https, name: String = "Pixel 9",
        hexlist: PeerID? = nil
    ) -> [DeviceDirectory.Output] {
        let info = DeviceInfo(
            alias: name, fingerprint: fingerprint(device), port: port, scheme: scheme, isAnnouncement: true, hexlist: hexlist)
        return input(.datagram(info, from: address(host)))
    }

    mutating func end(_ outputs: [DeviceDirectory.Output], _ result: (DeviceDial) -> DeviceDialResult) -> [DeviceDirectory.Output] {
        outputs.flatMap { output -> [DeviceDirectory.Output] in
            guard case .dial(let id, let dial) = output else { return [] }
            return input(.dialEnded(id, result(dial)))
        }
    }

    /// Announces a device that answers with its certificate.
    @discardableResult
    mutating func meet(_ device: Int, at host: String = "10.0.0.2", port: Int = 53_317) -> [DeviceDirectory.Output] {
        let outputs = announce(device, at: host, port: port)
        return end(outputs, Self.proof)
    }

    static func proof(_ dial: DeviceDial) -> DeviceDialResult {
        .proved(
            DeviceProof(fingerprint: dial.fingerprint, address: dial.endpoint.address),
            DeviceInfo(alias: "Pixel 9", fingerprint: dial.fingerprint))
    }

    func row(_ device: Int) -> DeviceRow? { directory.row(of: fingerprint(device), now: now) }
    var ghosts: [DeviceGhost.Reason] {
        directory.listing(now: now).compactMap { if case .ghost(let reason) = $0.state { reason } else { nil } }
    }
}

private func dials(_ outputs: [DeviceDirectory.Output]) -> [DeviceDial] {
    outputs.compactMap { if case .dial(_, let dial) = $0 { dial } else { nil } }
}

@Suite struct DeviceDirectoryTests {
    @Test("a device is listed once it proved its certificate") func proof() {
        var lab = Lab()
        let outputs = lab.announce(1)
        #expect(
            dials(outputs) == [
                DeviceDial(fingerprint: fingerprint(1), endpoint: DeviceEndpoint(address: address("10.0.0.2"), port: 53_317), name: "")
            ])
        #expect(lab.row(1) == nil)
        #expect(lab.end(outputs, Lab.proof).contains(.up(fingerprint(1))))
        #expect(lab.row(1)?.state == .verified && lab.row(1)?.endpoints.first?.port == 53_317)
        #expect(lab.ghosts.isEmpty)
    }

    @Test("a device proves itself by a request to this machine", arguments: [true, false]) func inbound(isRegister: Bool) {
        var lab = Lab()
        let info = DeviceInfo(alias: "Pixel 9", fingerprint: fingerprint(1), port: isRegister ? 4_000 : nil)
        let outputs = lab.input(.proved(DeviceProof(fingerprint: fingerprint(1), address: address("10.0.0.2")), info: info))
        #expect(outputs == [.up(fingerprint(1))])
        #expect(lab.row(1)?.endpoints == (isRegister ? [DeviceEndpoint(address: address("10.0.0.2"), port: 4_000)] : []))
    }

    @Test(
        "announcements that are ghosts",
        arguments: [
            ("10.0.0.2", 53_317, DeviceInfo.Scheme.http, 1, DeviceGhost.Reason.unencrypted),
            ("10.0.0.2", 80, .https, 1, .invalid), ("10.0.0.2", nil, .https, 1, .invalid), ("10.9.0.2", 53_317, .https, 1, .invalid),
            ("8.8.8.8", 53_317, .https, 1, .invalid), ("127.0.0.1", 53_317, .https, 1, .invalid), ("0.0.0.0", 53_317, .https, 1, .invalid),
        ] as [(String, Int?, DeviceInfo.Scheme, Int, DeviceGhost.Reason)])
    func ghosts(host: String, port: Int?, scheme: DeviceInfo.Scheme, device: Int, reason: DeviceGhost.Reason) {
        var lab = Lab()
        let outputs = lab.announce(device, at: host, port: port, scheme: scheme)
        #expect(dials(outputs).isEmpty && lab.ghosts == [reason])
        #expect(outputs.count == 1)
        #expect(lab.announce(device, at: host, port: port, scheme: scheme).isEmpty, "the event is reported once")
        _ = lab.pass(.seconds(301))
        #expect(lab.ghosts.isEmpty)
    }

    @Test("the own announcement is recognised, and not listed") func own() {
        var lab = Lab()
        #expect(lab.directory.ownHeard == nil)
        #expect(lab.announce(0xFFFF, at: "10.0.0.1").isEmpty && lab.ghosts.isEmpty && lab.directory.ownHeard == lab.now)
    }

    @Test("a Hexlist peer's announcement is left to Avahi") func hexlist() {
        var lab = Lab()
        #expect(lab.announce(1, hexlist: fingerprint(1).peerID).isEmpty && lab.ghosts.isEmpty)
    }

    @Test("a datagram that is no announcement") func malformed() {
        var lab = Lab()
        for number in 2..<250 { _ = lab.input(.datagram(nil, from: address("10.0.0.\(number)"))) }
        #expect(lab.ghosts.count == lab.directory.limits.ghosts && Set(lab.ghosts) == [.invalid])
    }

    @Test("another certificate than announced is an impostor and changes nothing about the device", arguments: [true, false])
    func impostor(isKnown: Bool) {
        var lab = Lab()
        if isKnown {
            _ = lab.input(.known([fingerprint(1): []]))
            lab.meet(1)
        }
        let before = lab.row(1)?.endpoints
        let outputs = lab.announce(1, at: "10.0.0.66", name: "Mallory")
        #expect(dials(outputs).map(\.endpoint.address) == [address("10.0.0.66")])
        let more = lab.end(outputs) { _ in .otherCertificate(fingerprint(2)) }
        #expect(!more.contains(.down(fingerprint(1))))
        #expect(lab.ghosts == [.impostor] && lab.row(1)?.endpoints == before)
        #expect(lab.row(1)?.state == (isKnown ? .verified : nil))
        let ghost = lab.directory.listing(now: lab.now).first { $0.state == .ghost(.impostor) }
        #expect(ghost?.name == (isKnown ? "Pixel 9" : "Mallory"))
        #expect(ghost?.why?.contains("00010000") == true && ghost?.why?.contains("00020000") == true)
    }

    @Test("the address of a device that answers stays, and changes when it does not") func moves() {
        var lab = Lab()
        lab.meet(1)
        lab.meet(1, at: "10.0.0.3")
        #expect(lab.row(1)?.endpoints.map(\.address) == [address("10.0.0.2"), address("10.0.0.3")])
        _ = lab.pass(.seconds(100))
        var outputs = lab.input(.looked)
        #expect(dials(outputs).map(\.endpoint.address) == [address("10.0.0.2")])
        outputs = lab.end(outputs) { _ in .failed("timeout") }
        #expect(dials(outputs).map(\.endpoint.address) == [address("10.0.0.3")])
        #expect(lab.row(1)?.state == .verified)
        _ = lab.end(outputs, Lab.proof)
        #expect(lab.row(1)?.state == .verified && lab.row(1)?.endpoints.map(\.address) == [address("10.0.0.3")])
        for number in 4..<40 {
            lab.meet(1, at: "10.0.0.\(number)")
            _ = lab.pass(.seconds(2))
        }
        #expect(lab.row(1)?.endpoints.count == lab.directory.limits.endpointsPerDevice)
    }

    @Test("a device is away after a failed probe, or 5 minutes after the last proof") func away() {
        var lab = Lab()
        lab.meet(1)
        #expect(lab.pass(.seconds(60)).isEmpty)
        #expect(dials(lab.input(.looked)).isEmpty, "the proof is fresh")
        _ = lab.pass(.seconds(60))
        let outputs = lab.end(lab.input(.looked)) { _ in .failed("timeout") }
        #expect(outputs == [.down(fingerprint(1))] && lab.row(1)?.state == .away)
        #expect(dials(lab.input(.looked)).isEmpty, "a device that is away announces itself when it is back")
        #expect(lab.meet(1).contains(.up(fingerprint(1))))
        #expect(lab.pass(.seconds(301)).isEmpty, "no timer runs while nobody looks")
        #expect(lab.row(1)?.state == .away)
        #expect(lab.input(.looked).contains(.down(fingerprint(1))))
    }

    @Test("all stale devices are probed, a few at a time") func probesAll() {
        var lab = Lab()
        for number in 2..<22 {
            lab.meet(number, at: "10.0.0.\(number)")
            _ = lab.pass(.milliseconds(100))
        }
        _ = lab.pass(.seconds(100))
        var (outputs, probed) = (lab.input(.looked), 0)
        while !dials(outputs).isEmpty {
            #expect(dials(outputs).count <= lab.directory.limits.dialsAtOnce - 1)
            probed += dials(outputs).count
            _ = lab.pass(.milliseconds(200))
            outputs = lab.end(outputs, Lab.proof)
        }
        #expect(probed == 20)
    }

    @Test("a device on the machine of a Hexlist peer is a duplicate") func duplicate() {
        var lab = Lab()
        let outputs = lab.end(lab.announce(1)) { dial in
            .proved(
                DeviceProof(fingerprint: dial.fingerprint, address: dial.endpoint.address, samePeer: "bob"),
                DeviceInfo(alias: "bob", fingerprint: dial.fingerprint))
        }
        #expect(!outputs.contains(.up(fingerprint(1))) && lab.row(1) == nil && lab.ghosts == [.duplicate])
    }

    @Test("bounds of dials") func bounds() {
        var lab = Lab()
        var outputs: [DeviceDirectory.Output] = []
        for number in 2..<200 { outputs += lab.announce(number, at: "10.0.0.\(number)") }
        #expect(dials(outputs).count == lab.directory.limits.dialsAtOnce - 1, "one is reserved for trusted devices")
        #expect(lab.ghosts.contains(.unverified))
        #expect(lab.announce(900, at: "10.0.0.2").contains { if case .dial = $0 { true } else { false } } == false, "one for each address")
        _ = lab.input(.known([fingerprint(901): [DeviceEndpoint(address: address("10.0.0.250"), port: 53_317)]]))
        #expect(dials(lab.announce(901, at: "10.0.0.251")).isEmpty, "a claim from another address")
        #expect(dials(lab.announce(901, at: "10.0.0.250")).count == 1)
        // Dials that end immediately do not reach the limit of concurrent dials, but their rate is limited.
        var fast = Lab()
        var count = 0
        for number in 2..<200 {
            let outputs = fast.announce(number, at: "10.0.0.\(number)")
            count += dials(outputs).count
            _ = fast.end(outputs) { _ in .failed("refused") }
        }
        #expect(count == fast.directory.limits.dialsPerSecond - 1)
    }

    @Test("an announcement from the same address and port soon after a proof causes no dial") func again() {
        var lab = Lab()
        lab.meet(1)
        #expect(lab.announce(1).isEmpty)
        _ = lab.pass(.seconds(3))
        #expect(dials(lab.announce(1)).count == 1)
    }

    @Test("devices in memory are bounded; strangers are evicted first") func memory() {
        var lab = Lab()
        let limit = lab.directory.limits.devices
        func proved(_ number: Int) -> DeviceDirectory.Input {
            .proved(
                DeviceProof(fingerprint: fingerprint(number), address: address("10.0.0.2")),
                info: DeviceInfo(alias: "a", fingerprint: fingerprint(number)))
        }
        _ = lab.input(.known([fingerprint(1): []]))
        for number in 1...(limit + 50) { _ = lab.input(proved(number)) }
        #expect(lab.directory.count == limit && lab.row(1) != nil && lab.row(limit + 50) != nil)
        _ = lab.input(.known(Dictionary(uniqueKeysWithValues: (1...(limit + 50)).map { (fingerprint($0), []) })))
        #expect(lab.input(proved(9_000)).isEmpty && lab.row(9_000) == nil, "trusted devices are never evicted")
    }

    @Test("a hiding machine announces nothing, and probes only trusted devices with waiting rows") func hiding() {
        var lab = Lab()
        _ = lab.input(.hiding(true))
        _ = lab.input(.known([fingerprint(1): [DeviceEndpoint(address: address("10.0.0.2"), port: 53_317)]]))
        #expect(!lab.input(.announce).contains(.announce) && !lab.pass(.seconds(10)).contains(.announce))
        #expect(!lab.input(.looked).contains(.announce))
        #expect(dials(lab.announce(2)).isEmpty && lab.ghosts == [.unverified])
        #expect(dials(lab.announce(1)).isEmpty)
        let outputs = lab.input(.waiting([fingerprint(1)]))
        #expect(!outputs.contains(.announce) && dials(outputs).count == 1)
        _ = lab.end(outputs) { _ in .failed("refused") }
        #expect(dials(lab.announce(1)).count == 1)
    }

    @Test("announcements: a burst, one when a user requests the list, one a minute while rows wait") func announcements() {
        var directory = DeviceDirectory(own: Lab.own)
        _ = directory.handle(.announce, now: start)
        var (sent, now) = ([Duration](), start)
        while let next = directory.nextDeadline {
            now = next
            if directory.handle(.tick, now: now).contains(.announce) { sent.append(now - start) }
        }
        #expect(sent == [.milliseconds(100), .milliseconds(600), .milliseconds(2_600)])
        #expect(!directory.handle(.looked, now: now + .seconds(29)).contains(.announce))
        #expect(directory.handle(.looked, now: now + .seconds(30)).contains(.announce))
        #expect(directory.nextDeadline == nil)
        now += .seconds(100)
        #expect(directory.handle(.waiting([fingerprint(1)]), now: now).contains(.announce))
        #expect(directory.nextDeadline == now + .seconds(60))
        #expect(directory.handle(.tick, now: now + .seconds(60)).contains(.announce))
        _ = directory.handle(.waiting([]), now: now + .seconds(61))
        #expect(directory.nextDeadline == nil)
    }

    @Test("a device for which rows wait is probed every 15 s") func waiting() {
        var lab = Lab()
        lab.meet(1)
        _ = lab.input(.waiting([fingerprint(1)]))
        var outputs = lab.pass(.seconds(16))
        #expect(dials(outputs).count == 1)
        _ = lab.end(outputs, Lab.proof)
        outputs = lab.pass(.seconds(16))
        #expect(dials(outputs).count == 1)
        _ = lab.end(outputs) { _ in .failed("timeout") }
        #expect(lab.row(1)?.state == .away)
        #expect(dials(lab.pass(.seconds(120))).isEmpty)
    }

    @Test func datagramLimit() {
        var limit = SourceRateLimit.datagrams
        let sources = (0..<1_000).map { address("10.0.\($0 >> 8).\($0 & 255)") }
        #expect((0..<10_000).count { _ in limit.take(from: sources[0], now: start) } == limit.perSource)
        #expect(limit.take(from: sources[1], now: start) == true, "another host is not hidden")
        #expect(sources.count { limit.take(from: $0, now: start) } == limit.perSecond - limit.perSource - 1)
        #expect(limit.take(from: sources[0], now: start + .seconds(1)) == true)
    }
}
