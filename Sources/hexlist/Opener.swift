import HexlistModel
import HexlistSystem

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
        let end: Program.End
        do {
            end = try Program(program, [link]).runHere()
        } catch {
            throw HexlistError(
                .internal, "`\(program)` cannot be started (\(error)).",
                hint: "Name another program with --with, or with the variable BROWSER.")
        }
        let how: String
        switch end {
        case .exited(0): return
        case .exited(let status): how = "ended with status \(status)"
        case .signalled(let number): how = "was ended by signal \(number)"
        case .timedOut, .stopped, .notStarted: how = "did not end by itself"
        }
        throw HexlistError(.internal, "`\(program)` \(how).", hint: "Name another program with --with, or with the variable BROWSER.")
    }
}
