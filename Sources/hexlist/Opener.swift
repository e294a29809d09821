import Glibc
import HexlistModel

/// Passes a link to a program of the user: without a shell, and with nothing but the link as its argument.
enum Opener {
    /// - Parameters:
    ///   - named: the program the user named.
    ///   - browser: the value of `BROWSER`. Used only if it is the name of one program; xdg-open handles its other forms.
    static func program(_ named: String?, browser: String?) -> String {
        if let named { return named }
        let separators: [Character] = [" ", "\t", ":", "%"]
        if let browser, !browser.isEmpty, !browser.contains(where: separators.contains) { return browser }
        return "xdg-open"
    }

    /// Runs the program and waits until it has ended.
    /// - Throws: `HexlistError` if it cannot be started or fails.
    static func run(_ program: String, link: String) throws(HexlistError) {
        // A link begins with a scheme, so the program does not take it for an option.
        guard let first = link.utf8.first, first != UInt8(ascii: "-") else { throw HexlistError(.badRequest, "This is no link to open.") }
        var arguments = [strdup(program), strdup(link), nil]
        defer { for argument in arguments { free(argument) } }
        // This program ignores SIGPIPE; the started one must not.
        var attributes = posix_spawnattr_t()
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
        var pid: pid_t = 0
        let error = posix_spawnp(&pid, program, nil, &attributes, &arguments, environ)
        guard error == 0 else {
            throw HexlistError(
                .internal, "`\(program)` cannot be started (\(String(cString: strerror(error)))).",
                hint: "Name another program with --with, or with the variable BROWSER.")
        }
        var status: CInt = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        guard status == 0 else {
            let how = status & 0x7F == 0 ? "ended with status \(status >> 8 & 0xFF)" : "was ended by signal \(status & 0x7F)"
            throw HexlistError(.internal, "`\(program)` \(how).", hint: "Name another program with --with, or with the variable BROWSER.")
        }
    }
}
