import HexlistAPI
import HexlistDiscovery
import HexlistModel
import HexlistNode
import HexlistSystem
import HexlistWire
import NIOPosix

// The checks of discovery and of this machine's port.
extension Doctor {
    /// Checks discovery, the interfaces, and whether the port of this machine is reachable.
    /// - Parameter waits: whether to wait until a peer accepts another request to dial back, because peers limit their rate.
    func network(_ before: NetworkFacts, waits: Bool) async -> [DoctorStep] {
        var facts = before
        let multicast = facts.status.discovery.state.known
        let isUsed = multicast == .running || multicast == .degraded
        let interfaces = MachineInterface.all()
        var steps = [Self.discovery(facts.status)]
        if !facts.status.isAnnounced {
            steps.append(Self.hiding)
        } else if isUsed {
            facts = await whenAnnounced(facts)
            steps.append(Self.announcement(facts.announcements, interfaces))
        }
        steps.append(Self.interfaces(interfaces, usesMulticast: multicast != .off, listen: ListenAddresses(facts.listen)))
        if isUsed { steps += await self.multicast(interfaces, facts) }
        steps += facts.status.domains.map(Self.domain)
        if let step = Self.staticPeers(facts) { steps.append(step) }
        steps.append(await port(facts))
        steps.append(await reachable(facts, waits: waits))
        if let step = Self.localSend(facts.status.localSend) { steps.append(step) }
        return steps
    }

    static func discovery(_ status: NodeStatus) -> DoctorStep {
        switch status.discovery.state.known {
        case .running where !status.isAnnounced: DoctorStep("discovery", .ok, "avahi-daemon browses for others.")
        case .running: DoctorStep("discovery", .ok, "avahi-daemon announces this machine and browses for others.")
        case .off: DoctorStep("discovery", .ok, "Multicast is not used: `domains` does not name `local`.")
        case .degraded: DoctorStep("discovery", .warning, status.discovery.message ?? "This machine is not announced.")
        case .starting, nil:
            DoctorStep("discovery", .warning, "avahi-daemon has not answered yet.", advice: ["Look again in a few seconds."])
        case .unavailable:
            DoctorStep(
                "discovery", .failed, status.discovery.message ?? "avahi-daemon cannot be used.",
                advice: [
                    "sudo systemctl enable --now avahi-daemon", "Or name peers under `peers:`: they are reached without avahi-daemon.",
                ])
        }
    }

    /// Makes the step `localsend`; `nil` if LocalSend is off.
    static func localSend(_ status: LocalSendStatus) -> DoctorStep? {
        let reason = status.reason.map { " \($0)" } ?? ""
        switch status.state.known {
        case .off: return nil
        case .failed:
            return DoctorStep(
                "localsend", .failed, "LocalSend devices cannot send: \(status.reason ?? "no port could be opened.")",
                advice: ["Set another `localsend.port`, or `localsend.enabled: false`."])
        case .hidden: return DoctorStep("localsend", .ok, "LocalSend devices are found; nothing is announced to them.")
        case .running, nil:
            guard let port = status.port else { return nil }
            let text = "LocalSend devices may send to port \(port).\(reason)"
            guard !status.interfaces.isEmpty else {
                return DoctorStep("localsend", .warning, text + " No interface has multicast, so this machine is not announced to them.")
            }
            guard status.hearsItself else {
                return DoctorStep(
                    "localsend", .warning, text + " This machine does not receive its own announcements.",
                    advice: ["A firewall may block UDP port 53317: sudo firewall-cmd --add-port=53317/udp --add-port=\(port)/tcp"])
            }
            return DoctorStep("localsend", .ok, text)
        }
    }

    static let hiding = DoctorStep(
        "announcement", .ok,
        "Not announced, as configured (`announce: false`): trusted peers that announce themselves are found, strangers are not contacted."
            + " Another hidden machine is reached if one of the two names the other under `peers:`.")

    /// Waits up to 3 s until this machine receives its own announcement. Returns the state of the node after the wait.
    private func whenAnnounced(_ facts: NetworkFacts) async -> NetworkFacts {
        var facts = facts
        let deadline = ContinuousClock.now + .seconds(3)
        while facts.announcements.isEmpty, ContinuousClock.now < deadline, !Task.isCancelled {
            try? await Task.sleep(for: .milliseconds(200))
            facts = await api.node.diagnostics.facts()
        }
        return facts
    }

    /// Makes the step `announcement`.
    /// - Parameters:
    ///   - seen: the interfaces and IP versions on which this machine received its own announcement.
    ///   - avahi: the advice if the service is not announced.
    static func announcement(
        _ seen: [(interface: String, isIPv6: Bool)], _ interfaces: [MachineInterface], avahi: String = AvahiConfiguration.advice()
    ) -> DoctorStep {
        let names = seen.map { "\($0.interface) (\($0.isIPv6 ? "IPv6" : "IPv4"))" }.joined(separator: ", ")
        let loopbacks = Set(interfaces.filter(\.isLoopback).map(\.name))
        let unplugged = Set(interfaces.filter({ !$0.isLoopback && !$0.isRunning }).map(\.name))
        let outside = seen.filter { !loopbacks.contains($0.interface) }
        if !outside.isEmpty, outside.allSatisfy({ unplugged.contains($0.interface) }) {
            return DoctorStep(
                "announcement", .warning, "This machine is announced on \(names), without a carrier, so no other machine sees it.",
                advice: ["Connect to a network: `ip address` shows the interfaces."])
        }
        guard !outside.isEmpty else {
            return DoctorStep(
                "announcement", .failed,
                names.isEmpty
                    ? "Browsing does not find this machine's own announcement, so others do not see it either."
                    : "This machine's announcement is seen on \(names) only, so others do not see it.",
                advice: [avahi, "journalctl -u avahi-daemon"])
        }
        return DoctorStep("announcement", .ok, "This machine is announced on \(names), as seen by itself.")
    }

    /// Makes the step `interfaces`.
    /// - Parameter listen: the addresses on which the daemon listens. Other addresses are marked in the text.
    static func interfaces(
        _ interfaces: [MachineInterface], usesMulticast: Bool, listen: ListenAddresses = ListenAddresses([])
    ) -> DoctorStep {
        let used = interfaces.filter(\.isUsed)
        let parts = interfaces.filter { !$0.isLoopback }.map { interface in
            let texts = interface.addresses.map { "\($0.address)\(listen.contains($0.address) ? "" : " outside of `listen`")" }
            let addresses = texts.isEmpty ? "" : " (\(texts.joined(separator: ", ")))"
            let note = interface.why ?? (interface.isVirtual ? "used, but meant for containers or virtual machines" : "used")
            return "\(interface.name)\(addresses): \(note)\(interface.isUp && !interface.isRunning ? ", no carrier" : "")"
        }
        let message = parts.isEmpty ? "There is no network interface except the loopback interface." : parts.joined(separator: "; ") + "."
        if used.isEmpty {
            return DoctorStep(
                "interfaces", usesMulticast ? .failed : .warning, message,
                advice: advice(unused: interfaces))
        }
        if !used.contains(where: { !$0.isVirtual && $0.isRunning }) {
            return DoctorStep(
                "interfaces", .warning, message, advice: ["No interface reaches other machines: connect to their network."])
        }
        guard used.contains(where: { $0.addresses.contains { listen.contains($0.address) } }) else {
            return DoctorStep(
                "interfaces", .warning, message,
                advice: [
                    "Other machines cannot reach this one: add one of these addresses to `listen`, or remove the key, and restart hexlistd."
                ])
        }
        return DoctorStep("interfaces", .ok, message)
    }

    private static func advice(unused interfaces: [MachineInterface]) -> [String] {
        let mute = interfaces.filter { !$0.isLoopback && $0.isUp && !$0.hasMulticast && !$0.addresses.isEmpty }
        return mute.map { "If \($0.name) is not a tunnel: sudo ip link set dev \($0.name) multicast on" }
            + ["Connect to a network: `ip address` shows the interfaces."]
    }

    private func multicast(_ interfaces: [MachineInterface], _ facts: NetworkFacts) async -> [DoctorStep] {
        let own = "[\(facts.status.uuid.shortID)]"
        // Only interfaces on which this machine is announced are queried, because avahi-daemon may be configured to ignore other ones. If
        // this machine is not announced anywhere, all interfaces are queried.
        let seen = Set(facts.announcements.map(\.interface))
        let asked = interfaces.filter {
            $0.isUsed && (seen.isEmpty || seen.contains($0.name)) && $0.addresses.contains { !$0.address.isIPv6 }
        }
        var outcomes: [(name: String, outcome: MulticastQuery.Outcome)] = []
        let addresses = Set(interfaces.flatMap(\.addresses).map(\.address))
        for interface in asked.prefix(8) {
            guard interface.isRunning else {
                outcomes.append((interface.name, .noCarrier))
                continue
            }
            let index = interface.index
            let outcome = try? await NIOThreadPool.singleton.runIfActive {
                MulticastQuery.ask(on: index, own: addresses) { Self.isOwn($0, own) }
            }
            outcomes.append((interface.name, outcome ?? .failed("it could not be tested")))
        }
        return outcomes.isEmpty ? [] : [Self.multicast(outcomes, own: own, isAnnounced: facts.status.isAnnounced)]
    }

    /// Whether a DNS-SD instance name ends with the short id of this machine. Any host may have sent such a name.
    private static func isOwn(_ name: String, _ own: String) -> Bool { name.utf8.suffix(own.utf8.count).elementsEqual(own.utf8) }

    static func multicast(
        _ outcomes: [(name: String, outcome: MulticastQuery.Outcome)], own: String, isAnnounced: Bool = true
    ) -> DoctorStep {
        var (good, bad, alone, silent, unplugged): ([String], [String], [String], [String], [String]) = ([], [], [], [], [])
        for (name, outcome) in outcomes {
            switch outcome {
            case .answered(let names, byOthers: true):
                good.append(names.contains { isOwn($0, own) } || !isAnnounced ? name : "\(name) (from others, not from this machine)")
            case .answered(_, byOthers: false): alone.append(name)
            case .silent where !isAnnounced: silent.append(name)
            case .silent: bad.append("on \(name) no machine answers, not even this machine's avahi-daemon")
            case .failed(let why): bad.append("on \(name) a query cannot be sent (\(why))")
            case .noCarrier: unplugged.append(name)
            }
        }
        let list = { (names: [String]) in names.joined(separator: ", ") }
        if !bad.isEmpty {
            return DoctorStep(
                "multicast", .failed, "Multicast DNS: \(bad.joined(separator: "; ")).",
                advice: ["Let UDP port 5353 through this machine's firewall, in both directions (step firewall).", apart])
        }
        let found = [
            good.isEmpty ? nil : "Other machines answer a multicast query on \(list(good))",
            alone.isEmpty ? nil : "on \(list(alone)) only this machine answers",
            silent.isEmpty ? nil : "on \(list(silent)) no machine answers; nor does this one, which is not announced",
            unplugged.isEmpty ? nil : "\(list(unplugged)) has no carrier",
        ].compactMap { $0 }.joined(separator: "; ")
        guard good.isEmpty else { return DoctorStep("multicast", .ok, found + ".") }
        let advice = alone.isEmpty && silent.isEmpty ? "Connect to a network: `ip address` shows the interfaces." : apart
        return DoctorStep("multicast", .warning, "No other machine answers a multicast query: \(found).", advice: [advice])
    }

    /// The advice for a network that prevents its machines from reaching each other.
    private static let apart =
        "If another machine is on, the network may separate the two, as guest networks and client isolation do. If they can connect"
        + " at all, name its address in the configuration: `peers: [ADDRESS]`."

    static func domain(_ domain: DomainStatus) -> DoctorStep {
        let question = "dig _hexlist._tcp.\(domain.domain) PTR"
        switch domain.state.known {
        case .running: return DoctorStep("domain", .ok, "DNS answers for \(domain.domain).")
        case .degraded:
            return DoctorStep(
                "domain", .warning, domain.message ?? "DNS lists no machine in \(domain.domain).",
                advice: [
                    "Is the domain spelt correctly? Its administrator adds machines to the zone (Docs/Network.md).", question,
                ])
        case .unavailable, .starting, .off, nil:
            return DoctorStep(
                "domain", .failed, domain.message ?? "DNS does not answer for \(domain.domain).",
                advice: [question, "Check the servers in /etc/resolv.conf."])
        }
    }

    static func staticPeers(_ facts: NetworkFacts) -> DoctorStep? {
        guard !facts.staticPeers.isEmpty else { return nil }
        var (failed, hasOther) = (false, false)
        let parts = facts.staticPeers.map { address, state -> String in
            switch state {
            case .answered(let peer):
                hasOther = true
                return "\(address) is \(peer.shortID)"
            case .isOwn: return "\(address) is this machine"
            case .probing:
                hasOther = true
                return "\(address) is being asked"
            case .failed(let why), .away(_, let why):
                failed = true
                return "\(address): \(why)"
            }
        }
        return DoctorStep(
            "peers", failed || !hasOther ? .warning : .ok, "Of `peers`: " + parts.joined(separator: "; ") + ".",
            advice: failed
                ? ["`hexlist doctor --peer HOST` checks one of them step by step."]
                : hasOther ? [] : ["Name the addresses of other machines."])
    }

    // MARK: The port

    private func port(_ facts: NetworkFacts) async -> DoctorStep {
        let host = facts.listen.first ?? "127.0.0.1"
        let port = facts.status.port
        let reach = await api.node.diagnostics.probe(host, port: port, interface: nil, expecting: facts.status.uuid)
        switch (reach.tcp, reach.tls) {
        case (.success, .success?): return DoctorStep("port", .ok, "This machine answers on its port \(port), with its own identity.")
        case (.failure(let why), _), (.success, .failure(let why)?):
            return DoctorStep(
                "port", .failed, "This machine cannot reach its own port \(port) on \(host): \(why.text).",
                advice: ["Is the loopback interface filtered? `ss -ltnp` shows which programs listen."])
        case (.success, nil): return DoctorStep("port", .failed, "Port \(port) of this machine could not be tested.")
        }
    }

    /// Checks that other machines can reach the port of this machine. Asks up to three peers to dial back; otherwise looks for an inbound
    /// session.
    private func reachable(_ facts: NetworkFacts, waits: Bool) async -> DoctorStep {
        var tries: [(name: String, address: String, outcome: DialBackOutcome)] = []
        for (peer, name, address) in facts.mayDialBack.prefix(3) {
            let outcome = await dialBacks.ask(peer, api.node, waits: waits)
            tries.append((name, address, outcome))
            if case .result(.reached) = outcome { break }
        }
        return Self.reachable(facts.status.port, tries, dialledIn: facts.dialledIn.first.map { ($0.name, $0.address, $0.age) })
    }

    /// Maximum age of an inbound session that proves that the port is reachable. Since an older session, the firewall may have changed.
    private static let dialledInCounts: Duration = .seconds(600)

    /// Makes the step `reachable`.
    /// - Parameters:
    ///   - tries: the peers that were asked to dial back, each with the address to dial and the outcome.
    ///   - dialledIn: the peer of the last inbound session, with its address and the age of the session; `nil` if there was none.
    static func reachable(
        _ port: Int, _ tries: [(name: String, address: String, outcome: DialBackOutcome)],
        dialledIn: (name: String, address: String, age: Duration)?
    ) -> DoctorStep {
        var failures: [String] = []
        for (name, address, outcome) in tries {
            switch outcome {
            case .result(.reached):
                return DoctorStep(
                    "reachable", .ok, "\(name) connected to this machine at \(HostPort.text(address, port)) just now.")
            // In these cases the peer did not try to connect, so nothing is known about the port.
            case .result(.notTrusted), .noReply, .cannotAsk: break
            case .result(let result): failures.append("\(name) \(text(result))")
            }
        }
        guard failures.isEmpty else {
            return DoctorStep(
                "reachable", .failed,
                "Port \(port) cannot be reached from outside: asked to connect to it, \(failures.joined(separator: "; ")).",
                advice: ["Let TCP port \(port) through this machine's firewall (step firewall) and any firewall in between."])
        }
        let advice = [
            "Try again when a peer is online that trusts this machine and that you trust, or try from another machine: `nc -vz ADDRESS \(port)`."
        ]
        guard let (name, address, age) = dialledIn else {
            return DoctorStep(
                "reachable", .warning, "No peer could be asked whether port \(port) can be reached from outside.", advice: advice)
        }
        guard age < dialledInCounts else {
            let minutes = age.components.seconds / 60
            return DoctorStep(
                "reachable", .warning,
                "\(name) connected to port \(port) from \(address) \(minutes) minutes ago; no peer could be asked whether the port can still be reached.",
                advice: advice)
        }
        return DoctorStep("reachable", .ok, "Port \(port) can be reached from outside: \(name) connected to it from \(address).")
    }

    static func text(_ result: DialBack.Result) -> String {
        switch result {
        case .reached: "reached it"
        case .refused: "was refused"
        case .timeout: "got no answer within 3 s"
        case .unreachable: "got the error that it cannot be reached (no route, or a firewall that rejects it)"
        case .closed: "was disconnected during the handshake"
        case .otherIdentity: "met another peer there"
        case .foreign: "found another program than Hexlist there"
        case .notTrusted: "does not trust this machine, so it did not connect"
        }
    }
}
