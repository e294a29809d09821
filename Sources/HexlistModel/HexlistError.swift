/// An error as a person or a script sees it: what happened and what to try.
public struct HexlistError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A stable name of the error, for clients to branch on. The command line's exit codes and the API's statuses derive from it.
    public enum Code: String, Sendable, CaseIterable {
        case badRequest, tooLarge, headTooLarge, forbidden, notFound, methodNotAllowed, ambiguous, daemonUnreachable, versionMismatch,
            alreadyRunning
        case configuration, identity, storeUnusable, portInUse, stateFolder
        case keyConflict, outboxFull, storageFull, gone, recentlyFailed, refused, notSupported, `internal`
    }

    public var code: Code
    /// A sentence that says what happened, with the values.
    public var message: String
    /// A sentence that says what to try.
    public var hint: String?

    public init(_ code: Code, _ message: String, hint: String? = nil) {
        self.code = code
        self.message = message
        self.hint = hint
    }

    public var description: String { hint.map { "\(message)\n\($0)" } ?? message }
}
