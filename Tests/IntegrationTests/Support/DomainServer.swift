import Foundation

/// A company's DNS server on a host of a lab, with its own zone.
struct DomainServer: Sendable {
    static let domain = "corp.example"
    /// Seconds: the shortest interval at which hexlistd repeats a query.
    static let seconds = 5

    enum Program: String, Sendable {
        case dnsmasq, bind

        var isInstalled: Bool { IntegrationTests.Program.path(of: self == .bind ? "named" : "dnsmasq") != nil }
    }

    private let running: RunningCommand

    struct Entry: Sendable {
        var name: String
        var uuid: String
        var port: Int
        var addresses: [String]
    }

    /// Runs the server, and returns once it answers.
    /// - Parameter seconds: the TTL of dnsmasq's answers.
    static func start(
        _ program: Program = .dnsmasq, on host: String, _ entries: [Entry], seconds: Int = DomainServer.seconds,
        folder: TemporaryFolder, of lab: Lab
    ) async throws -> DomainServer {
        switch program {
        case .dnsmasq: return try await startDnsmasq(on: host, entries, seconds, folder, lab)
        case .bind: return try await startBind(on: host, zone: entries.map(zone).joined(), folder: folder, of: lab)
        }
    }

    private static func startDnsmasq(
        on host: String, _ entries: [Entry], _ seconds: Int, _ folder: TemporaryFolder, _ lab: Lab
    ) async throws -> DomainServer {
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
            ["exec", host, "dnsmasq", "--keep-in-foreground", "--conf-file=\(folder.path)/dnsmasq.conf"], seconds: Patience.server)
        _ = try await running.first { $0.contains("started") ? true : nil }
        return DomainServer(running: running)
    }

    // MARK: bind

    /// - Parameters:
    ///   - zone: records of the domain in zone file syntax, without SOA and NS.
    ///   - options: additional lines of named.conf.
    static func startBind(
        on host: String, zone: String, options: String = "", folder: TemporaryFolder, of lab: Lab
    ) async throws -> DomainServer {
        try folder.write(
            """
            $TTL \(seconds)
            @ SOA ns hostmaster 1 3600 600 86400 \(seconds)
            @ NS ns
            ns A 10.78.1.1
            \(zone)
            """, to: "zone")
        try folder.write(
            """
            options {
                directory "\(folder.path)"; pid-file none; session-keyfile none; managed-keys-directory "\(folder.path)";
                listen-on { any; }; listen-on-v6 { any; }; recursion no; dnssec-validation no; notify no;
            };
            controls { };
            zone "\(domain)" { type primary; file "zone"; };
            \(options)

            """, to: "named.conf")
        let running = try lab.running(
            ["exec", host, "named", "-g", "-n", "1", "-c", "\(folder.path)/named.conf"], seconds: Patience.server)
        _ = try await running.first { $0.hasSuffix(" running") ? true : nil }
        return DomainServer(running: running)
    }

    /// The records of one peer, as an administrator writes them.
    static func zone(_ entry: Entry) -> String {
        let addresses = entry.addresses.map { "\(entry.name) \($0.contains(":") ? "AAAA" : "A") \($0)\n" }.joined()
        return """
            _hexlist._tcp PTR \(entry.name)._hexlist._tcp
            \(entry.name)._hexlist._tcp SRV 0 0 \(entry.port) \(entry.name)
            \(entry.name)._hexlist._tcp TXT "txtvers=1" "id=\(entry.uuid)"
            \(addresses)
            """
    }

    func stop() async { await running.stop() }

    /// Makes this server the host's only resolver.
    static func use(_ address: String, on host: String, folder: TemporaryFolder, of lab: Lab) async throws {
        try folder.write("nameserver \(address)\noptions timeout:1 attempts:1\n", to: "resolv-\(host)")
        // A link into /run is dangling there, because each host has its own /run.
        let script = """
            place=$(readlink -m /etc/resolv.conf)
            case $place in /run/*) mkdir -p "${place%/*}"; : >> "$place" ;; esac
            mount --bind "$1" "$place"
            """
        try await lab.run(["exec", host, "sh", "-ec", script, "sh", "\(folder.path)/resolv-\(host)"])
    }
}
