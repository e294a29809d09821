public import HexlistJSON

/// One step of `hexlist doctor`: what was looked at, how it is, and what to do.
public struct DoctorStep: JSONShape, Sendable, Equatable {
    /// A newer daemon may know more.
    public enum State: String, Sendable, CaseIterable {
        case ok, warning, failed
    }

    /// What was looked at: `store`, `multicast`, `peer.tls`, …
    public var step: String
    public var state: State
    /// What was found. May hold text of peers: clean it where it is shown.
    public var message: String
    /// What to do, one thing a line.
    public var advice: [String]
    /// An error's code, where the step could not be taken at all: `notFound`, `ambiguous`, `daemonUnreachable`.
    public var code: String?

    public init(_ step: String, _ state: State, _ message: String, advice: [String] = [], code: String? = nil) {
        self.step = step
        self.state = state
        self.message = message
        self.advice = advice
        self.code = code
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("step", step)
            $0.member("state", state.rawValue)
            $0.member("message", message)
            if !advice.isEmpty { $0.member("advice", advice) }
            $0.member("code", code)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        step = try object.value("step")
        state = try object.choice("state")
        message = try object.value("message")
        advice = try object.optional("advice") ?? []
        code = try object.optional("code")
    }
}

/// All steps, in the order they were taken. `ok` is whether none failed; warnings do not fail.
public struct DoctorReport: JSONShape, Sendable, Equatable {
    public var steps: [DoctorStep]

    public init(steps: [DoctorStep]) { self.steps = steps }

    public var isFine: Bool { !steps.contains { $0.state == .failed } }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("ok", isFine)
            $0.member("steps", steps)
        }
    }

    public init(json: JSONValue) throws(JSONFault) { steps = try JSONObject(json).value("steps") }
}
