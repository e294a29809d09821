/// An error for users and scripts, with a message and a hint.
public struct HexlistError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A stable code by which clients can distinguish errors. It determines the exit code of the command line and the HTTP status of the
    /// API.
    public enum Code: String, Sendable, CaseIterable {
        case badRequest, tooLarge, headTooLarge, forbidden, notFound, methodNotAllowed, ambiguous, daemonUnreachable, versionMismatch,
            alreadyRunning
        case configuration, identity, storeUnusable, portInUse, stateFolder
        case keyConflict, changed, outboxFull, storageFull, gone, recentlyFailed, refused, notSupported, `internal`
    }

    public var code: Code
    /// A sentence that states what happened, including the relevant values.
    public var message: String
    /// A sentence that suggests what the user can try.
    public var hint: String?

    public init(_ code: Code, _ message: String, hint: String? = nil) {
        self.code = code
        self.message = message
        self.hint = hint
    }

    public var description: String { hint.map { "\(message)\n\($0)" } ?? message }
}
