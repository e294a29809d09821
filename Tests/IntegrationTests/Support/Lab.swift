import Foundation
import HexlistModel
import Synchronization
import TestSupport

/// Hosts in namespaces running the real programs, made by Scripts/lab.
struct Lab: Sendable {
    private static let script = "\(Checkout.root)/Scripts/lab"
    private let name: String
    private let entries = Entries()

    /// The words that run a command on a host (`Scripts/lab entry`), by host. Commands started with them need no script, which would take
    /// more processor time than most of them.
    private final class Entries: Sendable {
        private let words = Mutex<[String: [String]]>([:])

        subscript(host: String) -> [String]? {
            get { words.withLock { $0[host] } }
            set { words.withLock { $0[host] = newValue } }
        }

        func removeAll() { words.withLock { $0 = [:] } }
    }

    /// Whether this machine can run a lab, or the reason why not.
    static let availability: (isAvailable: Bool, reason: String) = {
        guard !isUnwanted else { return (false, "HEXLIST_SKIP_LAB=1 is set.") }
        guard Checkout.hasPrograms else { return (false, "And \(Checkout.programs) has no hexlistd and hexlist: build first.") }
        do {
            let (said, status) = try ChildProcess.answer(script, ["check"])
            return (status == 0, said.split(separator: "\n").first.map(String.init) ?? "")
        } catch {
            return (false, "\(script) does not run: \(error)")
        }
    }()

    static var isAvailable: Bool { availability.isAvailable }

    /// Whether suites that need a lab are to be skipped.
    static let isUnwanted = ProcessInfo.processInfo.environment["HEXLIST_SKIP_LAB"] == "1"
    /// Whether these tests run in CI: GitHub, GitLab and others set CI, and so does .ci/run.
    static let isCI = !["", "0", "false"].contains(ProcessInfo.processInfo.environment["CI"] ?? "")

    /// The number of IP versions in which each service is announced: IPv4, and IPv6 if the kernel has it.
    static let families = FileManager.default.fileExists(atPath: "/proc/sys/net/ipv6") ? 2 : 1

    /// Creates the hosts, runs the test, and removes them in any case.
    static func with(_ hosts: String..., test: (Lab) async throws -> Void) async throws {
        let lab = Lab(name: "t\(ProcessInfo.processInfo.processIdentifier)-\(UInt16.random(in: 0...UInt16.max))")
        // The lab of a test program that died is removed by the next `up`, which finds its owner by this id.
        try await lab.run(["up", "--owner", "\(ProcessInfo.processInfo.processIdentifier)"] + hosts)
        do {
            try await test(lab)
        } catch {
            print(await lab.logs(of: hosts))
            _ = try? await lab.run(["down"])  // the first failure is the one to report
            throw error
        }
        try await lab.run(["down"])
    }

    /// Runs Scripts/lab for this lab.
    /// - Parameter expecting: the exit status; `nil` takes any.
    @discardableResult
    func run(
        _ arguments: [String], input: [UInt8] = [], expecting: Int32? = 0, seconds: Int = Patience.command
    ) async throws -> Command.Output {
        let output = try await output(arguments, input, seconds)
        if let expecting, output.status != expecting { throw Command.Failure("not status \(expecting): \(output)") }
        return output
    }

    private func output(_ arguments: [String], _ input: [UInt8], _ seconds: Int) async throws -> Command.Output {
        func script(_ arguments: [String]) async throws -> Command.Output {
            try await Command.run([Self.script] + arguments, input: input, environment: environment, seconds: seconds)
        }
        // The entry of a host is valid until its power is cut.
        guard let host = Self.entered(by: arguments) else {
            if arguments.first?.hasPrefix("power-") == true { entries.removeAll() }
            return try await script(arguments)
        }
        if entries[host] == nil {
            let entry = try await script(["entry", host])
            guard entry.status == 0 else { return entry }
            entries[host] = entry.out.split(separator: "\0").map(String.init)
        }
        var output = try await Command.run(command(arguments), input: input, seconds: seconds)
        output.command = arguments.joined(separator: " ")
        return output
    }

    /// The host on which arguments of Scripts/lab run a command.
    private static func entered(by arguments: [String]) -> String? {
        switch arguments.first {
        case "hexlist" where arguments.count > 1, "exec" where arguments.count > 2: arguments[1]
        default: nil
        }
    }

    /// The command line for arguments of Scripts/lab: without the script for a command on a host with a known entry.
    private func command(_ arguments: [String]) -> [String] {
        guard let host = Self.entered(by: arguments), let entry = entries[host] else { return [Self.script] + arguments }
        return entry + (arguments[0] == "hexlist" ? [Checkout.hexlist] : []) + arguments.dropFirst(2)
    }

    private var environment: [String: String] { ["HEXLIST_LAB": name, "HEXLIST_BIN": Checkout.programs] }

    /// The end of each daemon's log, for a failed test.
    private func logs(of hosts: [String]) async -> String {
        var text = ""
        for host in hosts {
            guard let path = try? await path("log", on: host), let log = try? String(contentsOfFile: path, encoding: .utf8) else {
                continue
            }
            text += "--- hexlistd on \(host)\n\(log.suffix(6_000))\n"
        }
        return text
    }

    // MARK: Daemons

    func start(_ hosts: String...) async throws {
        for host in hosts { try await run(["start", host]) }
    }

    func start(_ host: String, arguments: [String]) async throws { try await run(["start", host] + arguments) }

    func stop(_ host: String) async throws { try await run(["stop", host]) }

    func kill(_ host: String) async throws { try await run(["kill", host]) }

    func path(_ what: String, on host: String) async throws -> String {
        try await run(["path", host, what]).out.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Writes a daemon's configuration. It is read at its start or on SIGHUP.
    func configure(_ host: String, _ yaml: String) async throws {
        try Data(yaml.utf8).write(to: URL(fileURLWithPath: try await path("config", on: host)))
    }

    // MARK: hexlist

    @discardableResult
    func hexlist(_ host: String, _ arguments: String..., expecting: Int32? = 0) async throws -> Command.Output {
        try await run(["hexlist", host] + Self.patient(arguments, expecting), expecting: expecting)
    }

    /// The output of a command with `--json`, one object per line.
    func rows<Row: Decodable>(
        _ host: String, _ arguments: String..., expecting: Int32 = 0, as type: Row.Type = Row.self
    ) async throws -> [Row] {
        try JSONLines.decode(try await run(["hexlist", host] + Self.patient(arguments, expecting) + ["--json"], expecting: expecting).out)
    }

    /// Adds the tests' timeout to a `send` that is expected to end as stored, in place of a user's 10 s.
    private static func patient(_ arguments: [String], _ status: Int32?) -> [String] {
        let isMeant = arguments.first == "send" && status == 0 && !arguments.contains("--timeout")
        return isMeant ? arguments + ["--timeout", "\(Patience.state)s"] : arguments
    }

    func status(_ host: String) async throws -> StatusRow {
        let rows: [StatusRow] = try await rows(host, "status")
        guard let status = rows.first else { throw Command.Failure("status --json printed nothing") }
        return status
    }

    func peers(_ host: String) async throws -> [PeerRow] { try await rows(host, "peers") }

    func uuid(_ host: String) async throws -> String { try await status(host).uuid }

    /// Returns once `host` has verified the given number of peers.
    @discardableResult
    func awaitPeers(_ host: String, _ count: Int = 1) async throws -> [PeerRow] {
        try await rows(host, "peers", "--wait", "\(count)", "--timeout", "\(Patience.state)s")
    }

    /// Starts both, and returns their UUIDs once each has verified the other.
    func startAndMeet(_ one: String = "h1", _ other: String = "h2") async throws -> (one: String, other: String) {
        try await start(one, other)
        try await awaitPeers(one)
        try await awaitPeers(other)
        return (try await uuid(one), try await uuid(other))
    }

    /// Starts both, and returns once each has verified the other and found the other's announcement and its own, so that all effects of the
    /// start are over. A session alone opens earlier, because one dial is enough.
    func startAndSettle(_ one: String = "h1", _ other: String = "h2") async throws -> (one: String, other: String) {
        let uuid = try await startAndMeet(one, other)
        for (host, peer) in [(one, uuid.other), (other, uuid.one)] {
            try await awaitStatus(host) { $0.avahi.state == "running" }
            try await awaitList(host) { list in
                list.contains { $0.reason == "self" }
                    && list.contains { $0.uuid == peer && $0.state == "verified" && $0.endpoints.contains { $0.via != "inbound" } }
            }
        }
        return uuid
    }

    /// Makes two hosts trust each other.
    func trustEachOther(_ one: (host: String, uuid: String), _ other: (host: String, uuid: String)) async throws {
        try await hexlist(one.host, "peer", "trust", other.uuid)
        try await hexlist(other.host, "peer", "trust", one.uuid)
    }

    func show(_ host: String, _ hex: Int64) async throws -> (row: HexRow, json: String) {
        let json = try await hexlist(host, "show", "\(hex)", "--json").out
        guard let row = try JSONLines.decode(json, as: HexRow.self).first else { throw Command.Failure("show --json printed nothing") }
        return (row, json)
    }

    /// Posts to the local API directly, without the command line.
    func post(_ host: String, _ target: String, body: [UInt8]) async throws -> Command.Output {
        let socket = try await path("socket", on: host)
        return try await run(
            [
                "exec", host, "curl", "--silent", "--show-error", "--fail-with-body", "--unix-socket", socket, "--header",
                "content-type: application/json", "--data-binary", "@-", "http://localhost\(target)",
            ], input: body)
    }

    @discardableResult
    func exec(_ host: String, _ command: String..., expecting: Int32? = 0) async throws -> Command.Output {
        try await run(["exec", host] + command, expecting: expecting)
    }

    /// Adds an active interface with the address that Docker gives its bridge on every machine.
    /// - Parameter kind: the type and options for `ip link add NAME type`.
    func addInterface(_ name: String, _ kind: String..., on host: String) async throws {
        try await run(["exec", host, "ip", "link", "add", name, "type"] + kind)
        try await exec(host, "ip", "address", "add", "172.17.0.1/16", "dev", name)
        try await exec(host, "ip", "link", "set", name, "up")
    }

    /// An announcement of another program, avahi-publish. It ends with the host, or when it is stopped.
    @discardableResult
    func publish(
        _ name: String, on host: String, port: Int, host target: String? = nil, txt: [String] = []
    ) async throws -> RunningCommand {
        let publisher = try running(
            ["exec", host, "avahi-publish", "-s"] + (target.map { ["-H", $0] } ?? []) + [name, "_hexlist._tcp", "\(port)"] + txt,
            seconds: Patience.server)
        _ = try await publisher.first { $0.hasPrefix("Established") ? true : nil }
        return publisher
    }

    // MARK: Waiting

    /// Queries the list, including ghosts, until `isWanted` returns true for it.
    @discardableResult
    func awaitList(
        _ host: String, seconds: Int = Patience.state, until isWanted: ([PeerRow]) -> Bool
    ) async throws -> [PeerRow] {
        var list: [PeerRow] = []
        try await Patience.until(
            seconds: seconds, or: "\n" + list.map { "\($0.name) \($0.state) \($0.reason ?? "") \($0.why ?? "")" }.joined(separator: "\n")
        ) {
            list = try await rows(host, "peers", "--all")
            return isWanted(list)
        }
        return list
    }

    func awaitStatus(_ host: String, seconds: Int = Patience.state, until isWanted: (StatusRow) -> Bool) async throws {
        var status: StatusRow?
        try await Patience.until(seconds: seconds, or: "\(String(describing: status))") {
            status = try await self.status(host)
            return status.map(isWanted) == true
        }
    }

    /// The first event of a type after a number, once it exists.
    @discardableResult
    func awaitEvent(_ host: String, _ type: String, peer: String? = nil, after number: Int64 = 0) async throws -> EventRow {
        let stream = try follow(host, ["events", "--since", "\(number)", "--follow", "--json"])
        let event = try await stream.first { line -> EventRow? in
            guard let event = try JSONLines.decode(line, as: EventRow.self).first else { return nil }
            return event.type == type && (peer == nil || event.peer == peer) ? event : nil
        }
        await stream.stop()
        return event
    }

    func lastEvent(_ host: String) async throws -> Int64 {
        let events: [EventRow] = try await rows(host, "events")
        return events.last?.number ?? 0
    }

    /// A hexlist command with continuous output.
    func follow(_ host: String, _ arguments: [String]) throws -> RunningCommand { try running(["hexlist", host] + arguments) }

    /// A Scripts/lab command with continuous output.
    func running(_ arguments: [String], seconds: Int = Patience.command) throws -> RunningCommand {
        try RunningCommand(command(arguments), environment: environment, seconds: seconds)
    }
}
