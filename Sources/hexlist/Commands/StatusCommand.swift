import ArgumentParser
import HexlistAPI
import HexlistModel

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show daemon, identity, discovery, storage and outbox at a glance.",
        discussion: "--metrics prints what Prometheus reads: `Docs/Hooks.md`, \"Metrics\".")

    @OptionGroup var common: CommonOptions

    @Flag(help: "Print metrics in the text format of Prometheus.")
    var metrics = false

    func validate() throws {
        if metrics, common.json { throw ValidationError("Give --metrics or --json, not both.") }
    }

    func run() async throws {
        let output = common.output
        if metrics {
            try output.bytes(try await common.withClient { try await $0.metrics() })
            return try output.flush()
        }
        let (status, conflicts, own, lists) = try await common.withClient { client in
            let status = try await client.status()
            // Only the table shows these peers and machines. JSON output must stay as in earlier releases.
            guard !output.json else { return (status, [PeerView](), [OwnMachineView](), SharedHexes(shared: [], offers: [])) }
            let conflicts = status.ghosts > 0 ? try await client.peers(all: true).filter(\.isTwice) : []
            return (status, conflicts, try await client.ownMachinesIfAny(), try await client.sharedHexesIfAny())
        }
        if output.json {
            try output.object(status)
        } else {
            try output.table(table(status, conflicts, own, lists))
        }
        try output.flush()
    }

    private func add(_ localSend: LocalSendStatus, to table: inout Table) {
        switch localSend.state.known {
        case .off: return
        case .running:
            table.add("LocalSend", localSend.port.map { "port \($0)" } ?? "running", .good)
            if let reason = localSend.reason { table.add("", reason) }
        case .failed:
            table.add("LocalSend", "off: \(localSend.reason ?? "no port could be opened")", .doubtful)
        case .hidden: table.add("LocalSend", "finds devices, but is not announced", .doubtful)
        case nil: table.add("LocalSend", localSend.state.text, .doubtful)
        }
    }

    /// Returns the table that shows the status.
    /// - Parameters:
    ///   - conflicts: the trusted peers whose identity two machines use.
    ///   - own: the user's other machines.
    ///   - lists: the shared hexes, and offers of these.
    private func table(_ status: StatusJSON, _ conflicts: [PeerView], _ own: [OwnMachineView], _ lists: SharedHexes) -> Table {
        var table = Table()
        table.add("name", status.name, .strong)
        table.add("uuid", status.uuid.description)
        table.add("daemon", "hexlistd \(status.version), pid \(status.pid), up \(HumanText.span(seconds: status.uptimeSeconds))")
        table.add("port", String(status.port))
        if let message = status.identity?.message { table.add("identity", message, .failure) }
        let isRunning = status.avahi.state.known == .running
        table.add("discovery", status.avahi.state.text, isRunning ? .good : .doubtful)
        if let message = status.avahi.message { table.add("", message) }
        if status.announce == false {
            table.add("", "hidden (`announce: false`): this machine is not announced and does not talk to strangers", .doubtful)
        }
        if let localSend = status.localSend { add(localSend, to: &table) }
        if let drops = status.drops, drops > 0 {
            table.add("drop tokens", "\(drops); the port also answers plain HTTP")
        }
        for domain in status.domains {
            table.add("domain", "\(domain.domain): \(domain.state.text)", domain.state.known == .running ? .good : .doubtful)
            if let message = domain.message { table.add("", message) }
        }
        if let fault = status.configurationFault {
            table.add("configuration", "the file has an error, the previous configuration stays: \(fault)", .failure)
        }
        for fault in status.hookFaults {
            table.add("hook", fault.text + (fault.at.map { ", last at \(HumanText.moment($0))" } ?? ""), .failure)
        }
        for problem in status.routeProblems { table.add("route", "\(problem.route): \(problem.message)", .failure) }
        let ghosts = status.ghosts == 0 ? "" : ", \(HumanText.count(status.ghosts, "ghost", "ghosts")) hidden"
        table.add("peers", "\(status.peers) online\(ghosts)")
        for peer in conflicts { table.add("", PeersText.twice(peer), .failure) }
        table.add("inbox", "\(status.unread) unread, \(status.held) held", status.unread > 0 ? .strong : .plain)
        if !own.isEmpty {
            let isGood = own.allSatisfy { $0.state.known == .inSync }
            table.add("lists", OwnText.summary(own), own.contains(where: OwnText.isProblem) ? .failure : isGood ? .good : .plain)
        }
        for (number, line) in SharingText.summary(lists).enumerated() { table.add(number == 0 && own.isEmpty ? "lists" : "", line) }
        table.add("outbox", OutboxText.summary(status.outbox))
        table.add("store", "\(status.stateFolder), \(ByteCountText.of(status.storeBytes))")
        if let fault = status.storeFault { table.add("", fault, .failure) }
        if let note = SearchText.behind(status.search?.behind ?? 0) { table.add("search", note, .doubtful) }
        return table
    }
}
