// Runs system programs to get their output.
extension Program {
    public struct CommandOutput: Equatable, Sendable {
        /// The exit status as in a shell: 128 plus the signal's number if a signal ended the program.
        public var status: Int
        /// Standard output and, unless dropped, standard error, in the order they were written.
        public var text: String
    }

    /// Maximum bytes of output; SIGPIPE ends a program that writes more. A firewall's ruleset may be long.
    private static let maximumBytes = 16 << 20
    private static let timeoutMilliseconds: Int64 = 5_000

    /// Runs the program with English output and without the user's environment.
    /// - Parameter variables: the environment of this process. Only the address of the system's D-Bus is passed on.
    /// - Returns: `nil` if the program cannot be started or takes longer than 5 s.
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
