import Foundation
import TestSupport

/// The openssl command line, as a peer somebody else wrote.
enum OpenSSL {
    static let path = ["/usr/bin/openssl", "/usr/local/bin/openssl", "/opt/homebrew/bin/openssl"]
        .first { FileManager.default.isExecutableFile(atPath: $0) }
    static var isThere: Bool { path != nil }

    struct Output: Sendable {
        var text: String
        var status: Int32
    }

    /// Runs to the end.
    /// - Parameter input: its standard input, which then stays open until it has said `until`.
    static func run(_ arguments: [String], input: [UInt8] = []) async throws -> Output {
        let output = Pipe()
        let source = Pipe()
        let writer = output.fileHandleForWriting.fileDescriptor
        let child = try ChildProcess(
            path ?? "openssl", arguments, input: source.fileHandleForReading.fileDescriptor, output: writer, errors: writer)
        try output.fileHandleForWriting.close()
        return try await called(within: .seconds(300)) { done in
            Thread.detachNewThread {
                try? source.fileHandleForWriting.write(contentsOf: Data(input))
                let data = (try? output.fileHandleForReading.readToEnd()) ?? Data()
                let status = child.waitForEnd()
                // Held open until here: s_client ends with its input.
                try? source.fileHandleForWriting.close()
                done(Output(text: String(decoding: data, as: UTF8.self), status: status))
            }
        }
    }
}
