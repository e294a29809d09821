public import HexlistJSON

/// One check of `hexlist doctor`: its subject, its result, and advice.
public struct DoctorStep: JSONShape, Sendable, Equatable {
    /// The result of a check. A newer daemon may have more states.
    public enum State: String, JSONWord, Sendable {
        case ok, warning, failed
    }

    /// The name of the check: `store`, `multicast`, `peer.tls`, …
    public var step: String
    public var state: State
    /// The result as a text. May contain text of peers: clean it before display.
    public var message: String
    /// Advice, one item per line.
    @OmittedIfEmpty public var advice: [String]
    /// The error code if the check could not be made: `notFound`, `ambiguous`, `daemonUnreachable`.
    public var code: String?

    public init(_ step: String, _ state: State, _ message: String, advice: [String] = [], code: String? = nil) {
        self.step = step
        self.state = state
        self.message = message
        self.advice = advice
        self.code = code
    }
}

/// The report of `hexlist doctor`: all checks, in order. The JSON member `ok` is true if no check failed; warnings are not failures.
public struct DoctorReport: JSONShape, Sendable, Equatable {
    public var steps: [DoctorStep]

    public init(steps: [DoctorStep]) { self.steps = steps }

    public var isFine: Bool { !steps.contains { $0.state == .failed } }

    private enum CodingKeys: String, CodingKey {
        case ok, steps
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(isFine, forKey: .ok)
        try container.encode(steps, forKey: .steps)
    }

    public init(from decoder: any Decoder) throws {
        steps = try decoder.container(keyedBy: CodingKeys.self).decode([DoctorStep].self, forKey: .steps)
    }
}
