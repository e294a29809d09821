import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistDoctor
import HexlistModel

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Check each step from this machine to its peers, and say what to do.",
        discussion: """
            Looks at the daemon, its store and identity, D-Bus, avahi-daemon, interfaces, multicast, the port and the firewall; with a PEER at \
            that peer's announcement, addresses, TCP, TLS, Hello, trust, and whether a long frame gets through. Each step is ok, a warning or \
            failed. Exit code 0 when none failed, else 1; 5 when the daemon is not running, 6 when there is no such peer.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("Look at this peer too.", valueName: "peer"), completion: .peers)
    var peer: String?

    @Argument(help: ArgumentHelp("The same, shorter.", valueName: "peer"), completion: .peers)
    var named: String?

    func validate() throws {
        if peer != nil, named != nil { throw ValidationError("Name one peer: `hexlist doctor PEER`.") }
    }

    func run() async throws {
        let output = common.output
        let asked = await askDaemon()
        let bus = "DBUS_SYSTEM_BUS_ADDRESS"
        let report = await LocalDoctor(variables: Environment.value(bus).map { [bus: $0] } ?? [:]).report(
            daemon: asked.daemon, steps: asked.steps, port: asked.port, usesMulticast: asked.usesMulticast)
        if output.json {
            try output.object(report)
        } else {
            for step in report.steps { try show(step, output) }
            try output.line(DoctorText.summary(report))
        }
        try output.flush()
        let status = DoctorText.status(report)
        if status != .done { throw Ending(status: status) }
    }

    private struct Asked {
        var daemon: DoctorStep
        var port: Int?
        var usesMulticast = true
        var steps: [DoctorStep] = []
    }

    /// Asks the daemon for its report, or for the reason why there is none. Under `sudo`, where root has no daemon, it asks that of the
    /// user who ran it: root is only needed to read the firewall's rules.
    private func askDaemon() async -> Asked {
        let own = await ask { try await common.withClient($0) }
        guard own.daemon.code == HexlistError.Code.daemonUnreachable.rawValue, let invoker = Invoker.ofSudo() else { return own }
        return await ask(of: " to \(invoker.name)") { body in
            try await invoker.with { try await common.withClient(invoker.variables, body) }
        }
    }

    private func ask(of user: String = "", _ withClient: ((HexlistClient) async throws -> Void) async throws -> Void) async -> Asked {
        var asked = Asked(daemon: DoctorStep("daemon", .ok, ""))
        do {
            try await withClient { client in
                let status = try await client.status()
                asked.port = status.port
                asked.usesMulticast = status.avahi.state.known != .off
                asked.daemon.message =
                    "hexlistd \(status.version) answers\(user), pid \(status.pid), up \(HumanText.span(seconds: status.uptimeSeconds))."
                asked.steps = try await client.doctor(peer: peer ?? named).steps
            }
        } catch let error as HexlistError {
            asked.daemon = DoctorStep(
                "daemon", .failed, error.message, advice: error.hint.map { [$0] } ?? [], code: error.code.rawValue)
        } catch {
            asked.daemon = DoctorStep("daemon", .failed, "hexlistd cannot be asked: \(error)", code: HexlistError.Code.internal.rawValue)
        }
        return asked
    }

    private func show(_ step: DoctorStep, _ output: Output) throws {
        let (word, style): (String, Terminal.Style) =
            switch step.state {
            case .ok: ("ok     ", .good)
            case .warning: ("warning", .doubtful)
            case .failed: ("failed ", .failure)
            }
        let name = step.step.padding(to: 13)
        try output.line(word, style, "  \(name)  \(TerminalText.clean(step.message, columns: 600))")
        for line in step.advice { try output.line("         → ", .strong, TerminalText.clean(line, columns: 300)) }
    }
}

/// What a report comes to.
enum DoctorText {
    static func summary(_ report: DoctorReport) -> String {
        let failed = report.steps.count { $0.state == .failed }
        let warnings = report.steps.count { $0.state == .warning }
        guard failed + warnings > 0 else { return "All is well." }
        var parts: [String] = []
        if failed > 0 { parts.append("\(failed) failed") }
        if warnings > 0 { parts.append(HumanText.count(warnings, "warning", "warnings")) }
        return parts.joined(separator: ", ") + ". What to do stands below each."
    }

    static func status(_ report: DoctorReport) -> ExitStatus {
        let codes = report.steps.compactMap { $0.code.flatMap(HexlistError.Code.init(rawValue:)).map(ExitStatus.init) }
        return ExitStatus.combined(codes + [report.isFine ? .done : .failed])
    }
}

extension String {
    fileprivate func padding(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - utf8.count)) }
}
