public import HexlistJSON
import HexlistModel

/// One line of the reply to a bulk send (`POST /v1/sends` with a stream of hexes). The last line is always a `summary`.
public enum BulkReplyLine: JSONCoded, Sendable, Equatable {
    /// `{"line","code","message"}`
    case refused(BulkRefusal)
    /// `{"line","warning"}`
    case warning(BulkWarning)
    /// `{"line"?,"outboxID","messageID","peer","state","code"?,"message"?}`
    case outcome(BulkOutcome)
    /// `{"progress":{…}}`
    case progress(BulkSummary)
    /// `{"error":{…}}`: the stream was aborted. Hexes of lines that were accepted before stay in the outbox.
    case error(ErrorJSON)
    /// `{"summary":{…}}`
    case summary(BulkSummary)
    /// A line added by a newer daemon; clients ignore it.
    case other(JSONValue)

    public func write(to json: inout JSONWriter) {
        switch self {
        case .refused(let refusal): refusal.write(to: &json)
        case .warning(let warning): warning.write(to: &json)
        case .outcome(let outcome): outcome.write(to: &json)
        case .progress(let summary): json.object { $0.member("progress", summary) }
        case .error(let error): error.write(to: &json)
        case .summary(let summary): json.object { $0.member("summary", summary) }
        case .other(let value): value.write(to: &json)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        if object["outboxID"] != nil {
            self = .outcome(try BulkOutcome(json: json))
        } else if object["line"] != nil, object["code"] != nil {
            self = .refused(try BulkRefusal(json: json))
        } else if object["warning"] != nil {
            self = .warning(try BulkWarning(json: json))
        } else if object["progress"] != nil {
            self = .progress(try object.value("progress"))
        } else if object["summary"] != nil {
            self = .summary(try object.value("summary"))
        } else if object["error"] != nil {
            self = .error(try ErrorJSON(json: json))
        } else {
            self = .other(json)
        }
    }
}

/// A line of the input that was refused.
public struct BulkRefusal: JSONShape, Sendable, Equatable {
    /// The number of the line, from 1; blank lines count.
    public var line: Int
    /// The error code: `malformed`, `tooLarge`, `tooManyLinks`, `noLink`, `keyConflict`, `recentlyFailed` or another one. A newer daemon
    /// may send further codes.
    public var code: String
    /// The error message. It may quote the input: clean it before display.
    public var message: String

    public init(line: Int, code: String, message: String) {
        self.line = line
        self.code = code
        self.message = message
    }
}

/// A warning about an accepted line that probably has a mistake, such as a misspelt member.
public struct BulkWarning: JSONShape, Sendable, Equatable {
    /// The number of the line, from 1; blank lines count.
    public var line: Int
    /// The text of the warning. It quotes the input: clean it before display.
    public var warning: String

    public init(line: Int, warning: String) {
        self.line = line
        self.warning = warning
    }
}

/// The outcome of one line for one peer. JSON coding is written by hand for speed: a bulk send has an outcome for each hex and peer.
public struct BulkOutcome: JSONCoded, Sendable, Equatable {
    /// The number of the input line, from 1; `nil` if an earlier send added the outbox row, or if the daemon no longer knows the line.
    public var line: Int?
    public var send: SendOutcome

    public init(line: Int?, send: SendOutcome) {
        self.line = line
        self.send = send
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("line", line)
            send.writeMembers(to: &$0)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        line = try JSONObject(json).optional("line")
        send = try SendOutcome(json: json)
    }
}

/// The counts of a bulk send, while it runs or at its end. `lines` and `invalid` are numbers of lines. The other counts are numbers of
/// outbox rows: one row for each hex and peer. `accepted` is the sum of `stored`, `held`, `rejected`, `failed` and `queued`.
public struct BulkSummary: JSONShape, Sendable, Equatable {
    /// Lines of the input; blank ones are not counted.
    public var lines: Int
    /// Number of lines that were refused.
    public var invalid: Int
    /// Number of rows that were added to the outbox.
    public var accepted: Int
    public var stored: Int
    public var held: Int
    public var rejected: Int
    /// Rows that failed, expired or were cancelled.
    public var failed: Int
    /// Number of rows that are not confirmed yet.
    public var queued: Int
    /// Number of rows, included in `accepted`, that an earlier send with the same idempotency key had created.
    @OmittedIfEmpty public var earlier: Int
    /// Seconds since the request began.
    public var seconds: Double
    /// Whether all of the input was read, and each line accepted or refused; set only in `progress`.
    @OmittedIfEmpty public var ended: Bool
    /// Number of refused lines, included in `invalid`, that the reply does not list, because the client did not read it fast enough.
    @OmittedIfEmpty public var untold: Int

    public init(
        lines: Int = 0, invalid: Int = 0, accepted: Int = 0, stored: Int = 0, held: Int = 0, rejected: Int = 0, failed: Int = 0,
        queued: Int = 0, earlier: Int = 0, seconds: Double = 0, ended: Bool = false, untold: Int = 0
    ) {
        self.lines = lines
        self.invalid = invalid
        self.accepted = accepted
        self.stored = stored
        self.held = held
        self.rejected = rejected
        self.failed = failed
        self.queued = queued
        self.earlier = earlier
        self.seconds = seconds
        self.ended = ended
        self.untold = untold
    }

    /// Returns the exit status of `hexlist` for a bulk send. If several apply, it is the first in the order 1 (failed), 4 (refused), 2 (bad
    /// input), 3 (pending), 0 (done).
    public func exitStatus(wait: SendWaitGoal) -> ExitStatus {
        var statuses: [ExitStatus] = []
        if failed > 0 { statuses.append(.failed) }
        if rejected > 0 { statuses.append(.refused) }
        if invalid > 0 { statuses.append(.usage) }
        if held > 0 || queued > 0 && wait == .stored { statuses.append(.pending) }
        return .combined(statuses)
    }
}
