import HexlistDiscovery
import Testing

@testable import HexlistDNS

@Suite("Looking up services of a domain")
struct ServiceLookupTests {
    private static let services = DNSName.of("_hexlist._tcp.corp.example")
    private static let instance = DNSName.of("ada._hexlist._tcp.corp.example")

    /// A lookup that is answered from a zone, with the answers by name. Other names do not exist.
    private static func lookup(_ zone: [String: Answer]) -> ServiceLookup {
        ServiceLookup { name, type in
            guard let answer = zone["\(name) \(type)"] else { return .none }
            return answer.message.map { .found($0, seconds: $0.seconds) } ?? .failed("unreadable")
        }
    }

    @Test("instances of the domain are listed once; those of other domains and owners are not listed")
    func browse() {
        var answer = Answer(count: 5)
        answer.add(12, ttl: [0, 0, 0, 30], Answer.label("ada") + [0xC0, 12])
        answer.add(12, Answer.label("ada") + [0xC0, 12])
        answer.add(12, Answer.name("eve._hexlist._tcp.evil.example"))
        answer.add(12, Answer.label("deep") + Answer.label("er") + [0xC0, 12])
        answer.add(12, at: Answer.name("other.example"), Answer.label("bob") + [0xC0, 12])
        let outcome = Self.lookup(["_hexlist._tcp.corp.example. pointer": answer]).browse(Self.services)
        #expect(outcome == .found([Array("ada".utf8)], seconds: 30))
        #expect(Self.lookup([:]).browse(Self.services) == .none)
    }

    @Test("SRV, TXT and all addresses make resolutions in a stable order, through aliases and by priority")
    func resolve() {
        var service = Answer(count: 2, question: "ada._hexlist._tcp.corp.example")
        service.add(33, Answer.service(1, Answer.name("second.corp.example"), priority: 10))
        service.add(33, Answer.service(24_391, Answer.name("ada.corp.example")))
        var text = Answer(count: 1, question: "ada._hexlist._tcp.corp.example")
        text.add(16, Answer.label("id=x"))
        var addresses = Answer(count: 4, question: "ada.corp.example")
        addresses.add(5, Answer.name("host.corp.example"))
        addresses.add(1, at: Answer.name("host.corp.example"), [10, 2, 0, 2])
        addresses.add(1, at: Answer.name("HOST.corp.example"), ttl: [0, 0, 0, 9], [10, 1, 0, 2])
        addresses.add(1, at: Answer.name("stranger.example"), [10, 9, 9, 9])
        var six = Answer(count: 1, question: "ada.corp.example")
        six.add(28, [0xFD] + [UInt8](repeating: 0, count: 14) + [2])
        let outcome = Self.lookup([
            "\(Self.instance) service": service, "\(Self.instance) text": text, "ada.corp.example. address": addresses,
            "ada.corp.example. address6": six,
        ]).resolve(Self.instance)
        let expected = ["10.1.0.2", "10.2.0.2", "fd00::2"].map {
            Resolution(host: "ada.corp.example.", address: $0, port: 24_391, txt: [Array("id=x".utf8)])
        }
        #expect(outcome == .found(expected, seconds: 9))
    }

    @Test("a missing SRV record, the target `.` and a missing address mean no service; a failure is an error")
    func nothing() {
        #expect(Self.lookup([:]).resolve(Self.instance) == .none)
        var root = Answer(count: 1, question: "ada._hexlist._tcp.corp.example")
        root.add(33, Answer.service(24_391, [0]))
        #expect(Self.lookup(["\(Self.instance) service": root]).resolve(Self.instance) == .none)
        var service = Answer(count: 1, question: "ada._hexlist._tcp.corp.example")
        service.add(33, Answer.service(24_391, Answer.name("ada.corp.example")))
        #expect(Self.lookup(["\(Self.instance) service": service]).resolve(Self.instance) == .none)
        let failing = ServiceLookup { _, type in
            type == .service ? service.message.map { .found($0, seconds: 1) } ?? .none : .failed("no server")
        }
        #expect(failing.resolve(Self.instance) == .failed("no server"))
    }

    @Test("instances of a domain and addresses of a host are bounded")
    func bounds() {
        var answer = Answer(count: 1_500)
        for number in 0..<1_500 { answer.add(12, Answer.label("n\(number)") + [0xC0, 12]) }
        guard case .found(let labels, _) = Self.lookup(["_hexlist._tcp.corp.example. pointer": answer]).browse(Self.services) else {
            Issue.record("not found")
            return
        }
        #expect(labels.count == ServiceLookup.instances)
        var service = Answer(count: 1, question: "ada._hexlist._tcp.corp.example")
        service.add(33, Answer.service(24_391, Answer.name("ada.corp.example")))
        var addresses = Answer(count: 30, question: "ada.corp.example")
        for number in 0..<30 { addresses.add(1, [10, 0, 0, UInt8(number)]) }
        let outcome = Self.lookup(["\(Self.instance) service": service, "ada.corp.example. address": addresses]).resolve(Self.instance)
        guard case .found(let resolutions, _) = outcome else {
            Issue.record("not found")
            return
        }
        #expect(resolutions.count == ServiceLookup.addresses)
    }
}
