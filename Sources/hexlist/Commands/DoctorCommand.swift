import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistDoctor
import HexlistModel

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Check every step from this machine to its peers, and suggest fixes.",
        discussion: """
            Checks the daemon, its store and identity, D-Bus, avahi-daemon, network interfaces, multicast, port and firewall; with a \
            PEER also the announcement, addresses, TCP, TLS, handshake and trust of that peer, and whether large frames get through. \
            Each step is ok, a warning or failed. Exit codes: 0 none failed, 1 some failed, 5 daemon not running, 6 no such peer.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("Check this peer too.", valueName: "peer"), completion: .peers)
    var peer: String?

    @Argument(help: ArgumentHelp("The same as --peer.", valueName: "peer"), completion: .peers)
    var named: String?

    func validate() throws {
        if peer != nil, named != nil { throw ValidationError("Give one peer: `hexlist doctor PEER`.") }
    }

    func run() async throws {
        let output = common.output
        let asked = await daemonReport()
        let bus = "DBUS_SYSTEM_BUS_ADDRESS"
        let report = await LocalDoctor(variables: Environment.value(bus).map { [bus: $0] } ?? [:]).report(
            daemon: asked.daemon, steps: asked.steps, port: asked.port, usesMulticast: asked.usesMulticast)
        if output.json {
            try output.object(report)
        } else {
            for step in report.steps { try show(step, output) }
            try output.wrapped(DoctorText.summary(report))
        }
        try output.flush()
        let status = DoctorText.status(report)
        if status != .done { throw SilentExit(status: status) }
    }

    private struct DaemonReport {
        var daemon: DoctorStep
        var port: Int?
        var usesMulticast = true
        var steps: [DoctorStep] = []
    }

    /// Requests the daemon's report. If that fails, the returned report has a failed step with the error. Under `sudo` it contacts the
    /// daemon of the user who ran `sudo`, because root is only needed to read the firewall rules.
    private func daemonReport() async -> DaemonReport {
        let own = await ask { try await common.withClient($0) }
        guard own.daemon.code == HexlistError.Code.daemonUnreachable.rawValue, let invoker = SudoInvoker.ofSudo() else { return own }
        return await ask(of: " to \(invoker.name)") { body in
            try await invoker.with { try await common.withClient(invoker.variables, body) }
        }
    }

    private func ask(of user: String = "", _ withClient: ((HexlistClient) async throws -> Void) async throws -> Void) async -> DaemonReport
    {
        var report = DaemonReport(daemon: DoctorStep("daemon", .ok, ""))
        do {
            try await withClient { client in
                let status = try await client.status()
                report.port = status.port
                report.usesMulticast = status.avahi.state.known != .off
                report.daemon.message =
                    "hexlistd \(status.version) answers\(user), pid \(status.pid), up \(HumanText.span(seconds: status.uptimeSeconds))."
                report.steps = try await client.doctor(peer: peer ?? named).steps
            }
        } catch let error as HexlistError {
            report.daemon = DoctorStep(
                "daemon", .failed, error.message, advice: error.hint.map { [$0] } ?? [], code: error.code.rawValue)
        } catch {
            report.daemon = DoctorStep("daemon", .failed, "hexlistd did not answer: \(error)", code: HexlistError.Code.internal.rawValue)
        }
        return report
    }

    private func show(_ step: DoctorStep, _ output: Output) throws {
        let (word, style): (String, Terminal.Style) =
            switch step.state {
            case .ok: ("ok     ", .good)
            case .warning: ("warning", .doubtful)
            case .failed: ("failed ", .failure)
            }
        let layout = DoctorText.Layout(output.terminal.width)
        let message = layout.message(step)
        try output.line(word, style, message[0])
        for line in message.dropFirst() { try output.line(line) }
        for line in step.advice {
            let advice = layout.advice(line)
            try output.line(advice[0], .strong, advice[1])
            for rest in advice.dropFirst(2) { try output.line(rest) }
        }
    }
}

/// The layout and the summary of a doctor report.
enum DoctorText {
    /// The layout of the texts of a step: next to the step's name, below it on a narrow terminal, or on one line in a pipe.
    struct Layout {
        /// Width in columns of the state and the name of a step.
        private static let head = 24
        /// Minimum width in columns at which a message is printed next to the name.
        private static let messageMinimum = 32

        /// Width of the terminal in columns; `nil` for a pipe.
        private let width: Int?

        init(_ width: Int?) { self.width = width.map { max(20, $0) } }

        private var isNarrow: Bool { width.map { $0 < Self.head + Self.messageMinimum } ?? false }

        /// Returns the parts of a step's message: first the text after the state on the same line, then the lines below.
        func message(_ step: DoctorStep) -> [String] {
            let text = TerminalText.clean(step.message, columns: 600)
            guard let width else { return ["  \(step.step.padding(to: 13))  \(text)"] }
            if isNarrow { return ["  \(step.step)"] + TextWidth.lines(text, columns: width - 2).map { "  \($0)" } }
            let indent = String(repeating: " ", count: Self.head)
            let lines = TextWidth.lines(text, columns: width - Self.head)
            return ["  \(step.step.padding(to: 13))  \(lines[0])"] + lines.dropFirst().map { indent + $0 }
        }

        /// Returns the parts of a piece of advice: the arrow, the text after it, and the lines below.
        func advice(_ line: String) -> [String] {
            let text = TerminalText.clean(line, columns: 300)
            let arrow = String(repeating: " ", count: isNarrow ? 2 : 9) + "→ "
            guard let width else { return [arrow, text] }
            let lines = TextWidth.lines(text, columns: width - arrow.count)
            return [arrow, lines[0]] + lines.dropFirst().map { String(repeating: " ", count: arrow.count) + $0 }
        }
    }

    static func summary(_ report: DoctorReport) -> String {
        let failed = report.steps.count { $0.state == .failed }
        let warnings = report.steps.count { $0.state == .warning }
        guard failed + warnings > 0 else { return "Everything is fine." }
        var parts: [String] = []
        if failed > 0 { parts.append("\(failed) failed") }
        if warnings > 0 { parts.append(HumanText.count(warnings, "warning", "warnings")) }
        return parts.joined(separator: ", ") + ". See → for what to do."
    }

    static func status(_ report: DoctorReport) -> ExitStatus {
        let codes = report.steps.compactMap { $0.code.flatMap(HexlistError.Code.init(rawValue:)).map(ExitStatus.init) }
        return ExitStatus.combined(codes + [report.isFine ? .done : .failed])
    }
}

extension String {
    fileprivate func padding(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - utf8.count)) }
}
