import ArgumentParser
import HexlistModel

/// A command-line argument that names a file or folder of a service: `SERVICE:PATH`, such as `bob:talks/2026`. An empty path means the top
/// folder.
struct ServiceArgument: ExpressibleByArgument, Equatable {
    var service: String
    var path: String

    /// Parses an argument. Returns `nil` for a text without `SERVICE:`, a local path, or a URL.
    init?(argument: String) {
        let parts = argument.utf8.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, !parts[0].contains(UInt8(ascii: "/")), !parts[1].starts(with: "//".utf8) else {
            return nil
        }
        service = String(decoding: parts[0], as: UTF8.self)
        path = String(decoding: parts[1], as: UTF8.self)
    }

    var description: String { "\(service):\(path)" }

    /// The last component of the path; the name of the service if the path is empty.
    var name: String {
        path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(decoding: $0, as: UTF8.self) } ?? service
    }

    static var defaultCompletionKind: CompletionKind { .services }
}
