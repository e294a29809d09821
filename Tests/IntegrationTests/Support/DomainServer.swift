import Foundation

/// dnsmasq on a host of a lab: the DNS server of a company, with a zone of its own.
struct DomainServer: Sendable {
    static let domain = "corp.example"
    /// Seconds; the shortest time hexlistd asks again after.
    static let seconds = 5

    static let isInstalled = Program.path(of: "dnsmasq") != nil

    private let running: RunningCommand

    /// One peer in the zone.
    struct Entry: Sendable {
        var name: String
        var uuid: String
        var port: Int
        var addresses: [String]
    }

    /// Runs it, and returns once it answers.
    static func start(on host: String, _ entries: [Entry], folder: TemporaryFolder, of lab: Lab) async throws -> DomainServer {
        var lines = [
            "no-resolv", "no-hosts", "no-poll", "user=root", "group=root", "pid-file=", "bind-interfaces", "local=/\(domain)/",
            "local-ttl=\(seconds)", "log-facility=-",
        ]
        for entry in entries {
            let instance = "\(entry.name)._hexlist._tcp.\(domain)"
            lines += [
                "ptr-record=_hexlist._tcp.\(domain),\"\(instance)\"", "srv-host=\(instance),\(entry.name).\(domain),\(entry.port)",
                "txt-record=\(instance),txtvers=1,id=\(entry.uuid)",
                "host-record=\(entry.name).\(domain),\(entry.addresses.joined(separator: ","))",
            ]
        }
        try folder.write(lines.joined(separator: "\n") + "\n", to: "dnsmasq.conf")
        let running = try lab.running(
            ["exec", host, "dnsmasq", "--keep-in-foreground", "--conf-file=\(folder.path)/dnsmasq.conf"], seconds: 280)
        _ = try await running.first { $0.contains("started") ? true : nil }
        return DomainServer(running: running)
    }

    func stop() async { await running.stop() }

    /// The host asks the server from now on, and no other.
    static func use(_ address: String, on host: String, folder: TemporaryFolder, of lab: Lab) async throws {
        try folder.write("nameserver \(address)\noptions timeout:1 attempts:1\n", to: "resolv-\(host)")
        try await lab.run(["exec", host, "mount", "--bind", "\(folder.path)/resolv-\(host)", "/etc/resolv.conf"])
    }
}
