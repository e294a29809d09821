import HexlistModel

/// The state of a replica that another replica has received completely: all rows with numbers up to `sequence`.
public struct ListCursor: Hashable, Sendable {
    public var replica: ReplicaNumber
    public var sequence: Int64

    public init(replica: ReplicaNumber, sequence: Int64) {
        self.replica = replica
        self.sequence = sequence
    }
}

/// The target (path and query) of an HTTP request for lists (Docs/Protocol.md, "Lists"). Parsing does not check whether the peer may have
/// the list.
///
///     /lists          /lists/<UUID>?[replica=<16 digits>&after=<number>&]as=<16 digits>
public enum ListRequestTarget: Equatable, Sendable, CustomStringConvertible {
    /// The lists that the requesting peer may see (`ListOverview`).
    case overview
    case page(ListNode.ID, ListPageRequest)

    /// Maximum bytes of a target: that of a page with the greatest number.
    public static let maximumBytes = 128

    /// Parses a request target. Returns `nil`, to be answered with 404, for any form other than that of `description`, except for the
    /// letter case of hexadecimal digits.
    public init?(_ target: some Collection<UInt8>) {
        guard target.count <= Self.maximumBytes else { return nil }
        if target.elementsEqual("/lists".utf8) {
            self = .overview
            return
        }
        guard target.starts(with: "/lists/".utf8) else { return nil }
        let parts = target.dropFirst("/lists/".utf8.count).split(separator: UInt8(ascii: "?"), omittingEmptySubsequences: false)
        guard parts.count == 2, let list = UUIDBytes(String(decoding: parts[0], as: UTF8.self)).flatMap({ ListNode.ID($0) }),
            list.kind == .hex, let request = ListPageRequest(query: parts[1])
        else { return nil }
        self = .page(list, request)
    }

    public init?(_ target: some StringProtocol) { self.init(Array(target.utf8)) }

    public var description: String {
        switch self {
        case .overview: "/lists"
        case .page(let list, let request): "/lists/\(list.uuid)?\(request.query)"
        }
    }
}

/// A request for a page of a list.
public struct ListPageRequest: Hashable, Sendable {
    /// The rows that the requester has received of the answering replica; `nil` for none.
    public var cursor: ListCursor?
    /// The requester's own replica number. Rows that came from it unaltered are left out.
    public var requester: ReplicaNumber

    public init(cursor: ListCursor?, requester: ReplicaNumber) {
        self.cursor = cursor
        self.requester = requester
    }

    /// Parses `[replica=<16 digits>&after=<number>&]as=<16 digits>`.
    fileprivate init?(query: some Collection<UInt8>) {
        let parts = query.split(separator: UInt8(ascii: "&"), maxSplits: 3, omittingEmptySubsequences: false)
        func value(_ index: Int, _ name: StaticString) -> String? {
            let name = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
            return parts[index].starts(with: name) ? String(decoding: parts[index].dropFirst(name.count), as: UTF8.self) : nil
        }
        switch parts.count {
        case 1:
            guard let requester = value(0, "as=").flatMap({ ReplicaNumber($0) }) else { return nil }
            self.init(cursor: nil, requester: requester)
        case 3:
            guard let replica = value(0, "replica=").flatMap({ ReplicaNumber($0) }), let digits = value(1, "after="),
                let sequence = Int64(digits), digits.utf8.elementsEqual(String(sequence).utf8), sequence >= 0,
                let requester = value(2, "as=").flatMap({ ReplicaNumber($0) })
            else { return nil }
            self.init(cursor: ListCursor(replica: replica, sequence: sequence), requester: requester)
        default: return nil
        }
    }

    fileprivate var query: String {
        (cursor.map { "replica=\($0.replica)&after=\($0.sequence)&" } ?? "") + "as=\(requester)"
    }
}
