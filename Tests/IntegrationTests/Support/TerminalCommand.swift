import Foundation

/// A program on its own terminal, with a scripted user.
struct TerminalCommand: Sendable {
    /// A text to wait for in the program's output, and the reply to type; `{digits}` stands for the six digits shown last.
    struct Step: Sendable {
        var wait: String
        var type: String

        /// Ctrl-D and Ctrl-C, as sent by a keyboard.
        static let end = "\u{04}"
        static let interrupt = "\u{03}"
    }

    /// Runs the program until it exits. Its combined output is in `out`; status 97 if an expected text did not appear.
    /// - Parameter typed: a file that is created when the first reply was typed.
    static func run(
        _ arguments: [String], environment: [String: String], steps: [Step], typed: String = "/dev/null", seconds: Int = Patience.command
    ) async throws -> Command.Output {
        let script = steps.flatMap { [$0.wait, $0.type] }
        return try await Command.run(
            ["/usr/bin/python3", "-I", "-c", program, typed, "\(script.count)"] + script + arguments, environment: environment,
            seconds: seconds)
    }

    private static let program = """
        import os, pty, re, sys
        typed, count = sys.argv[1], int(sys.argv[2])
        script, command = sys.argv[3:3 + count], sys.argv[3 + count:]
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(command[0], command)
        seen = b""
        shown = b""
        while True:
            try:
                piece = os.read(terminal, 4096)
            except OSError:
                break
            if not piece:
                break
            seen += piece
            shown += piece
            while script and script[0].encode() in seen:
                seen = seen.split(script[0].encode(), 1)[1]
                digits = re.findall(rb"\\n    ([0-9]{6})\\r?\\n", shown)
                os.write(terminal, script[1].encode().replace(b"{digits}", digits[-1] if digits else b""))
                script = script[2:]
                open(typed, "a").close()
        sys.stdout.buffer.write(shown.replace(b"\\r\\n", b"\\n"))
        sys.stdout.flush()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        sys.exit(97 if script else status if status >= 0 else 128 - status)
        """
}
