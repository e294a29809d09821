// Programs of the system that are asked one question.
extension Program {
    public struct Answer: Equatable, Sendable {
        /// The exit status as in a shell: 128 and the signal's number for a program that a signal ended.
        public var status: Int
        /// Standard output and, unless it is dropped, standard error, in the order they were written.
        public var text: String
    }

    /// The most bytes of an answer. A ruleset may be long; a program that writes more is ended by SIGPIPE.
    private static let answerBytes = 16 << 20
    private static let answerMilliseconds: Int64 = 5_000

    /// Runs the program in English, without the user's environment.
    /// - Parameter variables: the environment variables of this process, of which the address of the system's D-Bus is passed on.
    /// - Returns: `nil` if the program cannot be started, or takes longer than 5 s.
    public func answer(_ variables: [String: String] = [:]) async -> Answer? {
        let bus = "DBUS_SYSTEM_BUS_ADDRESS"
        let environment =
            ["LC_ALL=C", "PATH=\(Self.systemFolders.joined(separator: ":"))"] + (variables[bus].map { ["\(bus)=\($0)"] } ?? [])
        let outcome = await run(environment: environment, milliseconds: Self.answerMilliseconds, outputBytes: Self.answerBytes)
        let text = String(decoding: outcome.output, as: UTF8.self)
        return switch outcome.end {
        case .exited(let status): Answer(status: status, text: text)
        case .signalled(let number): Answer(status: 128 + number, text: text)
        case .timedOut, .stopped, .notStarted: nil
        }
    }
}
