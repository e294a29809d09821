/// An error as a person or a script meets it: what happened, and what to try.
public struct HexlistError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Stable: clients branch on it. The command line's exit codes and the API's statuses follow from it.
    public enum Code: String, Sendable, CaseIterable {
        case badRequest, tooLarge, headTooLarge, forbidden, notFound, methodNotAllowed, ambiguous, daemonUnreachable, versionMismatch,
            alreadyRunning
        case configuration, identity, storeUnusable, portInUse, stateFolder
        case keyConflict, outboxFull, storageFull, gone, recentlyFailed, refused, notSupported, `internal`
    }

    public var code: Code
    /// What happened, with the values.
    public var message: String
    /// What to try.
    public var hint: String?

    public init(_ code: Code, _ message: String, hint: String? = nil) {
        self.code = code
        self.message = message
        self.hint = hint
    }

    public var description: String { hint.map { "\(message)\n\($0)" } ?? message }
}
