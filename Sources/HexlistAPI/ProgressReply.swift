public import HexlistJSON

/// The result of an operation, as the last line of a stream of progress lines.
public protocol ProgressResult: JSONShape, Sendable, Equatable {
    associatedtype Progress: JSONShape & Sendable & Equatable
    /// The name of the member that contains the result, in the last line.
    static var member: String { get }
}

/// One line of a progress stream. The last one is the result or an error.
public enum ProgressReply<Result: ProgressResult>: JSONCoded, Sendable, Equatable {
    /// `{"progress":{…}}`
    case progress(Result.Progress)
    /// `{"<Result.member>":{…}}`
    case result(Result)
    /// `{"error":{…}}`: the operation failed. A check of links keeps the results that it reported before; other operations changed nothing.
    case error(ErrorJSON)
    /// A line added by a newer daemon; clients ignore it.
    case other(JSONValue)

    public func write(to json: inout JSONWriter) {
        switch self {
        case .progress(let progress): json.object { $0.member("progress", progress) }
        case .result(let result): json.object { $0.member(Result.member, result) }
        case .error(let error): error.write(to: &json)
        case .other(let value): value.write(to: &json)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        if object["progress"] != nil {
            self = .progress(try object.value("progress"))
        } else if object[Result.member] != nil {
            self = .result(try object.value(Result.member))
        } else if object["error"] != nil {
            self = .error(try ErrorJSON(json: json))
        } else {
            self = .other(json)
        }
    }
}
