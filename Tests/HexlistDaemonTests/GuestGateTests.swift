import HexlistModel
import HexlistSystem
import Testing

@testable import HexlistDaemon

@Suite("Guest gate") struct GuestGateTests {
    private func gate() throws -> GuestGate {
        GuestGate(
            port: 24_391, addresses: try ["192.168.7.20", "10.0.0.7", "fd00::7"].map { try #require(IPAddress($0)) }, hostName: "Ada")
    }

    private func status(_ head: GuestRequestHead) throws -> Int? {
        let gate = try gate()
        do throws(GuestRefusal) {
            try gate.check(head)
            return nil
        } catch {
            return error.status
        }
    }

    @Test(
        "the host is a numeric address or the mDNS name of this machine, with its port",
        arguments: [
            ("192.168.7.20:24391", nil), ("10.0.0.7:24391", nil), ("[fd00::7]:24391", nil), ("[FD00:0::7]:24391", nil),
            ("ada.local:24391", nil), ("ADA.LOCAL:24391", nil),
            (nil, 403), ("", 403), ("192.168.7.20", 403), ("192.168.7.20:80", 403), ("192.168.7.20:243910", 403),
            ("192.168.7.21:24391", 403),
            ("localhost:24391", 403), ("127.0.0.1:24391", 403), ("evil.example:24391", 403), ("ada:24391", 403),
            ("ada.local.evil:24391", 403),
            ("fd00::7:24391", 403), ("[192.168.7.20]:24391", 403), ("[fd00::7]24391", 403), ("192.168.7.20:24391:24391", 403),
            ("x@192.168.7.20:24391", 403), ("3232237332:24391", 403), ("0xc0a80714:24391", 403), (".local:24391", 403),
        ] as [(String?, Int?)])
    func hosts(_ host: String?, _ expected: Int?) throws {
        #expect(try status(GuestRequestHead(method: "GET", path: "/", host: host)) == expected)
    }

    private static let host = "192.168.7.20:24391"
    private static let own = "http://192.168.7.20:24391"

    @Test(
        "other origins, other sites and other methods are refused",
        arguments: [
            ("GET", "/", [], [], nil), ("HEAD", "/", [], [], nil), ("GET", "/", [own], [], nil), ("POST", "/g/join", [own], [], nil),
            ("DELETE", "/g/files/1", [own], [], nil), ("POST", "/g/join", [own], ["same-origin"], nil), ("GET", "/", [], ["none"], nil),
            ("POST", "/g/join", [], [], 403), ("DELETE", "/g/files/1", [], [], 403), ("GET", "/", ["http://evil.example"], [], 403),
            ("POST", "/g/join", ["null"], [], 403), ("POST", "/g/join", ["https://192.168.7.20:24391"], [], 403),
            ("POST", "/g/join", ["http://192.168.7.20"], [], 403), ("POST", "/g/join", ["http://10.0.0.7:24391"], [], 403),
            ("POST", "/g/join", [own, "http://evil.example"], [], 403), ("GET", "/", [], ["cross-site"], 403),
            ("GET", "/", [], ["same-site"], 403), ("GET", "/", [], ["none", "cross-site"], 403), ("OPTIONS", "/g/join", [own], [], 405),
            ("PUT", "/g/join", [own], [], 405), ("PATCH", "/", [], [], 405), ("TRACE", "/", [], [], 405),
        ] as [(String, String, [String], [String], Int?)])
    func sources(_ method: String, _ path: String, _ origins: [String], _ sites: [String], _ expected: Int?) throws {
        let head = GuestRequestHead(method: method, path: path, host: Self.host, origins: origins, sites: sites)
        #expect(try status(head) == expected)
    }

    @Test(
        "a shortcut sends POST without Origin; browsers and web sites are refused",
        arguments: [
            ("POST", host, [], [], nil), ("POST", "ada.local:24391", [], [], nil), ("POST", host, [], ["none"], nil),
            ("POST", host, [own], [], 403), ("POST", host, ["null"], [], 403), ("POST", host, [""], [], 403),
            ("POST", host, ["http://evil.example"], [], 403), ("POST", host, [], ["cross-site"], 403),
            ("POST", "evil.example:24391", [], [], 403), ("GET", host, [], [], 405), ("HEAD", host, [], [], 405),
            ("PUT", host, [], [], 405), ("OPTIONS", host, [], [], 405), ("GET", host, [own], [], 403),
        ] as [(String, String, [String], [String], Int?)])
    func drops(_ method: String, _ host: String, _ origins: [String], _ sites: [String], _ expected: Int?) throws {
        let (gate, head) = (
            try gate(), GuestRequestHead(method: method, path: "/drop/x", host: host, origins: origins, sites: sites)
        )
        var status: Int?
        do throws(GuestRefusal) { try gate.checkDrop(head) } catch { status = error.status }
        #expect(status == expected)
    }

    @Test("private IPv4 addresses of the default route come first; loopback and link-local ones never") func addresses() throws {
        func interface(_ name: String, _ addresses: [String], isLoopback: Bool = false) throws -> MachineInterface {
            MachineInterface(
                name: name, index: 1, isUp: true, isRunning: true, isLoopback: isLoopback, hasMulticast: true,
                addresses: try addresses.map {
                    InterfaceAddress(interface: name, index: 1, address: try #require(IPAddress($0)), prefixLength: 24)
                })
        }
        let interfaces = [
            try interface("lo", ["127.0.0.1", "::1"], isLoopback: true), try interface("tun0", ["10.8.0.2"]),
            try interface("docker0", ["172.17.0.1"]), try interface("eth0", ["203.0.113.5", "192.168.7.20", "2001:db8::5", "fe80::1"]),
        ]
        let list = { (listen: [String]) in
            GuestAddresses.list(interfaces, route: "eth0", listen: listen).map(\.description)
        }
        #expect(list([]) == ["192.168.7.20", "10.8.0.2", "203.0.113.5", "2001:db8::5"])
        #expect(list(["10.8.0.2"]) == ["10.8.0.2"] && list(["0.0.0.0"]) == list([]))
        #expect(list(["127.0.0.1"]).isEmpty)
    }
}
