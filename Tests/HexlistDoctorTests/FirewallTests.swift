import HexlistAPI
import Testing

@testable import HexlistDoctor

/// The firewall programs' output, and doctor's conclusions from it.
@Suite("The active firewall")
struct FirewallTests {
    private static let tcp = IncomingPort(carrier: .tcp, number: 24_391)
    private static let both = [tcp, .multicast]

    // MARK: Filtering chains

    private static let ruleset = """
        table inet filter {
        	set office {
        		type ipv4_addr
        		elements = { 10.0.0.1,
        			     10.0.0.2 }
        	}

        	chain input {
        		type filter hook input priority filter; policy accept;
        		iif "lo" accept
        		tcp dport { 22, 80 } accept
        	}

        	chain forward {
        		type filter hook forward priority filter; policy drop;
        	}

        	chain more {
        		drop
        	}
        }
        table ip guard {
        	chain in {
        		type filter hook input priority filter + 10; policy drop;
        	}

        	chain empty {
        		type filter hook input priority filter + 20; policy accept;
        	}
        }
        table ip6 filter {
        	chain INPUT {
        		type filter hook input priority filter; policy accept;
        		counter packets 0 bytes 0 drop
        	}
        }
        table bridge filter {
        	chain input {
        		type filter hook input priority filter; policy drop;
        	}
        }
        table ip nat {
        	chain in {
        		type nat hook input priority 100; policy accept;
        		tcp dport 1 accept
        	}
        }
        """

    @Test("an input chain filters if it has a rule or a dropping policy")
    func nft() {
        #expect(
            InputChain.nft(Self.ruleset) == [
                .nft(family: "inet", table: "filter", chain: "input"), .nft(family: "ip", table: "guard", chain: "in"),
                .iptables("ip6tables"),
            ])
        #expect(InputChain.nft("").isEmpty)
        #expect(InputChain.nft("}\n}\ntype filter hook input\nchain {\ntable {\n{").isEmpty)
    }

    @Test(
        "iptables filters if it has a rule or a dropping policy",
        arguments: [
            ("-P INPUT ACCEPT\n", false), ("", false), ("-P INPUT DROP\n", true),
            ("-P INPUT ACCEPT\n-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n", true),
        ])
    func iptables(text: String, filters: Bool) { #expect(InputChain.filters(iptables: text) == filters) }

    // MARK: Messages

    @Test("a port that a peer has reached needs no rule; nothing is wrong if all were reached")
    func seen() {
        let steps = [DoctorStep("reachable", .failed, "x"), DoctorStep("peer.dialBack", .ok, "x"), DoctorStep("multicast", .warning, "x")]
        #expect(Self.both.map { $0.isSeen(steps) } == [true, false])
        #expect(Self.both.map { $0.isSeen([]) } == [false, false])
        for firewall in [Firewall.ufw, .firewalld(zones: ["home"]), .unreadable(hasNft: true), .rules([.iptables("iptables")])] {
            let fine = firewall.step(needed: Self.both, unseen: [])
            #expect(
                fine.state == .ok && fine.advice.isEmpty && fine.message.hasSuffix("tcp port 24391, udp port 5353 were seen to be reached.")
            )
            let unseen = firewall.step(needed: Self.both, unseen: [.multicast])
            #expect(unseen.state == .warning && unseen.message.contains("udp port 5353 was not seen"))
            #expect(unseen.advice.contains { $0.contains("mdns") || $0.contains("5353") || $0.contains("nft list") })
            #expect(!unseen.advice.contains { $0.contains("24391") })
        }
        #expect(Firewall.ufw.step(needed: Self.both, unseen: Self.both).message.hasPrefix("ufw is active, and tcp port 24391, udp port"))
    }

    @Test("without a filtering chain there is no firewall, whether or not peers reached the port")
    func none() {
        #expect(Firewall.rules([]).step(needed: Self.both, unseen: Self.both).message == "No firewall filters incoming connections.")
        #expect(Firewall.rules([]).step(needed: Self.both, unseen: Self.both).state == .ok)
    }

    @Test("multicast DNS is checked only if multicast is used")
    func needed() {
        #expect(IncomingPort.needed(24_391, usesMulticast: true).map(\.text) == ["tcp port 24391", "udp port 5353"])
        #expect(IncomingPort.needed(24_391, usesMulticast: false).map(\.text) == ["tcp port 24391"])
    }

    @Test("the suggested commands")
    func lines() {
        #expect(Firewall.ufw.lines(for: Self.both) == ["sudo ufw prepend allow 24391/tcp", "sudo ufw prepend allow 5353/udp"])
        let home = Firewall.firewalld(zones: ["home"]).lines(for: Self.both)
        #expect(
            home == [
                "sudo firewall-cmd --zone=home --add-port=24391/tcp && sudo firewall-cmd --permanent --zone=home --add-port=24391/tcp",
                "sudo firewall-cmd --zone=home --add-service=mdns && sudo firewall-cmd --permanent --zone=home --add-service=mdns",
            ])
        let unknown = Firewall.firewalld(zones: []).lines(for: [Self.tcp])
        #expect(unknown.count == 2 && unknown[0].contains("--zone=ZONE ") && unknown[1] == "sudo firewall-cmd --get-active-zones")
        let chains: [InputChain] = [.nft(family: "inet", table: "f", chain: "in"), .iptables("iptables")]
        let rules = Firewall.rules(chains).lines(for: Self.both)
        #expect(
            rules.dropLast() == [
                "sudo nft insert rule inet f in tcp dport 24391 accept", "sudo iptables -I INPUT -p tcp --dport 24391 -j ACCEPT",
                "sudo nft insert rule inet f in udp dport 5353 accept", "sudo iptables -I INPUT -p udp --dport 5353 -j ACCEPT",
            ])
        // A rule added by hand is lost at the next restart.
        #expect(rules.last?.contains("restart") == true)
        #expect(Firewall.unreadable(hasNft: true).lines(for: [Self.tcp]).last?.hasSuffix("input tcp dport 24391 accept") == true)
        #expect(Firewall.unreadable(hasNft: false).lines(for: [Self.tcp]).last?.contains("sudo iptables -I INPUT -p tcp") == true)
    }
}
