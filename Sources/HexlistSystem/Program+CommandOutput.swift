// Runs system programs and returns their output.
extension Program {
    public struct CommandOutput: Equatable, Sendable {
        /// The exit status as a shell reports it: if a signal ended the program, 128 plus the number of the signal.
        public var status: Int
        /// Standard output and, unless `dropsErrors` is set, standard error, in the order in which they were written.
        public var text: String
    }

    /// Maximum bytes of output. A program that writes more is ended by SIGPIPE. The limit allows for long firewall rulesets.
    private static let maximumBytes = 16 << 20
    private static let timeoutMilliseconds: Int64 = 5_000

    /// Runs the program with messages in English and without the user's environment.
    /// - Parameter variables: the environment of this process, of which only the address of the system's D-Bus is passed to the program.
    /// - Returns: `nil` if the program cannot be started or does not end within 5 s.
    public func answer(_ variables: [String: String] = [:]) async -> CommandOutput? {
        let bus = "DBUS_SYSTEM_BUS_ADDRESS"
        let environment =
            ["LC_ALL=C", "PATH=\(Self.systemFolders.joined(separator: ":"))"] + (variables[bus].map { ["\(bus)=\($0)"] } ?? [])
        let outcome = await run(environment: environment, milliseconds: Self.timeoutMilliseconds, outputBytes: Self.maximumBytes)
        let text = String(decoding: outcome.output, as: UTF8.self)
        return switch outcome.end {
        case .exited(let status): CommandOutput(status: status, text: text)
        case .signalled(let number): CommandOutput(status: 128 + number, text: text)
        case .timedOut, .stopped, .notStarted: nil
        }
    }
}
