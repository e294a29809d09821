import Foundation
import Testing

extension TroubledNetworks {
    /// Firewalls with their distributions' default rules, each on its own host: a peer that dials back shows which ports are blocked, the
    /// firewall is named, and the suggested commands work.
    @Suite("Firewalls")
    struct Firewalls {
        private static let ufw = Program.path(of: "ufw")
        private static let firewalld = Program.path(of: "firewalld")
        private static let nft = Program.path(of: "nft")

        /// h1 runs the firewall. Both hosts know and trust each other.
        private static func with(_ test: (_ lab: Lab, _ port: Int, _ peer: String) async throws -> Void) async throws {
            try await Lab.with("h1", "h2") { lab in
                let uuid = try await lab.startAndSettle()
                try await lab.trustEachOther(("h1", uuid.one), ("h2", uuid.other))
                try await test(lab, try await lab.status("h1").port, uuid.other)
            }
        }

        private static func doctor(_ peer: String, expecting status: Int32, of lab: Lab) async throws -> DoctorRow {
            let rows: [DoctorRow] = try await lab.rows("h1", "doctor", "--peer", peer, expecting: status)
            return try #require(rows.first)
        }

        /// Runs doctor, finds failing steps, runs the suggested commands, and checks again.
        private static func mend(
            _ lab: Lab, peer: String, failing steps: [String], message: [String], with lines: [String]
        ) async throws {
            let report = try await doctor(peer, expecting: 1, of: lab)
            #expect(report.failed == steps)
            let step = try #require(report.step("firewall"))
            #expect(step.state == "warning")
            for text in message { #expect(step.message.contains(text), "\(step.message)") }
            let advice = (step.advice ?? []).filter { $0.hasPrefix("sudo ") }
            #expect(advice == lines)
            for line in advice { try await paste(line, lab) }
            let healed = try await doctor(peer, expecting: 0, of: lab)
            #expect(healed.failed.isEmpty && healed.step("firewall")?.state == "ok")
        }

        /// Runs a printed command unchanged. `sudo` is a function that runs its arguments, because the test is root on this host.
        private static func paste(_ line: String, _ lab: Lab) async throws { try await shell(#"sudo() { "$@"; }; "# + line, lab) }

        @discardableResult
        private static func shell(_ script: String, _ lab: Lab) async throws -> Command.Output {
            try await lab.run(["exec", "h1", "sh", "-ec", script])
        }

        // MARK: ufw

        @Test(
            "ufw with default rules, then closed for multicast DNS, then with a deny rule",
            .enabled(if: ufw != nil && geteuid() == 0, "needs ufw, and root"))
        func uncomplicated() async throws {
            try await Self.with { lab, port, peer in
                // From here on, the files of ufw are the host's own, as installed by the package.
                let fresh = """
                    for folder in ufw default; do cp -a /etc/$folder /run/etc-$folder; mount --bind /run/etc-$folder /etc/$folder; done
                    ufw --force reset; ufw --force enable
                    """
                try await Self.shell(fresh, lab)
                let port = "\(port)/tcp"
                let open = "sudo ufw prepend allow \(port)"
                let blocked = ["reachable", "peer.dialBack"]
                // ufw has its own rules for multicast DNS.
                try await Self.mend(
                    lab, peer: peer, failing: blocked, message: ["ufw is active, and tcp port \(port.dropLast(4)) was not"], with: [open])
                try await Self.shell("sed -i /5353/d /etc/ufw/before.rules /etc/ufw/before6.rules; ufw reload", lab)
                try await Self.mend(
                    lab, peer: peer, failing: ["multicast"], message: ["ufw is active, and udp port 5353 was not"],
                    with: ["sudo ufw prepend allow 5353/udp"])
                // A deny rule for more than the port comes before later allow rules.
                try await Self.shell("ufw delete allow \(port); ufw deny 20000:30000/tcp", lab)
                try await Self.mend(lab, peer: peer, failing: blocked, message: ["ufw is active"], with: [open])
            }
        }

        // MARK: firewalld

        @Test(
            "firewalld: the interface's zone counts, the default one or another",
            .enabled(if: firewalld != nil && geteuid() == 0, "needs firewalld, and root"))
        func zones() async throws {
            try await Self.with { lab, port, peer in
                try await Self.shell("mkdir /run/firewalld-etc; mount --bind /run/firewalld-etc /etc/firewalld", lab)
                let running = try lab.running(
                    ["exec", "h1", try #require(Self.firewalld), "--nofork", "--nopid"], seconds: Patience.server)
                let isUp = "for i in $(seq \(5 * Patience.state)); do if firewall-cmd --state; then exit 0; fi; sleep 0.2; done; exit 1"
                try await Self.shell(isUp, lab)
                let lines = { (zone: String) in
                    ["--add-port=\(port)/tcp", "--add-service=mdns"].map {
                        "sudo firewall-cmd --zone=\(zone) \($0) && sudo firewall-cmd --permanent --zone=\(zone) \($0)"
                    }
                }
                let all = ["multicast", "reachable", "peer.dialBack"]
                try await Self.mend(
                    lab, peer: peer, failing: all, message: ["firewalld is active, and tcp port \(port), udp port 5353 were not"],
                    with: lines("public"))
                // The rule must be permanent too.
                try await Self.shell("firewall-cmd --reload", lab)
                _ = try await Self.doctor(peer, expecting: 0, of: lab)
                // Another zone permits multicast DNS. The default zone is unchanged.
                try await Self.shell("firewall-cmd --zone=home --change-interface=eth0", lab)
                try await Self.mend(
                    lab, peer: peer, failing: ["reachable", "peer.dialBack"],
                    message: ["firewalld is active, and tcp port \(port) was not"],
                    with: [lines("home")[0]])
                try await Self.shell("firewall-cmd --zone=trusted --change-interface=eth0", lab)
                _ = try await Self.doctor(peer, expecting: 0, of: lab)
                await running.stop()
            }
        }

        // MARK: nftables

        @Test(
            "nftables with hand-written rules: a command for each filtering chain",
            .enabled(if: nft != nil, "needs nft (Scripts/setup installs it)"))
        func byHand() async throws {
            try await Self.with { lab, port, peer in
                // Debian's example for workstations, and a second table for one IP version.
                let rules = """
                    flush ruleset
                    table inet filter {
                        chain input {
                            type filter hook input priority 0; policy accept;
                            iif lo accept
                            ct state established,related accept
                            meta l4proto { icmp, ipv6-icmp } accept
                            tcp dport { ssh } accept
                            ip6 daddr ff02::fb udp dport 5353 accept
                            drop
                        }
                    }
                    table ip guard {
                        chain in {
                            type filter hook input priority 10; policy accept;
                            iifname "eth*" ct state new tcp dport 20000-30000 reject with tcp reset
                        }
                    }
                    """
                try await lab.run(["exec", "h1", try #require(Self.nft), "-f", "-"], input: Array(rules.utf8))
                try await Self.mend(
                    lab, peer: peer, failing: ["multicast", "reachable", "peer.dialBack"],
                    message: ["filtered by inet filter input, ip guard in, and tcp port \(port), udp port 5353 were not"],
                    with: [
                        "sudo nft insert rule inet filter input tcp dport \(port) accept",
                        "sudo nft insert rule ip guard in tcp dport \(port) accept",
                        "sudo nft insert rule inet filter input udp dport 5353 accept",
                        "sudo nft insert rule ip guard in udp dport 5353 accept",
                    ])
            }
        }
    }
}
