import HexlistModel
import HexlistSystem

/// Opens a link with a program of the user. Uses no shell, and passes the link as the only argument.
enum LinkProgram {
    /// Returns the program that opens links.
    /// - Parameters:
    ///   - named: the program that the user gave; `nil` for none.
    ///   - browser: the value of `BROWSER`. Used only if it names a single program; lists and templates are left to xdg-open.
    static func program(_ named: String?, browser: String?) -> String {
        if let named { return named }
        let separators: [Character] = [" ", "\t", ":", "%"]
        if let browser, !browser.isEmpty, !browser.contains(where: separators.contains) { return browser }
        return "xdg-open"
    }

    /// Runs the program and waits until it exits.
    /// - Throws: `HexlistError` if it cannot be started or fails.
    static func run(_ program: String, link: String) throws(HexlistError) {
        // A leading dash would make the program treat the link as an option.
        guard let first = link.utf8.first, first != UInt8(ascii: "-") else {
            throw HexlistError(.badRequest, "This link cannot be opened.")
        }
        let end: Program.Termination
        do {
            end = try Program(program, [link]).runHere()
        } catch {
            throw HexlistError(
                .internal, "`\(program)` cannot be started (\(error)).",
                hint: "Choose another program with --with, or with the variable BROWSER.")
        }
        let how: String
        switch end {
        case .exited(0): return
        case .exited(let status): how = "ended with status \(status)"
        case .signalled(let number): how = "was killed by signal \(number)"
        case .timedOut, .stopped, .notStarted: how = "did not end"
        }
        throw HexlistError(.internal, "`\(program)` \(how).", hint: "Choose another program with --with, or with the variable BROWSER.")
    }
}
