import HexlistAPI
import HexlistModel
import HexlistNode
import HexlistTransport

#if canImport(Glibc)
    import Glibc
#endif

/// The checks of `hexlist doctor` that run in the daemon: of the daemon itself, its network and a peer. Each check performs the operation
/// on which it reports.
struct Doctor: Sendable {
    /// Asks each peer at most once per report to dial back, because peers limit the rate of such requests.
    actor DialBackOutcomes {
        private var outcomes: [PeerID: DialBackOutcome] = [:]

        /// Asks a peer to dial back. Returns the earlier outcome if it was asked before.
        /// - Parameter waits: whether to wait until the peer may be asked again, if another report has just asked it.
        func ask(_ peer: PeerID, _ node: Node, waits: Bool = true) async -> DialBackOutcome {
            if let outcome = outcomes[peer] { return outcome }
            let outcome = await node.diagnostics.requestDialBack(from: peer, waits: waits)
            outcomes[peer] = outcome
            return outcome
        }
    }

    let api: APIContext
    let dialBacks = DialBackOutcomes()

    /// Makes all checks.
    /// - Parameter peer: a PEER argument that names a peer to check; `nil` for none. Its checks are at the end of the report.
    func report(on peer: String?) async -> DoctorReport {
        let facts = await api.node.diagnostics.facts()
        let inForce = api.configuration.shape(port: facts.status.port)
        var steps = [await store(), room(facts), identity(facts), Self.configuration(inForce)]
        if let step = Self.hooks(api.hooks.all, running: api.hooks.running) { steps.append(step) }
        if let step = await lists() { steps.append(step) }
        steps += await routes()
        // If no peer matches the argument, the report does not wait until peers accept requests to dial back.
        let mayWait = if let peer { await isThere(peer) } else { true }
        steps += await network(facts, waits: mayWait)
        if let peer { steps += await self.peer(peer) }
        return DoctorReport(steps: steps)
    }

    /// Tests all routes at the same time, each with a letter from this machine to itself.
    private func routes() async -> [DoctorStep] {
        let routes = await api.node.routeList.all()
        return await withTaskGroup(of: (Int, DoctorStep).self) { group in
            for (index, route) in routes.enumerated() { group.addTask { (index, await step(route)) } }
            return await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    private func step(_ route: RouteView) async -> DoctorStep {
        let result = try? await api.node.routeList.test(route.name)
        guard let milliseconds = result?.milliseconds else {
            return DoctorStep(
                "route", .failed, "\(route.name): a test letter did not come back: \(result?.message ?? "the route was removed").",
                advice: ["Check \(route.place), and `routes` in the configuration."])
        }
        return DoctorStep(
            "route", route.problem == nil ? .ok : .warning,
            "\(route.name): a test letter took \(milliseconds) ms." + (route.problem.map { " Since the start: \($0)." } ?? ""))
    }

    /// Makes the step `lists`: the exchange of My Hexlist with own machines, and of shared hexes; `nil` if there are none.
    private func lists() async -> DoctorStep? {
        do {
            return Self.lists(try await api.node.ownMachines.all(), try await api.node.sharing.all().shared)
        } catch {
            return DoctorStep("lists", .failed, "The lists cannot be read: \((error as? HexlistError)?.message ?? "\(error)")")
        }
    }

    static func lists(_ machines: [OwnMachineView], _ shared: [SharedHexView] = []) -> DoctorStep? {
        let (own, sharing) = (ownMachines(machines), sharedHexes(shared))
        guard let own else { return sharing }
        guard let sharing else { return own }
        return DoctorStep(
            "lists", own.state == .ok ? sharing.state : own.state, "\(own.message) \(sharing.message)", advice: own.advice + sharing.advice)
    }

    /// Maximum number of shared hexes of which the step names the problems.
    private static let namedHexes = 8

    private static func sharedHexes(_ shared: [SharedHexView]) -> DoctorStep? {
        let exchanged = shared.filter { hex in
            hex.owned ? hex.peers.contains { $0.access.known != ShareAccess.none } : hex.access.known != ShareAccess.none
        }
        guard !exchanged.isEmpty else { return nil }
        let problems = exchanged.compactMap { hex -> String? in
            let messages = hex.peers.filter { $0.access.known != ShareAccess.none && !(hex.owned && $0.state.known != .joined) }
                .compactMap(\.message)
            let title = "“\(TerminalText.clean(hex.title, columns: 60))”"
            guard messages.isEmpty else { return "\(title): \(messages.joined(separator: " "))" }
            return hex.needsRenewal ? "\(title): It has nearly the maximum of hexes and links, including deleted ones." : nil
        }
        let renewals = exchanged.filter(\.needsRenewal).prefix(namedHexes).compactMap(\.hex).map {
            "To leave out the deleted hexes and links of hex \($0): `hexlist mine share \($0) --renew`. Its members have to join it again."
        }
        let count = "Shared hexes: \(exchanged.count)"
        guard !problems.isEmpty else { return DoctorStep("lists", .ok, "\(count), without a problem.") }
        let more = problems.count > namedHexes ? " And \(problems.count - namedHexes) more." : ""
        return DoctorStep(
            "lists", .warning, "\(count). \(problems.prefix(namedHexes).joined(separator: " "))\(more)",
            advice: ["`hexlist mine share HEX` lists the members of a hex. See Docs/Sharing.md."] + renewals)
    }

    private static func ownMachines(_ machines: [OwnMachineView]) -> DoctorStep? {
        guard !machines.isEmpty else { return nil }
        let (parts, advice) = machines.reduce(into: (parts: [String](), advice: [String]())) { result, machine in
            let name = machine.label.text(.named)
            switch machine.state.known {
            case .inSync: result.parts.append("in sync with \(name).")
            case .away: result.parts.append(machine.message ?? "\(name) is away.")
            case .joining, .exchanging: result.parts.append("changes are being exchanged with \(name).")
            case .waiting:
                result.parts.append(
                    machine.receivedAt == nil ? "\(name) has not added this machine." : "this machine was removed on \(name).")
                result.advice.append("Run `hexlist own add` for this machine on \(name).")
            case .clock:
                result.parts.append(machine.message ?? "the clock of \(name) differs.")
                result.advice.append("Set both clocks; `timedatectl` shows whether one is synchronised. See Docs/SeveralMachines.md.")
            case .differs:
                result.parts.append("the collection of \(name) differs although all changes were exchanged.")
                result.advice.append("It is repaired within an hour. If not: `hexlist own remove` and `own add` on both machines.")
            case .unsupported:
                result.parts.append(machine.message ?? "the Hexlist of \(name) is too old.")
                result.advice.append("Install a newer Hexlist on \(name).")
            case .full, .disk, .failed, .removed, nil: result.parts.append(machine.message ?? "\(name): \(machine.state).")
            }
        }
        let isBad = machines.contains { [.clock, .differs, .full, .disk].contains($0.state.known) }
        let isDoubtful = machines.contains { [.waiting, .failed, .unsupported].contains($0.state.known) }
        return DoctorStep(
            "lists", isBad ? .failed : isDoubtful ? .warning : .ok, "My Hexlist: " + parts.joined(separator: " "), advice: advice)
    }

    // MARK: The state folder

    private func store() async -> DoctorStep {
        let advice = ["Check the disk of \(api.stateFolder) (`df`, `dmesg`) and the log of hexlistd."]
        if let fault = api.store.fault {
            return DoctorStep("store", .failed, "The store cannot be written: \(fault.message)", advice: fault.hint.map { [$0] } ?? advice)
        }
        do {
            // The check writes a row, with a full commit to the disk, and reads it.
            let now = "\(Timestamp.now.milliseconds)"
            try await api.store.setMeta(["examined": now])
            let (found, bytes) = try await api.store.read { (try $0.meta("examined"), $0.storeBytes()) }
            guard found == now else {
                return DoctorStep("store", .failed, "A value that was written to the store could not be read back.", advice: advice)
            }
            return DoctorStep("store", .ok, "\(api.store.path) can be written and read, \(ByteCountText.of(bytes)).")
        } catch {
            let message = (error as? HexlistError)?.message ?? "\(error)"
            return DoctorStep("store", .failed, "The store cannot be used: \(message)", advice: advice)
        }
    }

    private func room(_ facts: NetworkFacts) -> DoctorStep {
        var status = statvfs()
        guard statvfs(api.stateFolder, &status) == 0 else {
            return DoctorStep("disk", .failed, "\(api.stateFolder) cannot be read: \(String(cString: strerror(errno))).")
        }
        let free = Int64(clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue)
        let reserve = Int64(facts.diskReserveBytes)
        let advice = ["Free space on the disk of \(api.stateFolder), or lower `limits.diskReserveBytes`."]
        if free < reserve {
            return DoctorStep(
                "disk", .failed,
                "\(ByteCountText.of(free)) are free, and \(ByteCountText.of(reserve)) have to stay free: hexes are refused (`storageFull`).",
                advice: advice)
        }
        if free / 4 < reserve {
            return DoctorStep(
                "disk", .warning, "Only \(ByteCountText.of(free)) are free; \(ByteCountText.of(reserve)) have to stay free.", advice: advice
            )
        }
        return DoctorStep("disk", .ok, "\(ByteCountText.of(free)) are free.")
    }

    private func identity(_ facts: NetworkFacts) -> DoctorStep {
        let own = api.node.identity.fingerprint
        let path = "\(api.stateFolder)/\(Identity.fileName)"
        do {
            guard let kept = try Identity.load(from: api.stateFolder) else {
                return DoctorStep(
                    "identity", .failed,
                    "\(path) was deleted; hexlistd continues with the key in memory, but cannot start again without the file.",
                    advice: ["Put \(Identity.fileName) back from a backup before hexlistd stops."])
            }
            guard kept.fingerprint == own else {
                return DoctorStep(
                    "identity", .failed, "\(path) has another key than the one that hexlistd uses.",
                    advice: ["Put back the file of \(own.peerID): hexlistd does not start with that of \(kept.peerID)."])
            }
        } catch {
            let error = error as? HexlistError
            return DoctorStep(
                "identity", .failed, "\(path) cannot be used: \(error?.message ?? "unreadable").", advice: error?.hint.map { [$0] } ?? [])
        }
        guard !facts.isIdentityElsewhere else {
            return DoctorStep(
                "identity", .failed, "Another machine uses this machine's identity: one has a copy of the other's state folder.",
                advice: ["Run `hexlist id rotate` on one of the two, or stop hexlistd on one of them."])
        }
        return DoctorStep("identity", .ok, "\(own.peerID), with the key in \(path).")
    }

    static func configuration(_ inForce: ConfigurationJSON) -> DoctorStep {
        let reload = "Correct the file, check it with `hexlist config --check`, then: systemctl --user reload hexlistd (or kill -HUP)."
        if let fault = inForce.fault {
            return DoctorStep(
                "configuration", .failed, "The changed configuration has an error; the previous one stays in effect. \(fault)",
                advice: [inForce.hint].compactMap { $0 } + [reload])
        }
        let waiting = inForce.items.filter { $0.waiting != nil }.map(\.key)
        guard waiting.isEmpty else {
            return DoctorStep(
                "configuration", .warning, "\(inForce.file) was read; a restart is needed for \(waiting.joined(separator: ", ")).",
                advice: ["systemctl --user restart hexlistd"])
        }
        return DoctorStep("configuration", .ok, "The file is in effect; `hexlist config` shows it.")
    }

    /// Makes the step `hooks`; `nil` if there are no hooks.
    static func hooks(_ faults: [HookFault], running: [String]) -> DoctorStep? {
        guard faults.isEmpty else {
            return DoctorStep(
                "hooks", .warning, faults.map(\.text).joined(separator: "; ") + ".",
                advice: ["The log of hexlistd has the output of a failed hook: `journalctl --user -u hexlistd`."])
        }
        return running.isEmpty ? nil : DoctorStep("hooks", .ok, "\(running.joined(separator: ", ")): the last run of each succeeded.")
    }

    static func milliseconds(_ duration: Duration) -> String {
        let tenths = Int((duration / .milliseconds(0.1)).rounded())
        return tenths < 100 ? "\(Double(tenths) / 10) ms" : "\(tenths / 10) ms"
    }
}
