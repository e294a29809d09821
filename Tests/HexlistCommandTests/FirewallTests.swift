import Testing

@testable import hexlist

/// Rules as the programs print them, and what becomes of a packet from outside.
@Suite("Firewall rules")
struct FirewallTests {
    private static let tcp = IncomingPacket(carrier: .tcp, port: 24_391, isIPv6: false)
    private static let tcp6 = IncomingPacket(carrier: .tcp, port: 24_391, isIPv6: true)
    private static let mdns = IncomingPacket(carrier: .udp, port: 5_353, isIPv6: false)
    private static let mdns6 = IncomingPacket(carrier: .udp, port: 5_353, isIPv6: true)
    private static let onEthernet = IncomingPacket(carrier: .tcp, port: 24_391, isIPv6: false, interface: "eth0")

    // MARK: nft

    private static func ruleset(policy: String = "accept", family: String = "inet", _ rules: String...) -> [UInt8] {
        let chain = #"{"chain":{"family":"\#(family)","table":"f","name":"in","type":"filter","hook":"input","policy":"\#(policy)"}}"#
        let more = #"{"chain":{"family":"\#(family)","table":"f","name":"more"}}"#
        let written = rules.enumerated().map { number, rule in
            let chain = rule.hasPrefix("more ") ? "more" : "in"
            let expressions = rule.hasPrefix("more ") ? String(rule.dropFirst(5)) : rule
            return #"{"rule":{"family":"\#(family)","table":"f","chain":"\#(chain)","handle":\#(number),"expr":[\#(expressions)]}}"#
        }
        let objects =
            ([#"{"metainfo":{"json_schema_version":1}}"#, #"{"table":{"family":"\#(family)","name":"f"}}"#, chain, more] + written)
        return Array(#"{"nftables":[\#(objects.joined(separator: ","))]}"#.utf8)
    }

    private static func match(_ left: String, _ right: String, op: String = "==") -> String {
        #"{"match":{"op":"\#(op)","left":\#(left),"right":\#(right)}}"#
    }

    private static let dport = #"{"payload":{"protocol":"tcp","field":"dport"}}"#
    private static let state = #"{"ct":{"key":"state"}}"#
    private static let (accept, drop) = (#"{"accept":null}"#, #"{"drop":null}"#)

    @Test(
        "what an nftables chain does with the first packet of a connection",
        arguments: [
            (ruleset(), .open),
            (ruleset(policy: "drop"), .blocked),
            (ruleset(policy: "drop", "\(match(dport, "24391")),\(accept)"), .open),
            (ruleset(policy: "drop", #"\#(match(dport, #"{"set":[22,{"range":[24000,25000]}]}"#)),\#(accept)"#), .open),
            (ruleset(policy: "drop", #"\#(match(dport, #"{"set":[22,{"range":[24000,24100]}]}"#)),\#(accept)"#), .blocked),
            (ruleset("\(match(dport, "24391")),\(drop)"), .blocked),
            (ruleset(#"\#(match(dport, "24391")),{"reject":{"type":"tcpreset"}}"#), .blocked),
            (ruleset("\(match(dport, "22", op: "!=")),\(drop)"), .blocked),
            (ruleset(#"\#(match(#"{"payload":{"protocol":"udp","field":"dport"}}"#, "24391")),\#(drop)"#), .open),
            // What is let in is not what is to be told here.
            (ruleset(policy: "drop", #"\#(match(state, #"["established","related"]"#, op: "in")),\#(accept)"#), .blocked),
            (ruleset(policy: "drop", #"\#(match(state, #"["established","new"]"#, op: "in")),\#(accept)"#), .open),
            (ruleset(policy: "drop", #"\#(match(#"{"meta":{"key":"iif"}}"#, #""lo""#)),\#(accept)"#), .blocked),
            (ruleset(policy: "drop", #"\#(match(#"{"meta":{"key":"l4proto"}}"#, #""tcp""#)),\#(accept)"#), .open),
            // By sender, by interface, by rate, by a set: nobody can tell.
            (
                ruleset(
                    policy: "drop",
                    #"\#(match(#"{"payload":{"protocol":"ip","field":"saddr"}}"#, #"{"prefix":{"addr":"10.0.0.0","len":8}}"#)),\#(accept)"#),
                .unsure
            ),
            (ruleset(policy: "drop", #"\#(match(#"{"meta":{"key":"iifname"}}"#, #""eth0""#)),\#(accept)"#), .unsure),
            (ruleset(#"\#(match(dport, #""@closed""#)),\#(drop)"#), .unsure),
            (ruleset(policy: "drop", #"{"limit":{"rate":10,"per":"second"}},\#(accept)"#), .unsure),
            (ruleset(#"{"xt":{"type":"match","name":"x"}}"#), .unsure),
            // A sure rule behind an unsure one of the same mind.
            (ruleset(#"\#(match(#"{"meta":{"key":"mark"}}"#, "1")),\#(accept)"#, accept), .open),
            // Other chains.
            (ruleset(policy: "drop", #"{"jump":{"target":"more"}}"#, "more \(match(dport, "24391")),\(accept)"), .open),
            (ruleset(#"{"jump":{"target":"more"}}"#, accept, "more \(drop)"), .blocked),
            (ruleset(policy: "drop", #"{"jump":{"target":"more"}}"#, accept, #"more {"return":null}"#, "more \(drop)"), .open),
            (ruleset(policy: "drop", #"{"goto":{"target":"more"}}"#, accept, #"more {"counter":null}"#), .blocked),
            (ruleset(#"{"jump":{"target":"nowhere"}}"#), .unsure),
            (ruleset(#"{"jump":{"target":"in"}}"#), .unsure),  // round in circles
            // Maps.
            (
                ruleset(
                    policy: "drop",
                    #"{"vmap":{"key":\#(state),"data":{"set":[["established",\#(accept)],["new",\#(accept)]]}}}"#), .open
            ),
            (ruleset(#"{"vmap":{"key":\#(dport),"data":{"set":[[22,\#(accept)],[24391,\#(drop)]]}}}"#), .blocked),
            (ruleset(#"{"vmap":{"key":\#(dport),"data":"@ports"}}"#), .unsure),
        ] as [([UInt8], FilterChains.Verdict)])
    func nft(json: [UInt8], expected: FilterChains.Verdict) throws {
        let findings = try #require(NftRules.findings(json, packet: Self.tcp))
        #expect(findings.map(\.verdict) == [expected], "\(String(decoding: json, as: UTF8.self))")
        #expect(findings.first?.line(for: Self.tcp) == "sudo nft insert rule inet f in tcp dport 24391 accept")
    }

    private static let fib = #"{"fib":{"result":"type","flags":["daddr"]}}"#
    private static let daddr = #"{"payload":{"protocol":"ip","field":"daddr"}}"#
    private static let daddr6 = #"{"payload":{"protocol":"ip6","field":"daddr"}}"#
    private static let iifname = #"{"meta":{"key":"iifname"}}"#
    private static let exthdr = #"{"exthdr":{"name":"frag"}}"#
    private static let ipsec = #"{"rt":{"key":"ipsec"}}"#
    private static func prefix(_ address: String, _ length: Int) -> String {
        #"{"prefix":{"addr":"\#(address)","len":\#(length)}}"#
    }

    @Test(
        "where a packet comes in and goes to counts, as far as it is known",
        arguments: [
            (onEthernet, match(iifname, #""eth0""#), .yes), (onEthernet, match(iifname, #""eth*""#), .yes),
            (onEthernet, match(iifname, #""eth1""#), .no), (onEthernet, match(iifname, #"{"set":["lo","wlan0"]}"#), .no),
            (onEthernet, match(iifname, #""eth1""#, op: "!="), .yes), (tcp, match(iifname, #""eth1""#), .maybe),
            (onEthernet, match(iifname, "7"), .maybe),
            (tcp, match(fib, #""local""#), .yes), (mdns, match(fib, #""local""#), .no), (mdns, match(fib, #""multicast""#), .yes),
            (tcp, match(fib, #"{"set":["broadcast","multicast"]}"#), .no), (tcp, match(fib, #""whatever""#), .maybe),
            (tcp, match(#"{"fib":{"result":"oif","flags":["saddr","iif"]}}"#, "0"), .maybe),
            (mdns, match(daddr, #""224.0.0.251""#), .yes), (mdns, match(daddr, #""224.0.0.252""#), .no),
            (mdns, match(daddr, prefix("224.0.0.0", 4)), .yes), (mdns, match(daddr, prefix("239.0.0.0", 8)), .no),
            (mdns, match(daddr, #"{"set":["10.0.0.1",\#(prefix("224.0.0.0", 24))]}"#), .yes),
            (mdns, match(daddr, prefix("224.0.0.0", 99)), .maybe), (mdns, match(daddr, #"{"range":["224.0.0.0","224.0.0.255"]}"#), .maybe),
            (mdns, match(daddr6, #""ff02::fb""#), .no), (mdns6, match(daddr6, #""ff02::fb""#), .yes),
            (mdns6, match(daddr6, prefix("ff00::", 9)), .yes), (mdns6, match(daddr6, prefix("fe80::", 10)), .no),
            (tcp, match(daddr, #""10.0.0.1""#), .maybe), (tcp, match(daddr, prefix("224.0.0.0", 4)), .no),
            (tcp6, match(daddr6, #""ff02::1""#), .no), (tcp, match(daddr, prefix("0.0.0.0", 0)), .yes),
            (tcp, match(#"{"meta":{"key":"pkttype"}}"#, #""host""#), .yes),
            (mdns, match(#"{"meta":{"key":"pkttype"}}"#, #"{"set":["broadcast","multicast"]}"#), .yes),
            (tcp, match(#"{"ct":{"key":"status"}}"#, #""dnat""#, op: "in"), .no),
            // Headers an ordinary packet does not have: neither equal nor different, but missing.
            (tcp6, match(#"{"exthdr":{"name":"rt","field":"type"}}"#, "0"), .no),
            (tcp6, match(#"{"exthdr":{"name":"rt","field":"type"}}"#, "0", op: "!="), .no),
            (tcp6, match(exthdr, "true"), .no), (tcp6, match(exthdr, "false"), .yes), (tcp6, match(exthdr, "true", op: "!="), .yes),
            (tcp, match(ipsec, "true"), .no), (tcp, match(ipsec, "false"), .yes),
            (tcp, match(#"{"rt":{"key":"classid"}}"#, #""1""#), .maybe),
            (tcp, #"{"vmap":{"key":\#(exthdr),"data":{"set":[[false,\#(drop)],[true,\#(accept)]]}}}"#, .yes),
            (tcp, match(#"{"payload":{"protocol":"udp","field":"dport"}}"#, "53", op: "!="), .no),
            (tcp, match(#"{"payload":{"protocol":"ip6","field":"saddr"}}"#, #""fe80::1""#, op: "!="), .no),
            (tcp6, match(#"{"payload":{"protocol":"ip","field":"protocol"}}"#, #""tcp""#), .no),
            (tcp, match(#"{"payload":{"protocol":"ip","field":"protocol"}}"#, #""tcp""#), .yes),
        ] as [(IncomingPacket, String, RuleMatch)])
    func destinations(packet: IncomingPacket, json: String, expected: RuleMatch) throws {
        let findings = try #require(NftRules.findings(Self.ruleset("\(json),\(Self.drop)"), packet: packet))
        let verdicts: [RuleMatch: FilterChains.Verdict] = [.yes: .blocked, .no: .open, .maybe: .unsure]
        #expect(findings.map(\.verdict) == [verdicts[expected]])
    }

    @Test("tables of one IP version concern that one only, and no input chain filters nothing")
    func families() throws {
        let four = Self.ruleset(policy: "drop", family: "ip")
        #expect(NftRules.findings(four, packet: Self.tcp)?.map(\.verdict) == [.blocked])
        #expect(NftRules.findings(four, packet: Self.tcp6)?.isEmpty == true)
        let saddr = Self.match(#"{"payload":{"protocol":"ip","field":"saddr"}}"#, #""10.0.0.1""#)
        #expect(NftRules.findings(Self.ruleset("\(saddr),\(Self.drop)"), packet: Self.tcp6)?.map(\.verdict) == [.open])
        #expect(NftRules.findings(Array(#"{"nftables":[{"metainfo":{}}]}"#.utf8), packet: Self.tcp)?.isEmpty == true)
        for odd in ["", "[]", "{}", #"{"nftables":{}}"#] { #expect(NftRules.findings(Array(odd.utf8), packet: Self.tcp) == nil) }
        // Objects of no known form are passed over, and what they belong to is not sure.
        let broken = Array(#"{"nftables":[7,{"chain":7},{"rule":{"family":"inet"}},null]}"#.utf8)
        #expect(NftRules.findings(broken, packet: Self.tcp)?.isEmpty == true)
        #expect(NftRules.findings(Self.ruleset("7,\(Self.drop)"), packet: Self.tcp)?.map(\.verdict) == [.unsure])
    }

    // MARK: iptables

    @Test(
        "what iptables does with the first packet of a connection",
        arguments: [
            ("-P INPUT ACCEPT", .open), ("-P INPUT DROP", .blocked), ("", .open),
            ("-P INPUT DROP\n-A INPUT -p tcp -m tcp --dport 24391 -j ACCEPT", .open),
            ("-P INPUT DROP\n-A INPUT -p udp -m udp --dport 24391 -j ACCEPT", .blocked),
            ("-P INPUT DROP\n-A INPUT -p tcp -m multiport --dports 22,24000:25000 -j ACCEPT", .open),
            ("-P INPUT DROP\n-A INPUT -p tcp -m multiport --dports 22,24000:24100 -j ACCEPT", .blocked),
            ("-P INPUT DROP\n-A INPUT -i lo -j ACCEPT\n-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", .blocked),
            ("-P INPUT DROP\n-A INPUT ! -i lo -j ACCEPT", .open),
            ("-P INPUT DROP\n-A INPUT -s 10.0.0.0/8 -j ACCEPT", .unsure),
            ("-P INPUT ACCEPT\n-A INPUT -p tcp -m tcp --dport 24391 -j REJECT --reject-with tcp-reset", .blocked),
            ("-P INPUT ACCEPT\n-A INPUT ! -p udp -j DROP", .blocked),
            ("-P INPUT ACCEPT\n-A INPUT -m recent --update --seconds 60 -j DROP", .unsure),
            ("-P INPUT ACCEPT\n-N ufw\n-A INPUT -j ufw\n-A ufw -p tcp -m comment --comment \"let it -j DROP in\" -j ACCEPT", .open),
            ("-P INPUT DROP\n-N a\n-A INPUT -j a\n-A a -p tcp -j RETURN\n-A a -j ACCEPT", .blocked),
            ("-P INPUT DROP\n-A INPUT -j nowhere", .unsure),
            ("-P FORWARD DROP\n-P INPUT ACCEPT\n-P OUTPUT DROP", .open),
        ] as [(String, FilterChains.Verdict)])
    func iptables(text: String, expected: FilterChains.Verdict) {
        #expect(IptablesRules.verdict(text, packet: Self.tcp) == expected)
    }

    @Test(
        "what iptables does by interface and destination",
        arguments: [
            (onEthernet, "-i eth0 -j DROP", .blocked), (onEthernet, "-i eth+ -j DROP", .blocked), (onEthernet, "-i wlan0 -j DROP", .open),
            (onEthernet, "! -i wlan0 -j DROP", .blocked), (tcp, "-i wlan0 -j DROP", .unsure),
            (mdns, "-d 224.0.0.251/32 -j DROP", .blocked), (mdns, "-d 224.0.0.0/4 -j DROP", .blocked),
            (mdns, "-d 10.0.0.0/8 -j DROP", .open),
            (mdns6, "-d ff02::fb/128 -p udp -m udp --dport 5353 -j DROP", .blocked), (tcp, "-d 10.0.0.0/8 -j DROP", .unsure),
            (tcp, "-m addrtype --dst-type LOCAL -j DROP", .blocked), (tcp, "-m addrtype --dst-type MULTICAST,BROADCAST -j DROP", .open),
            (mdns, "-m addrtype --dst-type MULTICAST,BROADCAST -j DROP", .blocked), (tcp6, "-m rt --rt-type 0 -j DROP", .open),
        ] as [(IncomingPacket, String, FilterChains.Verdict)])
    func iptablesPlaces(packet: IncomingPacket, rule: String, expected: FilterChains.Verdict) {
        #expect(IptablesRules.verdict("-P INPUT ACCEPT\n-A INPUT \(rule)", packet: packet) == expected)
    }

    // MARK: What is said

    private static func finding(
        _ packet: IncomingPacket, _ verdict: FilterChains.Verdict, _ manager: FirewallManager = .none, line: String
    ) -> Firewall.Finding { Firewall.Finding(packet: packet, verdict: verdict, manager: manager, line: line) }

    @Test("what is blocked comes before what is not sure, each line once, and only what differs is named")
    func judging() {
        let wireless = IncomingPacket(carrier: .tcp, port: 24_391, isIPv6: false, interface: "wlan0")
        let findings = [
            Self.finding(Self.onEthernet, .blocked, .firewalld, line: "one"), Self.finding(wireless, .open, .firewalld, line: "two"),
            Self.finding(Self.mdns, .unsure, .firewalld, line: "three"),
        ]
        let step = Firewall.judged(findings, port: 24_391, isReached: true)
        #expect(step.state == .failed && step.advice == ["one"])
        #expect(step.message == "firewalld keeps tcp port 24391 (IPv4, eth0) out.")
        let unsure = Firewall.judged(Array(findings.dropFirst()), port: 24_391, isReached: false)
        #expect(unsure.state == .warning && unsure.advice == ["three"] && unsure.message.contains("udp port 5353 (IPv4)"))
        // Who reached the port shows it.
        #expect(Firewall.judged(Array(findings.dropFirst()), port: 24_391, isReached: true).state == .ok)
        // By hand it is gone with the next restart.
        let both = [Self.finding(Self.tcp, .blocked, line: "a"), Self.finding(Self.tcp6, .blocked, .ufw, line: "a")]
        let byHand = Firewall.judged(both, port: 24_391, isReached: false)
        #expect(byHand.message == "The packet filter and ufw keep tcp port 24391 out.")
        #expect(byHand.advice.count == 2 && byHand.advice[0] == "a" && byHand.advice[1].contains("restart"))
    }

    @Test("firewalld's rules are in its own table, where it has one; what is in another, or made by iptables beside it, is not its own")
    func authors() {
        let nft: Set = ["firewalld", "mine"]
        #expect(FirewallManager.firewalld.wrote(table: "firewalld", of: nft) && !FirewallManager.firewalld.wrote(table: "mine", of: nft))
        #expect(!FirewallManager.firewalld.wrote(table: nil, of: nft) && FirewallManager.firewalld.wrote(table: nil, of: ["mine"]))
        #expect(FirewallManager.ufw.wrote(table: nil, of: nft) && !FirewallManager.ufw.wrote(table: "mine", of: nft))
        #expect(!FirewallManager.none.wrote(table: nil, of: []))
    }

    @Test("multicast DNS is asked for only where multicast is used")
    func withoutMulticast() {
        let all = IncomingPacket.needed(port: 24_391, interfaces: ["eth0"], usesMulticast: true)
        #expect(all.map(\.text) == ["tcp port 24391", "tcp port 24391", "udp port 5353", "udp port 5353"])
        #expect(IncomingPacket.needed(port: 24_391, interfaces: ["eth0"], usesMulticast: false) == all.filter { $0.carrier == .tcp })
        let open = [Self.finding(Self.tcp, .open, line: "a")]
        #expect(Firewall.judged(open, port: 24_391, isReached: false).message == "The packet filter lets TCP port 24391 in.")
    }

    @Test("rules that cannot be read: one line for each port, however many interfaces there are")
    func unreadable() {
        let packets = IncomingPacket.needed(port: 24_391, interfaces: ["eth0", "wlan0"], usesMulticast: true)
        func advice(_ manager: FirewallManager, hasNft: Bool = true) -> [String] {
            Firewall.unreadable(manager, packets, hasNft: hasNft, isReached: false).advice
        }
        #expect(
            advice(.firewalld) == [
                FirewallManager.firewalldLine(Self.tcp, zone: "ZONE"), FirewallManager.firewalldLine(Self.mdns, zone: "ZONE"),
                "sudo firewall-cmd --get-active-zones",
            ])
        #expect(advice(.ufw) == ["sudo ufw prepend allow 24391/tcp", "sudo ufw prepend allow 5353/udp"])
        #expect(advice(.none).last?.hasSuffix("tcp dport 24391 accept") == true)
        #expect(advice(.none, hasNft: false).last?.hasSuffix(IptablesRules.line(for: Self.tcp)) == true)
        #expect(Firewall.unreadable(.ufw, packets, hasNft: true, isReached: true).state == .ok)
    }

    @Test("the lines to paste")
    func lines() {
        #expect(IptablesRules.line(for: Self.mdns) == "sudo iptables -I INPUT -p udp --dport 5353 -j ACCEPT")
        #expect(
            FirewallManager.firewalldLine(Self.tcp, zone: "home")
                == "sudo firewall-cmd --zone=home --add-port=24391/tcp && sudo firewall-cmd --permanent --zone=home --add-port=24391/tcp")
        #expect(FirewallManager.firewalldLine(Self.mdns, zone: "home").contains("--add-service=mdns &&"))
        #expect(FirewallManager.ufwLine(Self.mdns) == "sudo ufw prepend allow 5353/udp")
        #expect(IptablesRules.line(for: Self.tcp6) == "sudo ip6tables -I INPUT -p tcp --dport 24391 -j ACCEPT")
    }
}
